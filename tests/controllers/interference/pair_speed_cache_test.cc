// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_speed_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>

namespace grus {
namespace {

const std::string kType = "v100";

SharedJob Job(int i) { return {"job-" + std::to_string(i), "", {}}; }

// All pairs of three jobs, at this speed.
PairSpeedCache::Model ModelOf(double speed) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) samples.push_back({Job(i), Job(j), kType, speed - 0.01 * (i + j), 1});
  }
  return std::make_shared<const InterferenceModel>(*InterferenceModel::Fit(samples));
}

SpeedShare Ask(PairSpeedCache& cache, const SharedJob& job, const SharedJob& partner, const std::string& type = kType) {
  return cache.Predict({{&job, &partner, &type}}).at(0);
}

void ExpectEqual(const SpeedShare& a, const SpeedShare& b) {
  EXPECT_EQ(a.speed, b.speed);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(PairSpeedCache, AnswersAsTheModelDoesInTheOrderOfTheQuestions) {
  const auto model = ModelOf(0.8);
  PairSpeedCache cache(model);
  const SharedJob a = Job(0), b = Job(1), c = Job(2);
  Ask(cache, b, c);  // Known already.
  const std::vector<SpeedShare> told =
      cache.Predict({{&a, &b, &kType}, {&b, &c, &kType}, {&a, &b, &kType}, {&b, &a, &kType}});
  ASSERT_EQ(told.size(), 4u);
  const std::vector<SpeedShare> wanted = model->Predict({{a, b, kType}, {b, c, kType}, {a, b, kType}, {b, a, kType}});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(told[i].speed, wanted[i].speed, 1e-12);
    EXPECT_NEAR(told[i].low, wanted[i].low, 1e-12);
  }
  EXPECT_EQ(cache.size(), 3u);  // Equal questions are one.
  EXPECT_TRUE(cache.Predict({}).empty());
}

TEST(PairSpeedCache, PairsThatDifferInAnythingAreKeptApart) {
  PairSpeedCache cache(ModelOf(0.8));
  SharedJob busy = Job(0), of_family = Job(0);
  busy.solo.gpu_utilization = 90;
  of_family.family = "bert";
  std::size_t count = 0;
  for (const SharedJob& job : {Job(0), busy, of_family, Job(1)}) {
    Ask(cache, job, Job(2));
    Ask(cache, Job(2), job);
    Ask(cache, job, Job(2), "k80");
    EXPECT_EQ(cache.size(), count += 3);
  }
}

TEST(PairSpeedCache, AFeatureThatIsNoNumberIsAnsweredAndKeptAsNotKnown) {
  PairSpeedCache cache(ModelOf(0.8));
  SharedJob broken = Job(0);
  broken.solo.memory_bandwidth = std::numeric_limits<double>::quiet_NaN();
  const SpeedShare known = Ask(cache, Job(0), Job(1));
  ExpectEqual(Ask(cache, broken, Job(1)), known);
  ExpectEqual(Ask(cache, Job(1), broken), Ask(cache, Job(1), Job(0)));
  EXPECT_EQ(cache.size(), 2u);
}

TEST(PairSpeedCache, ANewModelAnswersAtOnce) {
  PairSpeedCache cache(ModelOf(0.9));
  const SpeedShare before = Ask(cache, Job(0), Job(1));
  const auto slower = ModelOf(0.4);
  cache.SetModel(slower);
  EXPECT_EQ(cache.size(), 0u);
  const SpeedShare after = Ask(cache, Job(0), Job(1));
  EXPECT_LT(after.speed, before.speed);
  ExpectEqual(after, slower->Predict({{Job(0), Job(1), kType}}).at(0));
}

TEST(PairSpeedCache, StartsAnewWhenItIsFull) {
  PairSpeedCache cache(std::make_shared<const InterferenceModel>());
  std::vector<SharedJob> jobs;
  for (int i = 0; i < 400; ++i) jobs.push_back(Job(i));
  for (const SharedJob& job : jobs) {
    std::vector<PairQuestionView> questions;
    for (const SharedJob& partner : jobs) questions.push_back({&job, &partner, &kType});
    EXPECT_EQ(cache.Predict(questions).size(), jobs.size());
    EXPECT_LE(cache.size(), kMaxCachedPairs);
    EXPECT_GE(cache.size(), jobs.size());
  }
}

// Whoever asks after the model has changed is never told what the old one said.
TEST(PairSpeedCache, ThreadsNeverSeeAnOldModelAfterItsEnd) {
  const auto fast = ModelOf(0.9), slow = ModelOf(0.3);
  for (int round = 0; round < 20; ++round) {
    PairSpeedCache cache(fast);
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&cache, t] {
        for (int i = 0; i < 30; ++i) Ask(cache, Job((t + i) % 3), Job(i % 3));
      });
    }
    cache.SetModel(slow);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) EXPECT_LT(Ask(cache, Job(i), Job(j)).speed, 0.5);
    }
    threads.clear();
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) EXPECT_LT(Ask(cache, Job(i), Job(j)).speed, 0.5);
    }
  }
}

}  // namespace
}  // namespace grus
