// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace kube {
namespace {

TEST(ForEachParallel, CallsEachOnceAndNeverMoreAtATimeThanAllowed) {
  const SystemClock clock;
  std::mutex mutex;
  std::vector<std::size_t> called;
  std::atomic<int> running{0}, most{0};
  const Status done = ForEachParallel(clock, 200, 4, [&](std::size_t i) -> Status {
    const int now = ++running;
    int seen = most.load();
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    {
      std::lock_guard lock(mutex);
      called.push_back(i);
    }
    --running;
    return {};
  });
  EXPECT_TRUE(done);
  std::sort(called.begin(), called.end());
  ASSERT_EQ(called.size(), 200U);
  for (std::size_t i = 0; i < called.size(); ++i) EXPECT_EQ(called[i], i);
  EXPECT_LE(most.load(), 4);
}

TEST(ForEachParallel, StartsInOrder) {
  const SystemClock clock;
  std::vector<std::size_t> called;
  EXPECT_TRUE(ForEachParallel(clock, 5, 1, [&](std::size_t i) -> Status {
    called.push_back(i);
    return {};
  }));
  EXPECT_EQ(called, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(ForEachParallel, StartsNoMoreAfterAnErrorAndReturnsIt) {
  const SystemClock clock;
  int calls = 0;
  const Status done = ForEachParallel(clock, 10, 1, [&](std::size_t i) -> Status {
    ++calls;
    return i == 2 ? Status(Error(ErrorCode::kConflict, "third")) : Status();
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kConflict);
  EXPECT_EQ(calls, 3);
}

TEST(ForEachParallel, OfSeveralErrorsTheLongestRetryAfterIsObeyed) {
  const SystemClock clock;
  std::mutex mutex;
  CondVar both;
  int inside = 0;
  // Each fails only when the other one has been called, too.
  const Status done = ForEachParallel(clock, 2, 2, [&](std::size_t i) -> Status {
    std::unique_lock lock(mutex);
    ++inside;
    both.NotifyAll();
    const TimePoint limit = clock.Now() + std::chrono::seconds(30);
    while (inside < 2 && clock.Now() < limit) clock.WaitUntil(lock, both, limit);
    if (i == 0) return Error(ErrorCode::kTooManyRequests, "busy");
    return Error(ErrorCode::kTooManyRequests, "busier").with_retry_after(std::chrono::seconds(7));
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().retry_after(), std::chrono::seconds(7));
}

TEST(ForEachParallel, SaysSoIfAStopKeptSomeFromBeingCalled) {
  const SystemClock clock;
  std::stop_source stop;
  int calls = 0;
  const auto body = [&](std::size_t) -> Status {
    ++calls;
    stop.request_stop();
    return {};
  };
  const Status done = ForEachParallel(clock, 3, 1, body, stop.get_token());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(calls, 1);
}

TEST(ForEachParallel, NothingToDoIsDone) {
  EXPECT_TRUE(ForEachParallel(SystemClock(), 0, 8,
                              [](std::size_t) -> Status { return Error(ErrorCode::kInternal, "called"); }));
}

}  // namespace
}  // namespace kube
