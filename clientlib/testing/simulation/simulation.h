// SPDX-License-Identifier: Apache-2.0
// Virtual time for a whole process: its threads run one at a time, on one thread of the operating system, in an order
// that follows from a seed.
//
// Threads started through the clock (Clock::Spawn) become fibers. A fiber runs until it waits on the clock; then a
// random one that can continue runs. When none can, time jumps to the next deadline or timer. So a run takes only as
// long as its work, however long its waits, and the same seed gives the same run.
//
// Code under simulation must do all its waiting through the clock, and hold no lock while it waits. Not thread-safe:
// all calls come from the thread that created it, from fibers or between runs. Several simulations may run on several
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube::testing {

class Simulation final : public Clock {
 public:
  static constexpr TimePoint kStart{std::chrono::hours(24)};
  static constexpr WallTime kWallStart{std::chrono::seconds(1767323045)};  // 2026-01-02T03:04:05Z

  explicit Simulation(std::uint64_t seed);
  ~Simulation() override;  // REQUIRES: all fibers have ended.

  // Runs `action` once, `delay` from now, outside of any fiber: it must not wait.
  void After(Duration delay, std::function<void()> action);
  // Runs fibers and timers until `until`. REQUIRES: called from outside fibers.
  void RunUntil(TimePoint until);
  void RunFor(Duration time) { RunUntil(Now() + time); }
  // The same, but ends as soon as `done` holds; false if it never did.
  bool RunUntil(const std::function<bool()>& done, TimePoint until);

  // Starts a thread that stands for a process: the threads that it starts, directly or not, belong to the process.
  Thread SpawnProcess(int process, std::function<void(std::stop_token)> body);
  // Suspends all threads of the process for `time`, as after a SIGSTOP or on a suspended machine.
  void Freeze(int process, Duration time);

  // Moves only the wall clock.
  void ShiftWall(Duration by);

  std::mt19937_64& random();
  Duration Between(Duration least, Duration most);  // Random.
  bool OneIn(int n);

  TimePoint Now() const override;
  WallTime WallNow() const override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const override;
  Thread Spawn(std::function<void(std::stop_token)> body) const override;
  std::uint64_t RandomSeed() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube::testing
