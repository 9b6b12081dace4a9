// SPDX-License-Identifier: Apache-2.0
// Starts and growths for which the scheduler finds no nodes although there seems to be room.
#include <gtest/gtest.h>

#include "controllers/elastic/worker_plan.h"
#include "tests/controllers/elastic/view_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;

WorkerPlan PlanOf(const View& view) { return PlanWorkers(view, SizesOf(view.job->spec)); }

TEST(FailedTries, AStartThatFindsNoNodesAgainAndAgainWaitsTwiceAsLongEachTime) {
  for (const auto& [tries, cooldown] : {std::pair(0, 30), {1, 30}, {2, 60}, {3, 120}, {6, 600}, {100, 600}}) {
    View view = ViewBuilder().MinMax(2, 4).Room(4).LastScale("BelowMinimum", -29, 4, 0).Build();
    view.failed_tries = tries;
    EXPECT_EQ(StartDelay(view), kube::Duration(seconds(cooldown - 29))) << tries;
    EXPECT_EQ(NextStart(view, view.job->status.last_scale), At(cooldown - 29)) << tries;
    EXPECT_TRUE(PlanOf(view).is_waiting);
  }
}

TEST(FailedTries, SoDoesGrowth) {
  for (const auto& [since, granted] : {std::pair(-119, 2), {-120, 4}}) {
    View view = ViewBuilder()
                    .MinMax(1, 4)
                    .Granted(2)
                    .Ready({0, 1})
                    .LauncherRuns()
                    .Room(2)
                    .LastScale("Unschedulable", since)
                    .Build();
    view.failed_tries = 3;
    EXPECT_EQ(PlanOf(view).granted, granted) << since;
  }
}

TEST(FailedTries, OnlyWhatIsForWantOfNodesIsAFailedTry) {
  const auto scale = [](const char* reason, int time) { return std::optional(api::LastScale{4, 2, reason, At(time)}); };
  EXPECT_TRUE(IsFailedTry(std::nullopt, scale("BelowMinimum", 0)));
  EXPECT_TRUE(IsFailedTry(scale("Unschedulable", -40), scale("Unschedulable", 0)));
  EXPECT_FALSE(IsFailedTry(scale("Unschedulable", 0), scale("Unschedulable", 0)));
  EXPECT_FALSE(IsFailedTry(std::nullopt, scale("PodsBroken", 0)));
  EXPECT_FALSE(IsFailedTry(scale("Started", 0), std::nullopt));
}

TEST(FailedTries, ATryWentWellWhenAllHaveTheirNodesAndTheLauncherToo) {
  const ViewBuilder two = ViewBuilder().MinMax(1, 4).Granted(2).LastScale("RoomAppeared", -5);
  EXPECT_TRUE(DidLastTrySucceed(ViewBuilder(two).Bound({0, 1}).LauncherRuns().Build()));
  EXPECT_FALSE(DidLastTrySucceed(ViewBuilder(two).Bound({0, 1}).Build()));
  EXPECT_FALSE(DidLastTrySucceed(ViewBuilder(two).Bound({0}).Waiting({1}).LauncherRuns().Build()));
  EXPECT_FALSE(DidLastTrySucceed(ViewBuilder(two).LastScale("Unschedulable", -5).Bound({0, 1}).LauncherRuns().Build()));
}

}  // namespace
}  // namespace grus
