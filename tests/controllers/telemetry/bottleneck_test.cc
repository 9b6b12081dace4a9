// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/bottleneck.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "controllers/telemetry/character.h"
#include "tests/controllers/telemetry/bottleneck_stories.h"

namespace grus {
namespace {

using stories::BottleneckStory;

constexpr std::uint64_t kHeldOutSeed = 1000;
constexpr int kSeeds = 10;  // Of each story: other noise, other scrapes.

// The levels of no two jobs are the same, either.
JobSeries JobOf(const BottleneckStory& story, std::uint64_t seed) {
  stories::Random random(seed);
  std::vector<stories::Phase> phases = {{.seconds = 30}};
  const double busier = random.Uniform(0.97, 1.03), more = random.Uniform(0.95, 1.05);
  for (int round = 0; round < 12; ++round) {
    for (stories::Phase phase : story.cycle) {
      phase.seconds *= random.Uniform(0.95, 1.05);
      phase.gpu *= busier, phase.cpu *= busier, phase.network *= more, phase.disk *= more;
      phases.push_back(phase);
    }
  }
  JobSeries job = stories::Play(phases, {.step = random.Pick({1.0, 5.0, 10.0}), .noise = 0.03}, random);
  job.gpus = story.gpus;
  job.nodes = story.nodes;
  job.network_limit = story.network_limit;
  job.is_batch = true;
  return job;
}

TEST(BottleneckStories, AreToldRightIn17Of20AndWrongInOneAtMost) {
  for (std::uint64_t seed = kHeldOutSeed; seed < kHeldOutSeed + kSeeds; ++seed) {
    int right = 0, wrong = 0;
    const auto all = stories::BottleneckStories();
    ASSERT_EQ(all.size(), 20u);
    for (const BottleneckStory& story : all) {
      const Character character = CharacterOf(JobOf(story, seed));
      const bool is_right = character.bottleneck == story.answer;
      const bool is_wrong = !is_right && character.bottleneck != Bottleneck::kUnknown;
      right += is_right, wrong += is_wrong;
      if (seed == kHeldOutSeed || is_wrong) std::printf("  %-56s %s\n", story.name.c_str(), character.sentence.c_str());
    }
    std::printf("  bottlenecks of seed %d: %d of 20 right, %d wrong\n", static_cast<int>(seed), right, wrong);
    EXPECT_GE(right, 17) << "seed " << seed;
    EXPECT_LE(wrong, 1) << "seed " << seed;
  }
}

// The same job, without a source.
TEST(BottleneckStories, OfWhichASeriesIsMissingAreNotToldWrong) {
  Series JobSeries::*const sources[] = {&JobSeries::memory_bandwidth, &JobSeries::cpu, &JobSeries::network,
                                        &JobSeries::disk};
  for (Series JobSeries::*const missing : sources) {
    int wrong = 0;
    for (const BottleneckStory& story : stories::BottleneckStories()) {
      JobSeries job = JobOf(story, kHeldOutSeed);
      job.*missing = {};
      const Bottleneck found = CharacterOf(job).bottleneck;
      if (found == story.answer || found == Bottleneck::kUnknown) continue;
      std::printf("  %s: %s\n", story.name.c_str(), CharacterOf(job).sentence.c_str());
      ++wrong;
    }
    EXPECT_LE(wrong, 1);
  }
}

TEST(Bottleneck, OfAJobWithoutSamplesOfItsGpusIsUnknown) {
  JobSeries job = JobOf(stories::BottleneckStories().front(), 1);
  job.gpu_utilization = {};
  EXPECT_EQ(FindBottleneck(job, 0).bottleneck, Bottleneck::kUnknown);
}

TEST(Bottleneck, ThatTwoThingsMayBeIsUnknown) {  // The CPUs are at their limit, and so is the network.
  const BottleneckStory story = {"",  Bottleneck::kUnknown,
                                 8,   2,
                                 1e9, {{.seconds = 60, .gpu = 0.5, .bandwidth = 0.3, .cpu = 0.97, .network = 0.95e9}}};
  EXPECT_EQ(FindBottleneck(JobOf(story, 1), 0).bottleneck, Bottleneck::kUnknown);
}

TEST(Bottleneck, OfBusyGpusOnNodesWhoseNetworkIsNotKnownIsUnknown) {  // They may wait in all-reduces.
  const BottleneckStory story = {
      "", Bottleneck::kUnknown, 8, 2, 0, {{.seconds = 60, .gpu = 0.99, .bandwidth = 0.3, .cpu = 0.3, .network = 2e9}}};
  JobSeries job = JobOf(story, 1);
  EXPECT_EQ(FindBottleneck(job, 0).bottleneck, Bottleneck::kUnknown);
  job.nodes = 1;
  EXPECT_EQ(FindBottleneck(job, 0).bottleneck, Bottleneck::kCompute);
}

TEST(Bottleneck, IsThatOfTheTimeAfterLoading) {
  const BottleneckStory story = stories::BottleneckStories()[7];
  std::vector<stories::Phase> phases = {{.seconds = 600, .gpu = 0, .cpu = 0.99, .disk = 4e8}};
  for (int at = 0; at < 20; ++at) phases.push_back(story.cycle.front());
  stories::Random random(1);
  const JobSeries job = stories::Play(phases, {.step = 5}, random);
  const double loaded = static_cast<double>(job.gpu_utilization.start) + 605;
  EXPECT_EQ(FindBottleneck(job, loaded).bottleneck, Bottleneck::kCompute);
  EXPECT_NE(FindBottleneck(job, 0).bottleneck, Bottleneck::kCompute);
}

TEST(Bottleneck, ReadsSeriesWhoseSamplesLieAtOtherTimes) {
  std::vector<stories::Phase> phases;
  for (int round = 0; round < 10; ++round) {
    phases.push_back({.seconds = 60, .gpu = 0.95, .bandwidth = 0.5, .cpu = 0.3});
    phases.push_back({.seconds = 40, .gpu = 0.05, .cpu = 0.99});
  }
  stories::Random random(1);
  JobSeries job = stories::Play(phases, {.step = 2, .noise = 0.02}, random);
  Series cpu = {.start = job.cpu.start + 100, .step = 4, .values = {}};  // It was scraped later, and less often.
  for (std::size_t at = 50; at < job.cpu.values.size(); at += 2) cpu.values.push_back(job.cpu.values[at]);
  job.cpu = cpu;
  EXPECT_EQ(FindBottleneck(job, 0).bottleneck, Bottleneck::kInput);
  job.cpu.start += 60;  // Now it is busy while the GPUs are.
  EXPECT_EQ(FindBottleneck(job, 0).bottleneck, Bottleneck::kUnknown);
}

}  // namespace
}  // namespace grus
