// SPDX-License-Identifier: Apache-2.0
// The samples of one GPU over the last ten minutes, one a second.
//
// Memory is bounded: kMostSamples, all of it taken at the first one. Samples that are missing, since the driver did not
// answer, leave a gap. A value; not thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "clientlib/base/clock.h"
#include "nodeagent/gpu_library.h"

namespace grus {

class SampleRing {
 public:
  static constexpr std::size_t kMostSamples = 600;
  static constexpr kube::Duration kAge = std::chrono::minutes(10);

  // REQUIRES: `at` is after that of the last one.
  void Add(kube::TimePoint at, const GpuSample& sample);
  // Those after `since`, oldest first; none is older than kAge before the newest.
  void ForEach(kube::TimePoint since, const std::function<void(const GpuSample&)>& visit) const;
  std::size_t size() const { return entries_.size(); }
  const GpuSample* newest() const;  // Null: none.

 private:
  struct Entry {
    kube::TimePoint at;
    GpuSample sample;
  };
  std::vector<Entry> entries_;  // From `next_` on, and then from the start, once it is full.
  std::size_t next_ = 0;        // Where the next one goes.
};

}  // namespace grus
