// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/rate_limiter.h"

#include <gtest/gtest.h>

#include "clientlib/testing/fake_clock.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

const ObjectKey kA{"ns", "a"}, kB{"ns", "b"};
constexpr std::uint64_t kSeed = 20260102;

// A bucket that never runs dry, and no jitter.
RateLimits PerKeyOnly() { return {{5ms, 1000s, 2.0, 0.0}, 1e9, 1e9}; }

TEST(RateLimiter, Q3EachFailureOfAKeyDoublesItsDelay) {
  FakeClock clock;
  RateLimiter limiter(clock, PerKeyOnly(), kSeed);
  for (const Duration want : {5ms, 10ms, 20ms, 40ms, 80ms, 160ms}) EXPECT_EQ(limiter.When(kA), want);
  EXPECT_EQ(limiter.Failures(kA), 6);
  EXPECT_EQ(limiter.When(kB), 5ms);  // Another key's failures do not count.
}

TEST(RateLimiter, Q3ForgetStartsOver) {
  FakeClock clock;
  RateLimiter limiter(clock, PerKeyOnly(), kSeed);
  limiter.When(kA);
  limiter.When(kA);
  limiter.Forget(kA);
  EXPECT_EQ(limiter.Failures(kA), 0);
  EXPECT_EQ(limiter.When(kA), 5ms);
  limiter.Forget(kB);  // What never failed.
}

TEST(RateLimiter, Q3NoNumberOfFailuresOverflows) {
  FakeClock clock;
  RateLimiter limiter(clock, PerKeyOnly(), kSeed);
  for (int i = 0; i < 5000; ++i) {
    const Duration delay = limiter.When(kA);
    ASSERT_GE(delay, 5ms);
    ASSERT_LE(delay, 1000s);
  }
  EXPECT_EQ(limiter.When(kA), 1000s);
}

TEST(RateLimiter, Q3JitterAddsUpToATenth) {
  FakeClock clock;
  RateLimiter limiter(clock, {{5ms, 1000s, 2.0, 0.1}, 1e9, 1e9}, kSeed);
  Duration longest{};
  for (int i = 0; i < 200; ++i) {
    const ObjectKey key{"ns", std::to_string(i)};
    const Duration delay = limiter.When(key);
    ASSERT_GE(delay, 5ms) << "seed " << kSeed;
    ASSERT_LT(delay, 5500us) << "seed " << kSeed;
    longest = std::max(longest, delay);
  }
  EXPECT_GT(longest, 5400us) << "seed " << kSeed;
}

TEST(RateLimiter, Q3ABurstIsFreeAndThenAllKeysShareTenPerSecond) {
  FakeClock clock;
  RateLimiter limiter(clock, {{5ms, 1000s, 2.0, 0.0}}, kSeed);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limiter.When({"ns", std::to_string(i)}), 5ms) << i;
  EXPECT_EQ(limiter.When({"ns", "100"}), 100ms);
  EXPECT_EQ(limiter.When({"ns", "101"}), 200ms);

  clock.Advance(1s);  // Pays back the two, and eight more.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(limiter.When({"ns", "later " + std::to_string(i)}), 5ms) << i;
  EXPECT_EQ(limiter.When({"ns", "last"}), 100ms);
}

TEST(RateLimiter, Q3TheBucketNeverHoldsMoreThanItsSize) {
  FakeClock clock;
  RateLimiter limiter(clock, {{5ms, 1000s, 2.0, 0.0}, 10, 2}, kSeed);
  clock.Advance(1h);
  EXPECT_EQ(limiter.When({"ns", "a"}), 5ms);
  EXPECT_EQ(limiter.When({"ns", "b"}), 5ms);
  EXPECT_EQ(limiter.When({"ns", "c"}), 100ms);
}

TEST(RateLimiter, Q3TheLongerOfBothDelaysCounts) {
  FakeClock clock;
  RateLimiter limiter(clock, {{1s, 1000s, 2.0, 0.0}, 10, 1}, kSeed);
  EXPECT_EQ(limiter.When(kA), 1s);
  EXPECT_EQ(limiter.When(kA), 2s);  // The bucket alone would say 100 ms.
}

}  // namespace
}  // namespace kube::testing
