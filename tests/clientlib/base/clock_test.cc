// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace kube {
namespace {

using namespace std::chrono_literals;

TEST(SystemClock, NeverGoesBack) {
  SystemClock clock;
  const TimePoint before = clock.Now();
  EXPECT_GE(clock.Now(), before);
  EXPECT_GT(clock.WallNow(), WallTime(std::chrono::sys_days(2024y / 1 / 1)));
}

TEST(SystemClock, WaitEndsAtItsTime) {
  SystemClock clock;
  std::mutex mutex;
  CondVar condition;
  std::unique_lock lock(mutex);
  const TimePoint until = clock.Now() + 2ms;
  while (clock.Now() < until) clock.WaitUntil(lock, condition, until);
  EXPECT_GE(clock.Now(), until);
  EXPECT_TRUE(lock.owns_lock());
}

TEST(SystemClock, WaitWithoutEndIsEndedByANotification) {
  SystemClock clock;
  std::mutex mutex;
  CondVar condition;
  bool is_set = false;
  std::unique_lock lock(mutex);
  std::jthread setter([&] {
    std::lock_guard own_lock(mutex);
    is_set = true;
    condition.NotifyOne();
  });
  while (!is_set) clock.WaitUntil(lock, condition, TimePoint::max());
  EXPECT_TRUE(is_set);
  lock.unlock();
}

}  // namespace
}  // namespace kube
