// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/sim_gpu.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace grus::cuda {

std::size_t SimGpu::AddContext(std::size_t owner, std::size_t streams) {
  contexts_.push_back({owner, std::vector<std::deque<SimKernel>>(streams)});
  if (bins_.size() <= owner) bins_.resize(owner + 1);
  return contexts_.size() - 1;
}

void SimGpu::Launch(std::size_t context, std::size_t stream, const SimKernel& kernel) {
  contexts_[context].streams[stream].push_back(kernel);
}

bool SimGpu::HasWork(const Context& context) const {
  return std::ranges::any_of(context.streams,
                             [this](const auto& stream) { return !stream.empty() && stream.front().ready <= now_; });
}

// The next context in turn, once the active one has no work or its slice is over.
void SimGpu::ChooseActive() {
  if (now_ < slice_end_ && HasWork(contexts_[active_])) return;
  for (std::size_t i = 1; i <= contexts_.size(); ++i) {
    const std::size_t next = (active_ + i) % contexts_.size();
    if (!HasWork(contexts_[next])) continue;
    active_ = next;
    slice_end_ = now_ + kSlice;
    return;
  }
}

void SimGpu::Worked(std::size_t owner, std::uint64_t from, std::uint64_t to, double share) {
  std::vector<double>& bins = bins_[owner];
  while (from < to) {
    const std::uint64_t bin = from / kBin, end = std::min(to, (bin + 1) * kBin);
    if (bins.size() <= bin) bins.resize(bin + 1);
    bins[bin] += static_cast<double>(end - from) * share;
    from = end;
  }
}

void SimGpu::Step(std::uint64_t until) {
  if (sharing_ == Sharing::kTimeSlices) {
    ChooseActive();
    if (HasWork(contexts_[active_])) until = std::min(until, slice_end_);
  }
  running_.clear();
  double width = 0;
  for (std::size_t i = 0; i < contexts_.size(); ++i) {
    for (auto& stream : contexts_[i].streams) {
      if (stream.empty()) continue;
      SimKernel& head = stream.front();
      if (head.ready > now_) {
        until = std::min(until, head.ready);
      } else if (sharing_ == Sharing::kAtOnce || i == active_) {
        running_.push_back(&head);
        width += head.width;
      }
    }
  }
  const double speed = width > 1 ? 1 / width : 1;
  for (const SimKernel* kernel : running_) {
    const double end = std::ceil(kernel->left / speed - 1e-6);
    if (end < static_cast<double>(until - now_)) until = now_ + static_cast<std::uint64_t>(std::max(end, 1.0));
  }
  const double done = static_cast<double>(until - now_) * speed;
  for (SimKernel* kernel : running_) {
    if (!kernel->started && kernel->run != nullptr) kernel->run->start = now_;
    kernel->started = true;
    kernel->left -= done;
  }
  for (Context& context : contexts_) {
    double mine = 0;
    for (auto& stream : context.streams) {
      if (stream.empty() || !stream.front().started) continue;
      if (std::ranges::find(running_, &stream.front()) == running_.end()) continue;
      mine += stream.front().width;
      if (stream.front().left > 1e-6) continue;
      if (stream.front().run != nullptr) stream.front().run->end = until;
      stream.pop_front();
    }
    if (mine > 0) Worked(context.owner, now_, until, mine / width);
  }
  now_ = until;
}

void SimGpu::AdvanceTo(std::uint64_t time) {
  while (now_ < time) Step(time);
}

std::uint64_t SimGpu::Busy(std::size_t owner, std::uint64_t from, std::uint64_t to) const {
  double sum = 0;
  for (std::uint64_t bin = from / kBin; bin < std::min<std::uint64_t>(to / kBin, bins_[owner].size()); ++bin) {
    sum += bins_[owner][bin];
  }
  return static_cast<std::uint64_t>(sum);
}

}  // namespace grus::cuda
