// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/repetition.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/controllers/telemetry/job_player.h"

namespace grus {
namespace {

std::vector<float> Square(std::size_t count, std::size_t period, std::size_t low, double noise = 0.02) {
  stories::Random random(3);
  std::vector<float> values;
  for (std::size_t at = 0; at < count; ++at) {
    values.push_back(static_cast<float>((at % period < low ? 0.2 : 0.9) + random.Normal(0, noise)));
  }
  return values;
}

TEST(Repetition, IsFoundWithItsPeriod) {
  for (const std::size_t period : {5, 8, 13, 40, 77, 120}) {
    const auto found = FindRepetition(Square(4 * period, period, 1 + period / 6));
    ASSERT_TRUE(found) << period;
    EXPECT_NEAR(found->period, static_cast<double>(period), 0.05 * static_cast<double>(period));
    EXPECT_NEAR(found->count, 4, 0.3);
  }
}

TEST(Repetition, HasTheShortestPeriodAndNotAMultiple) {
  const auto found = FindRepetition(Square(400, 20, 4));
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->period, 20, 0.5);
}

TEST(Repetition, OfTwoCyclesIsNone) {
  EXPECT_FALSE(FindRepetition(Square(80, 40, 8)));
  EXPECT_FALSE(FindRepetition(Square(105, 40, 8)));
  EXPECT_TRUE(FindRepetition(Square(120, 40, 8)));
}

TEST(Repetition, MayDriftBecauseCyclesAreNotEquallyLong) {
  stories::Random random(5);
  std::vector<float> values;
  double drift = 0;
  for (int cycle = 0; cycle < 30; ++cycle) {
    const double length = 50 * random.Normal(1, 0.04);
    drift += length - 50;
    for (double at = 0; at < length; ++at) values.push_back(at < 10 ? 0.1F : 0.9F);
  }
  const auto found = FindRepetition(values);
  ASSERT_TRUE(found) << "drift " << drift;
  EXPECT_NEAR(found->period, 50, 2.5);
}

TEST(Repetition, StandsOutOfATrend) {
  std::vector<float> values = Square(300, 60, 10);
  for (std::size_t at = 0; at < values.size(); ++at) values[at] += 0.01F * static_cast<float>(at);
  const auto found = FindRepetition(values);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->period, 60, 3);
}

TEST(Repetition, OfFlatOrShortRowsIsNone) {
  EXPECT_FALSE(FindRepetition({}));
  EXPECT_FALSE(FindRepetition(std::vector<float>(3, 1)));
  EXPECT_FALSE(FindRepetition(std::vector<float>(500, 0.7F)));
  EXPECT_FALSE(FindRepetition(std::vector<float>(500, 0)));
}

TEST(Repetition, OfNoiseIsNone) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    stories::Random random(seed);
    std::vector<float> values;
    double state = 0;
    for (int at = 0; at < 200; ++at) values.push_back(static_cast<float>(state = 0.8 * state + random.Normal(0, 1)));
    if (FindRepetition(values)) ++found;
  }
  EXPECT_LE(found, 5);
}

TEST(Repetition, IsMeasuredMoreExactlyByAFinerRow) {
  const auto found = CheckRepetition(Square(1000, 90, 12), 86);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->period, 90, 1);
  EXPECT_FALSE(CheckRepetition(Square(1000, 90, 12), 60));
  EXPECT_FALSE(CheckRepetition(Square(1000, 90, 12), 1000));
}

}  // namespace
}  // namespace grus
