// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/wait.h"

#include <gtest/gtest.h>

#include <future>

namespace kube {
namespace {

using namespace std::chrono_literals;

TEST(WaitFor, ReturnsAtOnceWhenThereIsNothingToWaitFor) {
  SystemClock clock;
  EXPECT_TRUE(WaitFor(clock, 0s, {}));
  EXPECT_TRUE(WaitFor(clock, -1s, {}));
}

TEST(WaitFor, LastsAsLongAsTold) {
  SystemClock clock;
  const TimePoint started = clock.Now();
  EXPECT_TRUE(WaitFor(clock, 2ms, {}));
  EXPECT_GE(clock.Now() - started, 2ms);
}

TEST(WaitFor, DoesNotWaitAfterAStop) {
  SystemClock clock;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(WaitFor(clock, 1h, stop.get_token()));
}

TEST(WaitFor, AStopEndsIt) {
  SystemClock clock;
  std::stop_source stop;
  auto waited = std::async(std::launch::async, [&] { return WaitFor(clock, 1h, stop.get_token()); });
  stop.request_stop();
  ASSERT_EQ(waited.wait_for(20s), std::future_status::ready);
  EXPECT_FALSE(waited.get());
}

}  // namespace
}  // namespace kube
