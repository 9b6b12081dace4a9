// SPDX-License-Identifier: Apache-2.0
// Virtual time for a whole process of ours: the threads that it starts run one at a time, on one thread of the
// operating system, in an order that follows from a seed.
//
// Threads started through the clock (Clock::Spawn) become fibers. A fiber runs until it waits on the clock; then
// another one that can go on is chosen by chance. When none can, time jumps to the next deadline or timer. So a run
// takes the time its work takes, however long its waits, and the same seed gives the same run.
//
// Code under simulation must do all its waiting through the clock, and hold no lock while it waits. Not thread-safe:
// all calls come from the thread that made it, from fibers or from between runs. Several simulations may run on
// several threads.
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
  // Runs everything that has something to do until `until`. From outside of fibers only.
  void RunUntil(TimePoint until);
  void RunFor(Duration time) { RunUntil(Now() + time); }
  // The same, but ends as soon as `done` holds; false if it never did.
  bool RunUntil(const std::function<bool()>& done, TimePoint until);

  // A thread that stands for a process: threads that it starts, and those that they start, belong to it.
  Thread SpawnProcess(int process, std::function<void(std::stop_token)> body);
  // No thread of the process goes on for that time, as after a SIGSTOP or on a suspended machine.
  void Freeze(int process, Duration time);

  // A jump of the wall clock alone.
  void ShiftWall(Duration by);

  std::mt19937_64& random();
  Duration Between(Duration least, Duration most);  // By chance.
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
