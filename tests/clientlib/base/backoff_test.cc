// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/backoff.h"

#include <gtest/gtest.h>

#include <limits>

namespace kube {
namespace {

using namespace std::chrono_literals;

constexpr BackoffPolicy kPlain{800ms, 30s, 2.0, 0.0};

TEST(Backoff, DoublesUpToItsCap) {
  Backoff backoff(kPlain);
  for (const Duration want : {Duration(800ms), Duration(1600ms), Duration(3200ms), Duration(6400ms), Duration(12800ms),
                              Duration(25600ms), Duration(30s), Duration(30s)}) {
    EXPECT_EQ(backoff.Next(), want);
  }
  EXPECT_EQ(backoff.tries(), 8);
}

TEST(Backoff, ResetStartsOver) {
  Backoff backoff(kPlain);
  EXPECT_EQ(backoff.Next(), 800ms);
  EXPECT_EQ(backoff.Next(), 1600ms);
  backoff.Reset();
  EXPECT_EQ(backoff.tries(), 0);
  EXPECT_EQ(backoff.Next(), 800ms);
}

TEST(Backoff, JitterOnlyAdds) {
  constexpr std::uint64_t kSeed = 20260102;
  Backoff backoff({800ms, 30s, 2.0, 1.0}, kSeed);
  bool has_spread = false;
  for (int i = 0; i < 200; ++i) {
    const Duration plain = ExponentialDelay(kPlain, i);
    const Duration delay = backoff.Next();
    EXPECT_GE(delay, plain) << "try " << i << ", seed " << kSeed;
    EXPECT_LT(delay, 2 * plain) << "try " << i << ", seed " << kSeed;
    has_spread |= delay > plain + plain / 2;
  }
  EXPECT_TRUE(has_spread) << "seed " << kSeed;
}

TEST(Backoff, AnEqualSeedGivesEqualDelays) {
  Backoff a({800ms, 30s, 2.0, 1.0}, 7), b({800ms, 30s, 2.0, 1.0}, 7);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(a.Next(), b.Next());
}

TEST(Backoff, NeverOverflows) {
  Backoff backoff(kPlain);
  for (int i = 0; i < 3000; ++i) EXPECT_LE(backoff.Next(), 30s);
  for (const int tries : {62, 63, 64, 1023, 1024, 1025, std::numeric_limits<int>::max()}) {
    EXPECT_EQ(ExponentialDelay({5ms, 1000s, 2.0, 0.1}, tries), 1000s) << tries;
    EXPECT_EQ(ExponentialDelay({0s, 1000s, 2.0, 0.1}, tries), 0s) << tries;
  }
}

TEST(Backoff, AFactorOfOneStaysAtTheBase) {
  EXPECT_EQ(ExponentialDelay({10ms, 1s, 1.0, 0.0}, 0), 10ms);
  EXPECT_EQ(ExponentialDelay({10ms, 1s, 1.0, 0.0}, 500), 10ms);
}

}  // namespace
}  // namespace kube
