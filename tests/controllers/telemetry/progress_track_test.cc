// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/progress_track.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace grus {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kStart{std::chrono::seconds(1767323045)};

WallTime At(double seconds) {
  return kStart + std::chrono::duration_cast<WallTime::duration>(std::chrono::duration<double>(seconds));
}
double SecondsTo(WallTime time) { return std::chrono::duration<double>(time - kStart).count(); }
void Add(ProgressTrack& track, double seconds, double done) {
  Position at;
  at.time = At(seconds);
  at.done = ShareDone{done, done};
  track.Add(at);
}
void AddStep(ProgressTrack& track, double seconds, double step, double total) {
  Position at;
  at.time = At(seconds);
  at.step = step;
  at.total_steps = total;
  at.done = ShareDone{step / total, step / total};
  track.Add(at);
}
SpeedRatio Unknown(std::int32_t from, std::int32_t to) { return RatioBetween(from, to); }

TEST(ProgressTrack, ASteadyTrainingEndsWhenItWill) {
  ProgressTrack track;
  for (int minute = 0; minute <= 50; ++minute) Add(track, 60 * minute, minute / 100.0);
  const auto eta = track.Ends();
  ASSERT_TRUE(eta);
  EXPECT_NEAR(SecondsTo(eta->expected), 6000, 1);
  EXPECT_LT(SecondsTo(eta->earliest), 6000);
  EXPECT_GT(SecondsTo(eta->latest), 6000);
  EXPECT_LT(SecondsTo(eta->latest) - SecondsTo(eta->earliest), 900);
}

TEST(ProgressTrack, FewPointsAreNoSpeed) {
  ProgressTrack track;
  EXPECT_FALSE(track.Ends());
  for (int i = 0; i < 3; ++i) Add(track, 60 * i, i / 100.0);
  EXPECT_FALSE(track.Ends());
  Add(track, 180, 0.03);
  EXPECT_TRUE(track.Ends());
}

TEST(ProgressTrack, ASlowStartIsLeftBehind) {
  ProgressTrack track;
  for (int i = 0; i < 10; ++i) Add(track, 60 * i, i / 1000.0);
  for (int i = 1; i <= 40; ++i) Add(track, 540 + 60 * i, 0.009 + i / 100.0);
  EXPECT_NEAR(SecondsTo(track.Ends()->expected), 540 + 60 * 99.1, 60);
}

TEST(ProgressTrack, AChangeOfSizeChangesTheEndAtOnce) {
  ProgressTrack track;
  for (int minute = 0; minute <= 50; ++minute) Add(track, 60 * minute, minute / 100.0);
  EXPECT_FALSE(track.Resize(2, WallTime::min(), Unknown)) << "so many it has had all the time";
  EXPECT_TRUE(track.Resize(4, WallTime::min(), Unknown));
  const auto eta = track.Ends();
  ASSERT_TRUE(eta);
  EXPECT_LE(SecondsTo(eta->earliest), 3000 + 1500);
  EXPECT_GE(SecondsTo(eta->latest), 6000);
  for (int minute = 1; minute <= 10; ++minute) Add(track, 3000 + 60 * minute, 0.5 + minute / 50.0);
  EXPECT_NEAR(SecondsTo(track.Ends()->expected), 4500, 10);
}

TEST(ProgressTrack, SeveralChangesOfSizeAreOneFromTheSpeedThatWasSeen) {
  const auto trained = [] {
    ProgressTrack track;
    track.Resize(4, WallTime::min(), Unknown);
    for (int minute = 0; minute <= 50; ++minute) Add(track, 60 * minute, minute / 100.0);
    return track;
  };
  ProgressTrack never = trained(), once = trained(), often = trained(), back = trained();
  once.Resize(8, WallTime::min(), Unknown);
  for (const int workers : {5, 6, 0, 7, 8}) often.Resize(workers, WallTime::min(), Unknown);
  EXPECT_EQ(often.Ends()->earliest, once.Ends()->earliest);
  EXPECT_EQ(often.Ends()->latest, once.Ends()->latest);
  EXPECT_FALSE(often.Resize(0, WallTime::min(), Unknown)) << "it stands still";
  for (const int workers : {3, 4}) back.Resize(workers, WallTime::min(), Unknown);  // A worker was replaced.
  EXPECT_EQ(back.Ends()->expected, never.Ends()->expected);
  EXPECT_EQ(back.Ends()->latest, never.Ends()->latest);
}

TEST(ProgressTrack, ACurveIsNarrowerThanTheNumberOfWorkers) {
  const SpeedPoint four{4, 342, 335, 350}, eight{8, 560, 540, 575};
  const SpeedRatio by_curve = RatioBetween(four, eight), by_workers = RatioBetween(4, 8);
  EXPECT_NEAR(by_curve.usual, 560.0 / 342, 1e-9);
  EXPECT_GT(by_curve.least, 540.0 / 350);
  EXPECT_LT(by_curve.least, by_curve.usual);
  EXPECT_LT(by_curve.most, 575.0 / 335);
  EXPECT_GT(by_curve.most, by_curve.usual);
  EXPECT_EQ(by_workers.least, 1);
  EXPECT_EQ(by_workers.most, 2);
  EXPECT_NEAR(RatioBetween(eight, four).usual, 1 / by_curve.usual, 1e-9);
  EXPECT_EQ(RatioBetween(8, 4).least, 0.5);
}

TEST(ProgressTrack, AnotherTotalIsAnotherWholeAtTheSameSpeed) {
  for (const double total : {150.0, 400.0}) {
    ProgressTrack track;
    for (int minute = 0; minute <= 50; ++minute) AddStep(track, 60 * minute, minute, 200);
    AddStep(track, 60 * 51, 51, total);
    ASSERT_TRUE(track.Ends());
    EXPECT_NEAR(SecondsTo(track.Ends()->expected), 60 * total, 1) << total;
  }
}

