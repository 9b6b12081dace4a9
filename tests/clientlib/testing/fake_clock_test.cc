// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/fake_clock.h"

#include <gtest/gtest.h>

#include <future>

#include "clientlib/base/wait.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

TEST(FakeClock, MovesBothTimesOnlyWhenTold) {
  FakeClock clock;
  EXPECT_EQ(clock.Now(), FakeClock::kStart);
  EXPECT_EQ(clock.WallNow(), FakeClock::kWallStart);

  clock.Advance(90s);

  EXPECT_EQ(clock.Now(), FakeClock::kStart + 90s);
  EXPECT_EQ(clock.WallNow(), FakeClock::kWallStart + 90s);
}

TEST(FakeClock, AJumpOfTheWallTimeLeavesDurationsAlone) {
  FakeClock clock;
  clock.SetWall(WallTime{});
  EXPECT_EQ(clock.WallNow(), WallTime{});
  EXPECT_EQ(clock.Now(), FakeClock::kStart);
}

TEST(FakeClock, WakesAWaiterWhenItsTimeHasCome) {
  FakeClock clock;
  std::future<bool> waited = std::async(std::launch::async, [&] { return WaitFor(clock, 10s, {}); });
  ASSERT_TRUE(clock.AwaitWaiters(1));

  clock.Advance(9s);
  ASSERT_TRUE(clock.AwaitWaiters(1));  // It waits on.
  clock.Advance(1s);

  ASSERT_EQ(waited.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(waited.get());
}

}  // namespace
}  // namespace kube::testing
