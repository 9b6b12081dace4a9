// SPDX-License-Identifier: Apache-2.0
// A clock that moves only when a test says so.
//
// Waits on it end when Advance() reaches their deadline; nothing sleeps for the time it asks for. A test that drives a
// thread stays in step with it:
//
//   clock.Advance(2s);                   // Or: queue.Put(item);
//   ASSERT_TRUE(clock.AwaitWaiters(1));  // The thread woke, did its work and waits again.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube::testing {

class FakeClock final : public Clock {
 public:
  // Far from zero, so that subtracting from Now() is safe.
  static constexpr TimePoint kStart{std::chrono::hours(24)};
  // 2026-01-02T03:04:05Z
  static constexpr WallTime kWallStart{std::chrono::seconds(1767323045)};

  // REQUIRES: `by` is not negative. Moves the wall time too.
  void Advance(Duration by);
  // Sets the wall time alone, as an administrator or NTP does.
  void SetWall(WallTime wall);

  TimePoint Now() const override;
  WallTime WallNow() const override;
  void WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const override;

  // Waits until `count` threads have begun a wait on this clock since this call, each for a time that has not come;
  // false after 20 s of real time.
  [[nodiscard]] bool AwaitWaiters(int count) const;

 private:
  struct Waiter {
    TimePoint until;
    std::uint64_t round;  // The last AwaitWaiters() before the wait began.
  };

  mutable std::mutex mutex_;  // Guards everything below.
  mutable std::condition_variable waiters_changed_;
  TimePoint now_ = kStart;
  WallTime wall_ = kWallStart;
  mutable std::map<std::thread::id, Waiter> waiters_;  // A thread that has gone on leaves its last entry behind.
  mutable std::uint64_t round_ = 0;
};

}  // namespace kube::testing
