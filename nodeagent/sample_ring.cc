// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sample_ring.h"

#include <algorithm>

namespace grus {

void SampleRing::Add(kube::TimePoint at, const GpuSample& sample) {
  if (entries_.size() < kMostSamples) {
    entries_.reserve(kMostSamples);
    entries_.push_back({at, sample});
  } else {
    entries_[next_] = {at, sample};
  }
  next_ = (next_ + 1) % kMostSamples;
}

void SampleRing::ForEach(kube::TimePoint since, const std::function<void(const GpuSample&)>& visit) const {
  if (entries_.empty()) return;
  const std::size_t first = entries_.size() < kMostSamples ? 0 : next_;
  const kube::TimePoint newest = entries_[(first + entries_.size() - 1) % entries_.size()].at;
  const kube::TimePoint begin = std::max(since, newest - kAge);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[(first + i) % entries_.size()];
    if (entry.at > begin) visit(entry.sample);
  }
}

const GpuSample* SampleRing::newest() const {
  if (entries_.empty()) return nullptr;
  return &entries_[(next_ + kMostSamples - 1) % kMostSamples].sample;
}

}  // namespace grus
