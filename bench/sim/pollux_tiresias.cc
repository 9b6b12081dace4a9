// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_tiresias.h"

#include <algorithm>
#include <utility>

namespace grus {
namespace {

constexpr double kDemotedAtGpuSeconds = 16 * 3600;

// The emptiest nodes first, of equals the first.
GpuNodes TakeGpus(std::vector<int>& free, int gpus) {
  GpuNodes taken;
  while (static_cast<int>(taken.size()) < gpus) {
    const auto emptiest = std::max_element(free.begin(), free.end());
    const int count = std::min(*emptiest, gpus - static_cast<int>(taken.size()));
    taken.insert(taken.end(), static_cast<std::size_t>(count), static_cast<int>(emptiest - free.begin()));
    *emptiest -= count;
  }
  return taken;
}

}  // namespace

void TiresiasPolicy::Demote(double now_s, const std::vector<const ReplayJob*>& jobs) {
  for (const ReplayJob* job : jobs) {
    const auto [entry, is_new] = standings_.try_emplace(job->name());
    if (is_new) first_.push_back(job->name());
    Standing& standing = entry->second;
    const double passed_s = now_s - std::exchange(standing.checked_s, now_s);
    if (!standing.is_running) continue;
    standing.ran_s += passed_s;
    const auto found = std::find(first_.begin(), first_.end(), job->name());
    if (found != first_.end() && standing.ran_s * job->requested_gpus() >= kDemotedAtGpuSeconds) {
      first_.erase(found);
      second_.push_back(job->name());
    }
  }
}

std::vector<GpuNodes> TiresiasPolicy::Place(double now_s, const std::vector<const ReplayJob*>& jobs) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < jobs.size(); ++i) index[jobs[i]->name()] = i;
  const auto is_gone = [&](const std::string& name) { return !index.contains(name); };
  std::erase_if(first_, is_gone);
  std::erase_if(second_, is_gone);
  Demote(now_s, jobs);

  int budget = kReplayNodes * kReplayGpusPerNode;
  std::vector<GpuNodes> places(jobs.size());
  std::vector<std::size_t> runs;
  std::vector<int> free(kReplayNodes, kReplayGpusPerNode);
  for (const auto* group : {&first_, &second_}) {
    for (const std::string& name : *group) {
      const std::size_t i = index[name];
      Standing& standing = standings_[name];
      standing.is_running = jobs[i]->requested_gpus() <= budget;
      if (!standing.is_running) continue;
      budget -= jobs[i]->requested_gpus();
      runs.push_back(i);
      places[i] = jobs[i]->gpu_nodes();
      for (const int node : places[i]) --free[static_cast<std::size_t>(node)];
    }
  }
  for (const std::size_t i : runs) {
    if (places[i].empty()) places[i] = TakeGpus(free, jobs[i]->requested_gpus());
  }
  return places;
}

}  // namespace grus
