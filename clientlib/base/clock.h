// SPDX-License-Identifier: Apache-2.0
// Time as a parameter, and what depends on it: waiting, threads and random seeds.
//
// Code that waits or measures takes a Clock, so that tests run on a FakeClock and never sleep, and whole programs run
// in virtual time on a Simulation (both in clientlib/testing). Two times: Now() never jumps and is for durations;
// WallNow() is for timestamps that others read. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>

#include "clientlib/base/thread.h"

namespace kube {

using TimePoint = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

// A condition variable that a clock can observe. Wait through Clock::WaitUntil().
class CondVar {
 public:
  void NotifyOne() {
    notifications_.fetch_add(1, std::memory_order_relaxed);
    variable_.notify_one();
  }
  void NotifyAll() {
    notifications_.fetch_add(1, std::memory_order_relaxed);
    variable_.notify_all();
  }

  // For clocks.
  std::condition_variable& variable() { return variable_; }
  std::uint64_t notifications() const { return notifications_.load(std::memory_order_relaxed); }

 private:
  std::condition_variable variable_;
  std::atomic<std::uint64_t> notifications_{0};
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  virtual WallTime WallNow() const = 0;

  // Waits until `condition` is notified or `until` has come on this clock; may also wake spuriously, so callers loop on
  // their predicate. REQUIRES: `lock` is held.
  virtual void WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const = 0;

  // Runs `body` concurrently; by default on a thread of the operating system.
  virtual Thread Spawn(std::function<void(std::stop_token)> body) const;
  // A new seed for random numbers; by default from the operating system.
  virtual std::uint64_t RandomSeed() const;
};

class SystemClock final : public Clock {
 public:
  TimePoint Now() const override;
  WallTime WallNow() const override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const override;
};

}  // namespace kube
