// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/character.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tests/controllers/telemetry/all_training_stories.h"
#include "tests/controllers/telemetry/bottleneck_stories.h"
#include "tests/controllers/telemetry/memory_stories.h"
#include "tests/controllers/telemetry/other_stories.h"

namespace grus {
namespace {

using stories::kGiB;
using stories::Random;
using stories::Story;
using ::testing::HasSubstr;

Story Make(Story (*make)(Random&), std::uint64_t seed) {
  Random random(seed);
  return make(random);
}

// Epochs of 300 s, of which the last 30 s are an evaluation.
JobSeries Training(int epochs) {
  Random random(1);
  std::vector<stories::Phase> phases = {{.seconds = 60}};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    phases.push_back({.seconds = 270, .gpu = 0.95, .bandwidth = 0.45, .cpu = 0.3, .memory = 10 * kGiB});
    phases.push_back({.seconds = 30, .gpu = 0.3, .bandwidth = 0.15, .cpu = 0.3, .memory = 11 * kGiB});
  }
  JobSeries job = stories::Play(phases, {.step = 10}, random);
  job.gpus = 4;
  job.is_batch = true;
  return job;
}

// A server: requests all the time, its model loaded once.
JobSeries Server(std::uint64_t seed) {
  Story story = Make(stories::Requests, seed);
  return story.job;
}

JobSeries Notebook(std::uint64_t seed) {
  Random random(seed);
  std::vector<stories::Phase> phases;
  for (int cell = 0; cell < 12; ++cell) {
    const double memory = random.Uniform(2, 12) * kGiB;
    phases.push_back({.seconds = 400 + random.Exponential(500), .memory = memory});
    phases.push_back({.seconds = random.LogNormal(90, 1), .gpu = random.Uniform(0.3, 1), .memory = memory * 1.2});
  }
  return stories::Play(phases, {.step = 15}, random);
}

TEST(Character, OfATrainingHasItsCycleItsPeakAndItsBottleneck) {
  const Character character = CharacterOf(Training(6));
  EXPECT_EQ(character.kind, JobKind::kTraining);
  EXPECT_TRUE(character.is_cyclic);
  EXPECT_NEAR(character.period_s.value_or(0), 300, 10);
  EXPECT_FALSE(character.iteration_s);
  EXPECT_NEAR(character.predicted_peak_memory.value_or(0) / kGiB, 11.2, 0.3);
  EXPECT_THAT(character.sentence, HasSubstr("training on 4 GPUs in cycles of 5"));
  EXPECT_THAT(character.sentence, HasSubstr("GPU memory will peak at about 11."));
  std::printf("  %s\n", character.sentence.c_str());
}

TEST(Character, SaysNothingOfCyclesBeforeThreeWereSeen) {
  const Character character = CharacterOf(Training(2));
  EXPECT_FALSE(character.is_cyclic);
  EXPECT_FALSE(character.period_s);
  EXPECT_FALSE(character.predicted_peak_memory);
}

TEST(Character, OfStepsWithinEpochsHasBothLengths) {
  int right = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Story story = Make(stories::StepsWithinEpochs, seed);
    const Character character = CharacterOf(story.job);
    if (character.iteration_s && std::abs(*character.iteration_s / story.step_s - 1) < 0.05) ++right;
    EXPECT_NEAR(character.period_s.value_or(0), story.period_s, 0.05 * story.period_s) << seed;
  }
  EXPECT_GE(right, 9);
}

TEST(Character, KindsAreToldApartOrUnknown) {
  int wrong = 0, right = 0, all = 0;
  const auto expect = [&](JobKind kind, const JobSeries& job) {
    const Character character = CharacterOf(job);
    ++all;
    if (character.kind == kind) ++right;
    if (character.kind == kind || character.kind == JobKind::kUnknown) return;
    ++wrong;
    std::printf("  %s was taken for: %s\n", std::string(NameOf(kind)).c_str(), character.sentence.c_str());
  };
  for (std::uint64_t seed = 2000; seed < 2020; ++seed) {
    JobSeries training = Make(stories::ThreePhases, seed).job;
    training.is_batch = true;
    expect(JobKind::kTraining, training);
    expect(JobKind::kInference, Server(seed));
    expect(JobKind::kInteractive, Notebook(seed));
    expect(JobKind::kIdle, Make(stories::IdleWithBlips, seed).job);
    JobSeries batch = Make(stories::Steady, seed).job;
    batch.is_batch = true;
    expect(JobKind::kBatch, batch);
  }
  std::printf("  kinds: %d of %d right, %d wrong\n", right, all, wrong);
  EXPECT_LE(wrong, 0.03 * all);
  EXPECT_GE(right, 0.85 * all);
}

