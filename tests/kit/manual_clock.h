// SPDX-License-Identifier: Apache-2.0
// A clock that stands still until the test moves it. For code that reads the time but never waits.
#pragma once

#include <atomic>
#include <cstdlib>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube::testing {

class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::hours(1) + passed_.load()); }
  WallTime WallNow() const override { return WallTime(std::chrono::hours(24 * 365 * 50) + passed_.load()); }
  void WaitUntil(std::unique_lock<std::mutex>&, CondVar&, TimePoint) const override { std::abort(); }
  void Advance(Duration by) { passed_ = passed_.load() + by; }

 private:
  std::atomic<Duration> passed_{Duration::zero()};
};

}  // namespace kube::testing