TEST(ProgressTrack, AnotherTotalAlsoCountsRightAfterAChangeOfSize) {
  ProgressTrack track;
  track.Resize(2, WallTime::min(), Unknown);
  for (int minute = 0; minute <= 50; ++minute) AddStep(track, 60 * minute, minute, 200);
  track.Resize(4, WallTime::min(), [](std::int32_t, std::int32_t) { return SpeedRatio{2, 2, 2}; });
  AddStep(track, 3000, 50, 150);
  EXPECT_NEAR(SecondsTo(track.Ends()->expected), 3000 + 60 * 100 / 2, 1);
}

TEST(ProgressTrack, AnotherTotalWithFewerStepsIsAnotherTraining) {
  ProgressTrack track;
  for (int minute = 0; minute <= 50; ++minute) AddStep(track, 60 * minute, minute, 200);
  AddStep(track, 3060, 40, 50);
  EXPECT_FALSE(track.Ends()) << "80 % in a minute is no speed";
}

TEST(ProgressTrack, WhatGoesBackBeginsAnew) {
  ProgressTrack track;
  for (int minute = 0; minute <= 50; ++minute) Add(track, 60 * minute, minute / 100.0);
  Add(track, 3060, 0.1);
  EXPECT_FALSE(track.Ends()) << "a checkpoint was loaded, or it is another training";
}

TEST(ProgressTrack, MoreThanAYearIsNoAnswer) {
  ProgressTrack track;
  for (int i = 0; i < 10; ++i) Add(track, 60 * i, i * 1e-9);
  EXPECT_FALSE(track.Ends());
}

// Trainings as clusters have them: noisy, with evaluations after each tenth, with a machine that is slower for a while.
TEST(ProgressTrack, TheIntervalHoldsForSevenOfEight) {
  std::mt19937_64 random(7);
  int asked = 0, inside = 0, close = 0;
  for (int training = 0; training < 200; ++training) {
    std::lognormal_distribution<double> noise(0, 0.05 + 0.001 * training);
    std::uniform_real_distribution<double> uniform(0, 1);
    const double evaluation = training % 3 == 0 ? 60 * uniform(random) : 0, slow = uniform(random);
    std::vector<double> times{0};  // When each thousandth is done.
    for (int i = 1; i <= 1000; ++i) {
      const double place = i / 1000.0;
      const bool is_slow = training % 4 == 1 && place > slow && place < slow + 0.2;
      times.push_back(times.back() + 10 * noise(random) * (is_slow ? 1.3 : 1) + (i % 100 == 0 ? evaluation : 0));
    }
    ProgressTrack track;
    int at = 0;
    for (double now = 50; now < times.back(); now += 50) {
      while (at < 1000 && times[static_cast<std::size_t>(at) + 1] <= now) ++at;
      Add(track, times[static_cast<std::size_t>(at)], at / 1000.0);
      const bool is_asked = (at >= 250 && at < 256) || (at >= 500 && at < 506) || (at >= 750 && at < 756);
      const auto eta = track.Ends();
      if (!is_asked || !eta) continue;
      ++asked;
      const double left = times.back() - times[static_cast<std::size_t>(at)];
      inside += times.back() >= SecondsTo(eta->earliest) && times.back() <= SecondsTo(eta->latest) ? 1 : 0;
      close += std::abs(SecondsTo(eta->expected) - times.back()) <= 0.25 * left ? 1 : 0;
    }
  }
  EXPECT_GT(asked, 500);
  EXPECT_GE(inside, asked * 85 / 100) << inside << " of " << asked;
  EXPECT_GE(close, asked * 90 / 100) << close << " of " << asked;
}

// Epochs of 60 s of steps and 30 s of evaluation.
TEST(ProgressTrack, EachEpochHasItsEvaluation) {
  ProgressTrack track;
  for (int step = 0; step <= 25 * 6; ++step) {  // To a sixth of the 26th of 100 epochs, and 24 s into it.
    Position at;
    at.time = kStart + std::chrono::seconds(10 * step + 30 * (step / 6));
    at.total_epochs = 100;
    at.done = ShareDone{step / 600.0, step / 600.0, step / 600.0};
    track.Add(at);
  }
  EXPECT_NEAR(SecondsTo(track.Ends()->expected), 9000, 40);
}

TEST(ProgressTrack, WhatWasPrintedBeforeTheSizeChangedIsOfTheSizeBefore) {
  ProgressTrack track;
  track.Resize(4, kStart, Unknown);
  for (int i = 0; i <= 20; ++i) Add(track, 10 * i, i / 100.0);
  const auto twice = [](std::int32_t, std::int32_t) { return SpeedRatio{2, 2, 2}; };
  track.Resize(8, kStart + std::chrono::seconds(250), twice);
  for (int i = 21; i <= 25; ++i) Add(track, 10 * i - 1, i / 100.0);
  EXPECT_NEAR(SecondsTo(track.Ends()->expected), 249 + 375, 2);
}

TEST(ProgressTrack, AStepBackToWhatWasSavedKeepsTheSpeed) {
  ProgressTrack track;
  for (int i = 0; i <= 20; ++i) Add(track, 10 * i, i / 100.0);
  Add(track, 210, 0.19);
  EXPECT_NEAR(SecondsTo(track.Ends()->expected), 210 + 810, 2);
  Add(track, 220, 0.02);
  EXPECT_FALSE(track.Ends()) << "another training";
}

}  // namespace
}  // namespace grus
