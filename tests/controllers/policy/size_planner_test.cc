// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/size_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kit/shapes.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Curve = std::shared_ptr<const std::vector<SpeedPoint>>;

// Speed by 1, 2, 4, ... GPUs.
Curve CurveOf(std::initializer_list<double> speeds) {
  std::vector<SpeedPoint> points;
  int gpus = 1;
  for (const double speed : speeds) {
    points.push_back({gpus, speed, speed, speed});
    gpus *= 2;
  }
  return std::make_shared<const std::vector<SpeedPoint>>(std::move(points));
}
const Curve kLinear = CurveOf({1, 2, 4, 8, 16}), kFlat = CurveOf({1, 1.1, 1.1, 1.1, 1.1});

class SizePlannerTest : public ::testing::Test {
 protected:
  SizePlannerTest() { ledger_.Observe(&queues_); }

  // A job of one-GPU workers, all on one node.
  void Run(const std::string& key, const std::string& node, int workers, const Curve& curve, int most = 16) {
    for (int i = 0; i < workers; ++i) ledger_.Bind(key + std::to_string(i), node, GpuPod(1).request, key);
    queues_.PutHolder(key, {.comes_back = true,
                            .workers = workers,
                            .min_workers = 1,
                            .wanted_workers = most,
                            .running_since = kNow - 7200,
                            .attained_gpu_seconds = 7200.0 * workers,
                            .curve = curve,
                            .queued_since = kNow - 7200});
  }
  std::vector<std::string> Update() { return planner_.Update(kNow); }

  static constexpr std::int64_t kNow = 100'000;
  ClusterLedger ledger_;
  ClusterQueues queues_{ledger_};
  SizePlanner planner_{ledger_, queues_};
};

TEST_F(SizePlannerTest, IdleGpusGoToTheJobThatGainsMost) {
  PutNodes(ledger_, 2);
  Run("t/linear", "a", 4, kLinear);
  Run("t/flat", "b", 4, kFlat);
  EXPECT_THAT(Update(), UnorderedElementsAre("t/linear", "t/flat"));
  EXPECT_GE(queues_.TargetOf("t/linear"), 8);
  EXPECT_LE(queues_.TargetOf("t/flat"), 4);
  EXPECT_THAT(Update(), IsEmpty()) << "nothing has changed";
}

TEST_F(SizePlannerTest, AJobThatGainsNothingYieldsToOneThatDoes) {
  PutNodes(ledger_, 1);
  Run("t/linear", "a", 1, kLinear);
  Run("t/flat", "a", 7, kFlat);
  Update();
  const auto notice = queues_.yields().find("t/flat");
  ASSERT_NE(notice, queues_.yields().end());
  EXPECT_EQ(notice->second.reason, YieldReason::kWorthMore);
  EXPECT_EQ(notice->second.for_owner, "t/linear");
  EXPECT_EQ(notice->second.to, queues_.TargetOf("t/flat"));
  EXPECT_LT(notice->second.to, 7);
}

TEST_F(SizePlannerTest, NobodyShrinksWhereNobodyGrows) {
  PutNodes(ledger_, 1);
  Run("t/flat", "a", 8, kFlat);
  Update();
  EXPECT_THAT(queues_.yields(), IsEmpty());
}

TEST_F(SizePlannerTest, JobsOfUnknownSpeedTakeWhatThereIs) {
  PutNodes(ledger_, 1);
  Run("t/unknown", "a", 2, nullptr);
  EXPECT_THAT(Update(), IsEmpty());
  EXPECT_EQ(queues_.TargetOf("t/unknown"), std::nullopt);
}

TEST_F(SizePlannerTest, TheLimitOfItsQueueHolds) {
  PutNodes(ledger_, 2);
  queues_.SetUp({.pools = {},
                 .queues = {{.name = "t", .quotas = {{.pool = kDefaultPool, .limit_milli = 6 * kOneGpu}}}},
                 .namespaces = {{"t", {"t"}}}});
  Run("t/linear", "a", 4, kLinear);
  Update();
  EXPECT_EQ(queues_.TargetOf("t/linear"), 6);
}

TEST_F(SizePlannerTest, AJobThatWaitsIsToldTheSizeToStartWith) {
  PutNodes(ledger_, 1);
  queues_.PutHolder(
      "t/new", {.comes_back = true, .min_workers = 1, .wanted_workers = 8, .curve = kLinear, .queued_since = kNow});
  EXPECT_THAT(Update(), ElementsAre("t/new"));
  EXPECT_EQ(queues_.TargetOf("t/new"), 8);
}

// A job that has just changed is not changed again for a small gain; later it is, and no event says when.
TEST_F(SizePlannerTest, AChangeThatIsNotWorthItsCostYetIsLookedAtAgain) {
  PutNodes(ledger_, 1);
  EXPECT_EQ(planner_.LookAgainSeconds(), std::nullopt);
  Run("t/linear", "a", 4, kLinear);
  planner_.SetResizeSeconds(10);
  Update();
  EXPECT_EQ(planner_.LookAgainSeconds(), 30);
  queues_.RemoveHolder("t/linear");
  Update();
  EXPECT_EQ(planner_.LookAgainSeconds(), std::nullopt);
}

TEST_F(SizePlannerTest, AJobThatIsGoneHasNoTarget) {
  PutNodes(ledger_, 1);
  Run("t/linear", "a", 4, kLinear);
  Update();
  queues_.RemoveHolder("t/linear");
  EXPECT_THAT(Update(), ElementsAre("t/linear"));
  EXPECT_EQ(queues_.TargetOf("t/linear"), std::nullopt);
}

}  // namespace
}  // namespace grus