TEST(Character, OfAJobWithoutAnySamplesIsUnknown) {
  const Character character = CharacterOf({});
  EXPECT_EQ(character.kind, JobKind::kUnknown);
  EXPECT_EQ(character.bottleneck, Bottleneck::kUnknown);
  EXPECT_FALSE(character.is_cyclic);
  EXPECT_FALSE(character.predicted_peak_memory);
  EXPECT_THAT(character.sentence, HasSubstr("too few samples"));
}

TEST(Character, OfAJobWhoseSourcesAreMissingSaysLessAndNothingFalse) {
  JobSeries job = Training(6);
  job.gpu_memory = {};
  Character character = CharacterOf(job);
  EXPECT_EQ(character.kind, JobKind::kTraining);
  EXPECT_FALSE(character.predicted_peak_memory);
  job = Training(6);
  job.memory_bandwidth = job.cpu = job.network = job.disk = {};
  character = CharacterOf(job);
  EXPECT_EQ(character.kind, JobKind::kTraining);
  EXPECT_EQ(character.bottleneck, Bottleneck::kUnknown);
}

TEST(Character, OfALoadThatFollowsTheDayIsNotATraining) {
  Random random(4);
  std::vector<stories::Phase> phases;
  for (int minute = 0; minute < 5 * 1440; ++minute) {
    const double hour = minute / 60.0;
    phases.push_back({.seconds = 60, .gpu = 0.45 + 0.3 * std::sin(2 * std::numbers::pi * hour / 24)});
  }
  const Character character = CharacterOf(stories::Play(phases, {.step = 60}, random));
  EXPECT_NE(character.kind, JobKind::kTraining);
  EXPECT_FALSE(character.is_cyclic);
}

TEST(Character, OfAServiceThatIsAskedAtRegularTimesIsNotATraining) {
  Random random(4);
  std::vector<stories::Phase> phases;
  for (int round = 0; round < 20; ++round) {
    phases.push_back({.seconds = 270});
    phases.push_back({.seconds = 30, .gpu = 0.7});
  }
  EXPECT_NE(CharacterOf(stories::Play(phases, {.step = 10}, random)).kind, JobKind::kTraining);
}

TEST(Character, BearsValuesThatAreNone) {
  JobSeries job = Training(6);
  for (Series* series : {&job.gpu_utilization, &job.gpu_memory, &job.memory_bandwidth, &job.cpu, &job.network}) {
    for (std::size_t at = 0; at < series->values.size(); at += 17) series->values[at] = NAN;
    series->values[5] = std::numeric_limits<float>::infinity();
  }
  EXPECT_EQ(CharacterOf(job).kind, JobKind::kTraining);
  std::ranges::fill(job.gpu_utilization.values, NAN);
  EXPECT_EQ(CharacterOf(job).kind, JobKind::kUnknown);
  job.gpu_utilization = Training(6).gpu_utilization;
  job.gpu_utilization.step = 0;
  EXPECT_EQ(CharacterOf(job).kind, JobKind::kUnknown);
}

// Under sanitizers it takes longer, and nothing is claimed.
TEST(Character, OfAWeekOfMinutesTakesLessThan20Milliseconds) {
  double slowest = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    Random random(seed);
    JobSeries job;
    for (Series* series :
         {&job.gpu_utilization, &job.gpu_memory, &job.memory_bandwidth, &job.cpu, &job.network, &job.disk}) {
      series->step = 60;
      for (int at = 0; at < 10080; ++at) {
        const bool is_low = seed > 1 && at % (seed == 2 ? 2900 : 31) < 5;
        series->values.push_back(static_cast<float>((is_low ? 0.2 : 0.7) + random.Normal(0, 0.05)));
      }
    }
    double quickest = 1e9;
    for (int run = 0; run < 5; ++run) {
      const auto start = std::chrono::steady_clock::now();
      ASSERT_FALSE(CharacterOf(job).sentence.empty());
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      quickest = std::min(quickest, took.count());
    }
    slowest = std::max(slowest, quickest);
  }
  std::printf("  10,080 samples: %.1f ms\n", slowest);
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(slowest, 20);
#endif
}

}  // namespace
}  // namespace grus
