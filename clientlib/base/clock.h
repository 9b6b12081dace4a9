// SPDX-License-Identifier: Apache-2.0
// Time as a parameter.
//
// Whatever waits or measures takes a Clock, so that tests run on a FakeClock (clientlib/testing) and never
// sleep. Two times: Now() never jumps and is for durations; WallNow() is for timestamps that others read.
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kube {

using TimePoint = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  virtual WallTime WallNow() const = 0;

  // Waits on `cv` until it is notified, `until` has come on this clock, or for no reason at all: callers
  // loop on their own condition. REQUIRES: `lock` is held.
  virtual void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                         TimePoint until) const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime WallNow() const override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                 TimePoint until) const override;
};

}  // namespace kube
