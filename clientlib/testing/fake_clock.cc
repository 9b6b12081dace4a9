// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/fake_clock.h"

#include <algorithm>
#include <cassert>

namespace kube::testing {
namespace {

// How often a wait checks the clock. Advance() cannot notify the waiters' condition variables: it must not lock their
// mutexes, and the variables may be destroyed.
constexpr auto kSlice = std::chrono::milliseconds(1);
constexpr auto kPatience = std::chrono::seconds(20);

}  // namespace

void FakeClock::Advance(Duration by) {
  assert(by >= Duration::zero() && "time does not run backwards");
  std::lock_guard lock(mutex_);
  now_ += by;
  wall_ += std::chrono::duration_cast<WallTime::duration>(by);
}

void FakeClock::SetWall(WallTime wall) {
  std::lock_guard lock(mutex_);
  wall_ = wall;
}

TimePoint FakeClock::Now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

WallTime FakeClock::WallNow() const {
  std::lock_guard lock(mutex_);
  return wall_;
}

void FakeClock::WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const {
  {
    std::lock_guard own_lock(mutex_);
    if (now_ >= until) return;
    waiters_[std::this_thread::get_id()] = {until, round_};
  }
  waiters_changed_.notify_all();
  // Wait for one slice only, then let the caller check its condition: a loop here would lose a notification between two
  // slices.
  condition.variable().wait_for(lock, kSlice);
}

bool FakeClock::AwaitWaiters(int count) const {
  std::unique_lock lock(mutex_);
  // Only a wait that begins from now on shows that a thread is idle; a waiting thread begins one every slice.
  const std::uint64_t round = ++round_;
  return waiters_changed_.wait_for(lock, kPatience, [&] {
    return std::count_if(waiters_.begin(), waiters_.end(), [&](const auto& entry) {
             return entry.second.round >= round && entry.second.until > now_;
           }) >= count;
  });
}

}  // namespace kube::testing
