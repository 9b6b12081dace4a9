// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/conflict_retry.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace kube {
namespace {

using namespace std::chrono_literals;

// Whose time jumps to where somebody waits for it.
class JumpingClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  WallTime WallNow() const override { return {}; }
  void WaitUntil(std::unique_lock<std::mutex>&, CondVar&, TimePoint until) const override {
    waits_.push_back(until - now_);
    now_ = until;
  }
  const std::vector<Duration>& waits() const { return waits_; }

 private:
  mutable TimePoint now_{24h};
  mutable std::vector<Duration> waits_;
};

// Fails with `code` the first `failures` times.
class Attempts {
 public:
  Attempts(int failures, ErrorCode code) : failures_(failures), code_(code) {}
  Status operator()() {
    if (++count_ > failures_) return {};
    return Error(code_, "no");
  }
  int count() const { return count_; }

 private:
  const int failures_;
  const ErrorCode code_;
  int count_ = 0;
};

TEST(RetryOnConflict, F5AConflictIsTriedAgain) {
  JumpingClock clock;
  Attempts attempts(4, ErrorCode::kConflict);
  EXPECT_TRUE(RetryOnConflict(clock, std::ref(attempts)));
  EXPECT_EQ(attempts.count(), 5);
  EXPECT_EQ(clock.waits().size(), 4u);
  for (const Duration wait : clock.waits()) {
    EXPECT_GE(wait, 10ms);
    EXPECT_LT(wait, 11ms);
  }
}

TEST(RetryOnConflict, F5TheFifthConflictIsReturned) {
  Attempts attempts(9, ErrorCode::kConflict);
  JumpingClock clock;
  const Status done = RetryOnConflict(clock, std::ref(attempts));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), ErrorCode::kConflict);
  EXPECT_EQ(attempts.count(), 5);
}

TEST(RetryOnConflict, F5OtherErrorsAreReturnedAtOnce) {
  JumpingClock clock;
  Attempts attempts(9, ErrorCode::kInvalid);
  EXPECT_EQ(RetryOnConflict(clock, std::ref(attempts)).error().code(), ErrorCode::kInvalid);
  EXPECT_EQ(attempts.count(), 1);
}

TEST(RetryOnConflict, F5AStopEndsIt) {
  JumpingClock clock;
  std::stop_source stop;
  stop.request_stop();
  Attempts attempts(9, ErrorCode::kConflict);
  EXPECT_EQ(RetryOnConflict(clock, std::ref(attempts), stop.get_token()).error().code(), ErrorCode::kConflict);
  EXPECT_EQ(attempts.count(), 1);
}

}  // namespace
}  // namespace kube
