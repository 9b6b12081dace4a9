// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/size_ladder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace grus {
namespace {

PoolJob Job(SizeStep step, int min, int max) {
  PoolJob job;
  job.key = "a/job";
  job.step = step;
  job.min_workers = min;
  job.max_workers = max;
  return job;
}

std::vector<int> LegalSizes(const PoolJob& job, int per_node) {
  std::vector<int> sizes;
  for (int size = NextLegalSize(job, per_node, 0); size > 0; size = NextLegalSize(job, per_node, size)) {
    sizes.push_back(size);
  }
  return sizes;
}

TEST(NextLegalSize, FollowsTheStepOfTheJob) {
  struct Case {
    SizeStep step;
    int min, max, per_node;
    std::vector<int> want;
  };
  for (const Case& c : {Case{SizeStep::kAny, 1, 13, 4, {1, 2, 3, 4, 8, 12, 13}}, Case{SizeStep::kAny, 3, 3, 4, {3}},
                        Case{SizeStep::kAny, 6, 9, 4, {6, 8, 9}}, Case{SizeStep::kAny, 1, 3, 1, {1, 2, 3}},
                        Case{SizeStep::kAny, 6, 6, 4, {6}}, Case{SizeStep::kPowerOfTwo, 1, 9, 4, {1, 2, 4, 8}},
                        Case{SizeStep::kPowerOfTwo, 3, 16, 4, {4, 8, 16}}, Case{SizeStep::kPowerOfTwo, 5, 7, 4, {}},
                        Case{SizeStep::kWholeNodes, 1, 13, 4, {4, 8, 12}}, Case{SizeStep::kWholeNodes, 5, 7, 4, {}}}) {
    EXPECT_EQ(LegalSizes(Job(c.step, c.min, c.max), c.per_node), c.want) << "from " << c.min << " to " << c.max;
  }
}

std::vector<int> SizesTried(const PoolJob& job, int current, int per_node) {
  std::vector<Rung> ladder;
  AppendLadder(job, current, per_node, ladder);
  std::vector<int> sizes;
  for (const Rung& rung : ladder) sizes.push_back(rung.workers);
  return sizes;
}

TEST(SpeedAt, IsStraightBetweenPointsAndInProportionOutside) {
  const std::vector<SpeedPoint> curve = {{2, 10, 8, 12}, {4, 16, 12, 20}};
  struct Case {
    int gpus;
    double speed, low, high;
  };
  for (const Case& c :
       {Case{1, 5, 4, 6}, Case{2, 10, 8, 12}, Case{3, 13, 10, 16}, Case{8, 32, 12 * std::sqrt(2), 40}}) {
    const SpeedPoint point = SpeedAt(curve, c.gpus);
    EXPECT_DOUBLE_EQ(point.speed, c.speed) << c.gpus;
    EXPECT_DOUBLE_EQ(point.low, c.low) << c.gpus;
    EXPECT_DOUBLE_EQ(point.high, c.high) << c.gpus;
  }
  EXPECT_DOUBLE_EQ(SpeedAt({}, 3).speed, 3);
  EXPECT_DOUBLE_EQ(SpeedAt({}, 4).low, 2);
}

TEST(AppendLadder, AJobOfUnknownSpeedTriesSizesUpToANode) {
  PoolJob job = Job(SizeStep::kAny, 1, 64);
  EXPECT_EQ(SizesTried(job, 0, 4), (std::vector<int>{1, 2, 3, 4}));
  job.gpus_per_worker = 2;
  EXPECT_EQ(SizesTried(job, 0, 2), (std::vector<int>{1, 2}));
  EXPECT_EQ(SizesTried(Job(SizeStep::kAny, 6, 64), 0, 4), (std::vector<int>{6})) << "its minimum is more than a node";
}

TEST(AppendLadder, SizesUpToFourTimesTheLargestMeasuredAreTried) {
  PoolJob job = Job(SizeStep::kAny, 1, 64);
  job.curve = {{2, 10, 10, 10}};
  EXPECT_EQ(SizesTried(job, 2, 4), (std::vector<int>{1, 2, 3, 4, 8}));
  job.curve.push_back({4, 16, 16, 16});
  EXPECT_EQ(SizesTried(job, 4, 4), (std::vector<int>{1, 2, 3, 4, 8, 12, 16}));
}

// Half as many GPUs more are worth a restart if they are known to help in proportion, not if that is only hoped.
TEST(AppendLadder, AResizeBeyondTheLargestSizeMeasuredMustGainMore) {
  PoolJob job = Job(SizeStep::kAny, 1, 12);
  job.age_seconds = 3600;
  job.resize_cost_seconds = 30;
  job.curve = {{8, 100, 100, 100}};
  std::vector<Rung> guessed, measured;
  AppendLadder(job, 8, 4, guessed);
  job.curve.push_back({12, 150, 150, 150});
  AppendLadder(job, 8, 4, measured);
  ASSERT_EQ(guessed.back().workers, 12);
  EXPECT_LT(guessed.back().value, std::log(120));
  EXPECT_GT(measured.back().value, std::log(130));
  EXPECT_GT(guessed.back().value, std::log(100)) << "but a size that could be worth it is still tried";
}

TEST(AppendLadder, AResizeCountsTheLowEndOfItsBand) {
  PoolJob job = Job(SizeStep::kAny, 1, 2);
  job.age_seconds = 3600;
  job.curve = {{1, 10, 10, 10}, {2, 15, 10, 20}};
  std::vector<Rung> waiting, running;
  AppendLadder(job, 0, 4, waiting);
  AppendLadder(job, 1, 4, running);
  EXPECT_GT(waiting[1].value, waiting[0].value);
  EXPECT_LT(running[1].value, running[0].value);
}

TEST(BestStep, LooksAtAllLargerSizesThatFit) {
  const std::vector<Rung> ladder = {{1, 1, 0}, {2, 2, 1}, {3, 3, 1}, {8, 8, 14}};
  EXPECT_EQ(BestStep(ladder, 0, 8), 3U);
  EXPECT_EQ(BestStep(ladder, 0, 7), 1U);
  EXPECT_EQ(BestStep(ladder, 1, 7), 1U);
  EXPECT_EQ(BestStep(ladder, 1, 8), 3U);
}

}  // namespace
}  // namespace grus
