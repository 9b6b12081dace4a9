// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/event_limiter.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{24h};

int TakenAt(EventLimiter& limiter, const std::string& key, TimePoint now) {
  int taken = 0;
  while (taken < 100 && limiter.Take(key, now)) ++taken;
  return taken;
}

TEST(EventLimiter, V2ABurstOf25AndThenOneInFiveMinutes) {
  EventLimiter limiter(EventLimiter::kOfObject);
  EXPECT_EQ(TakenAt(limiter, "a", kStart), 25);
  EXPECT_EQ(TakenAt(limiter, "a", kStart + 299s), 0);
  EXPECT_EQ(TakenAt(limiter, "a", kStart + 300s), 1);
  EXPECT_EQ(TakenAt(limiter, "a", kStart + 900s), 2);
}

TEST(EventLimiter, V2AQuietObjectHasItsBurstAgainAndNoMore) {
  EventLimiter limiter(EventLimiter::kOfObject);
  EXPECT_EQ(TakenAt(limiter, "a", kStart), 25);
  EXPECT_EQ(TakenAt(limiter, "a", kStart + 24h), 25);
}

TEST(EventLimiter, V2AnObjectWithItsWholeBurstTakesNoMemory) {
  EventLimiter limiter(EventLimiter::kOfObject);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(limiter.Take(std::to_string(i), kStart));
  EXPECT_EQ(TakenAt(limiter, "busy", kStart + 1s), 25);
  EXPECT_TRUE(limiter.Take("late", kStart + 300s));
  EXPECT_EQ(limiter.size(), 2U);
  EXPECT_FALSE(limiter.Take("busy", kStart + 300s)) << "it is not forgotten before";
}

TEST(EventLimiter, V2EachObjectHasABurstOfItsOwn) {
  EventLimiter limiter(EventLimiter::kOfObject);
  EXPECT_EQ(TakenAt(limiter, "a", kStart), 25);
  EXPECT_EQ(TakenAt(limiter, "b", kStart), 25);
}

TEST(EventLimiter, V2ANamespaceHasABurstAndThenTenASecond) {
  EventLimiter limiter(EventLimiter::kOfNamespace);
  for (int i = 0; i < 2500; ++i) ASSERT_TRUE(limiter.Take("flood", kStart)) << i;
  EXPECT_EQ(TakenAt(limiter, "flood", kStart), 0);
  EXPECT_TRUE(limiter.Take("quiet", kStart));
  EXPECT_EQ(TakenAt(limiter, "flood", kStart + 1s), 10);
}

TEST(EventLimiter, V2TheLeastRecentOfTooManyObjectsIsForgotten) {
  EventLimiter limiter(EventLimiter::kOfObject);
  EXPECT_EQ(TakenAt(limiter, "old", kStart), 25);
  EXPECT_EQ(TakenAt(limiter, "recent", kStart), 25);
  for (std::size_t i = 0; i < EventLimiter::kMaxKeys - 1; ++i) {
    EXPECT_TRUE(limiter.Take(std::to_string(i), kStart));
    EXPECT_FALSE(limiter.Take("recent", kStart));
  }
  EXPECT_EQ(TakenAt(limiter, "old", kStart), 25);
}

}  // namespace
}  // namespace kube
