// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/steady_speed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace grus {
namespace {

constexpr unsigned kSeed = 20260105;

// `count` steps of the mean time, each 5 % off at random.
std::vector<SpeedSample> Steps(std::size_t count, double mean, unsigned seed = kSeed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1, 0.05);
  std::vector<SpeedSample> samples(count);
  for (SpeedSample& sample : samples) sample = {mean * noise(random), 1};
  return samples;
}

TEST(SteadySpeed, NoSamplesTellNoSpeedAndFewTellNoInterval) {
  EXPECT_FALSE(FindSteadySpeed({}, 0));
  const std::vector<SpeedSample> few(4, {0.5, 1});
  const SteadySpeed speed = *FindSteadySpeed(few, 0);
  EXPECT_DOUBLE_EQ(speed.mean_seconds, 0.5);
  EXPECT_TRUE(std::isinf(speed.half_width_seconds));
  EXPECT_FALSE(speed.has_precision(0.5));
}

TEST(SteadySpeed, AWarmUpIsDropped) {
  for (const std::size_t warm : {1UL, 5UL, 12UL, 80UL}) {
    for (const std::size_t count : {40UL, 200UL, 1000UL}) {
      if (warm * 3 > count) continue;
      std::vector<SpeedSample> samples = Steps(count, 0.1);
      for (std::size_t i = 0; i < warm; ++i) samples[i].seconds *= 10;
      const SteadySpeed speed = *FindSteadySpeed(samples, 0);
      EXPECT_NEAR(speed.mean_seconds, 0.1, 0.003) << warm << " of " << count;
      EXPECT_GE(speed.warm_up_samples, static_cast<int>(warm));
      EXPECT_TRUE(speed.is_steady) << warm << " of " << count;
    }
  }
}

TEST(SteadySpeed, ASpeedThatStillChangesIsNotSteady) {
  std::vector<SpeedSample> samples;
  for (int i = 0; i < 60; ++i) samples.push_back({10.0 / (1 + i), 1});
  EXPECT_FALSE(FindSteadySpeed(samples, 0)->has_precision(0.5));
}

TEST(SteadySpeed, NoiseIsNoWarmUp) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    EXPECT_TRUE(FindSteadySpeed(Steps(60, 0.1, seed), 0)->is_steady) << "seed " << seed;
  }
}

TEST(SteadySpeed, AJobThatHasJustBecomeFasterIsNotSteady) {
  std::vector<SpeedSample> samples = Steps(100, 0.2);
  for (std::size_t i = 70; i < samples.size(); ++i) samples[i].seconds /= 2;
  EXPECT_FALSE(FindSteadySpeed(samples, 0)->has_precision(0.05));
}

TEST(SteadySpeed, PausesDoNotCount) {
  std::vector<SpeedSample> samples = Steps(100, 0.1);
  for (const std::size_t at : {30UL, 60UL, 61UL, 90UL}) samples[at].seconds = 4;
  const SteadySpeed speed = *FindSteadySpeed(samples, 0);
  EXPECT_NEAR(speed.mean_seconds, 0.1, 0.003);
  EXPECT_EQ(speed.pauses, 4);
}

TEST(SteadySpeed, WhatIsSlowAgainAndAgainCounts) {
  std::vector<SpeedSample> samples = Steps(100, 0.1);
  for (std::size_t at = 0; at < samples.size(); at += 4) samples[at].seconds = 0.5;  // A quarter of the steps.
  const SteadySpeed speed = *FindSteadySpeed(samples, 0);
  EXPECT_NEAR(speed.mean_seconds, 0.2, 0.01);
  EXPECT_EQ(speed.pauses, 0);
}

TEST(SteadySpeed, SamplesOfMoreStepsWeighMore) {
  std::vector<SpeedSample> samples;
  for (int i = 0; i < 20; ++i) samples.push_back(i % 2 ? SpeedSample{0.9, 9} : SpeedSample{0.12, 1});
  EXPECT_NEAR(FindSteadySpeed(samples, 0)->mean_seconds, 0.102, 0.001) << "0.11 if they weighed the same";
}

// How often the interval of `count` samples holds the mean; neighbours are correlated by `correlation`.
double Coverage(std::size_t count, double correlation) {
  std::mt19937 random(kSeed);
  std::normal_distribution<double> noise(0, 0.05 * std::sqrt(1 - correlation * correlation));
  constexpr int kRuns = 600;
  int held = 0;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<SpeedSample> samples;
    double state = 0;
    for (std::size_t i = 0; i < 50 + count; ++i) {
      state = correlation * state + noise(random);
      if (i >= 50) samples.push_back({1 + state, 1});
    }
    const SteadySpeed speed = *FindSteadySpeed(samples, 0);
    held += std::abs(speed.mean_seconds - 1) <= speed.half_width_seconds;
  }
  return static_cast<double>(held) / kRuns;
}

TEST(SteadySpeed, TheIntervalHoldsTheMeanAsOftenAsItSays) {
  EXPECT_NEAR(Coverage(60, 0), 0.9, 0.06);
  EXPECT_NEAR(Coverage(400, 0), 0.9, 0.05);
  EXPECT_NEAR(Coverage(400, 0.7), 0.9, 0.08) << "with correlation, where that of independent samples holds 55 %";
  EXPECT_NEAR(Coverage(1000, 0.9), 0.9, 0.09);
}

TEST(SteadySpeed, RoundedNumbersAreNoMorePreciseThanTheirLastPlace) {
  const std::vector<SpeedSample> samples(100, {1, 1});  // "1s/step"
  EXPECT_FALSE(FindSteadySpeed(samples, 0.5)->has_precision(0.1));
  EXPECT_TRUE(FindSteadySpeed(samples, 0.0005)->has_precision(0.1));
}

}  // namespace
}  // namespace grus
