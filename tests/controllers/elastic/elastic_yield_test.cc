// SPDX-License-Identifier: Apache-2.0
// How a job gives GPUs up so that another job gets them.
#include <gmock/gmock.h>

#include "controllers/elastic/elastic_plan.h"
#include "tests/controllers/elastic/view_builder.h"
#include "tests/kit/conditions.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

YieldNotice Notice(int to, int by = 0) {
  return {.to = to, .for_owner = "team-b/gpt", .by = std::chrono::system_clock::to_time_t(At(by).value)};
}

// A training on four workers, two of which are its minimum.
ViewBuilder Training() {
  return ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1, 2, 3}).Hosts({0, 1, 2, 3}).LauncherRuns();
}

View Yielding(const ViewBuilder& builder, const YieldNotice& notice) {
  View view = builder.Build();
  view.yield = notice;
  return view;
}

WorkerPlan WorkersOf(const View& view) { return PlanWorkers(view, SizesOf(view.job->spec)); }

// It shrinks.

TEST(ElasticYield, ShrinksToWhatTheNoticeLeavesAndDrainsFirst) {
  const WorkerPlan plan = WorkersOf(Yielding(Training(), Notice(3)));
  EXPECT_EQ(plan.granted, 3);
  EXPECT_EQ(plan.reason, ScaleReason::kReclaimed);
  EXPECT_TRUE(plan.must_drain);
  EXPECT_EQ(plan.drop.size(), 1U);
}

TEST(ElasticYield, TheEventOfTheShrinkSaysWhoGetsTheGpus) {
  const View listed = Yielding(Training(), Notice(2));
  EXPECT_THAT(PlanElasticJob(listed).drop, IsEmpty()) << "they are on the host list";
  EXPECT_THAT(kit::MessageIn(PlanElasticJob(listed).status.conditions),
              HasSubstr("gives 2 workers (2 GPUs) to team-b/gpt, whose queue is below its guarantee"));

  const View drained = Yielding(Training().Hosts({0, 1}, 2), Notice(2));
  const Plan plan = PlanElasticJob(drained);
  EXPECT_EQ(plan.drop.size(), 2U);
  EXPECT_EQ(plan.status.last_scale->reason, "Reclaimed");
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].reason, "WorkersShrunk");
  EXPECT_EQ(plan.events[0].note,
            "shrunk from 4 to 2 workers: gives 2 workers (2 GPUs) to team-b/gpt, whose queue is below its guarantee");
}

TEST(ElasticYield, DoesNotGrowWhileTheNoticeStandsNorDuringTheCooldownAfter) {
  const ViewBuilder shrunk = ViewBuilder().MinMax(1, 4).Granted(2).Ready({0, 1}).Hosts({0, 1}).LauncherRuns().Room(2);
  EXPECT_EQ(WorkersOf(Yielding(shrunk, Notice(2))).granted, 2);
  EXPECT_EQ(WorkersOf(ViewBuilder(shrunk).LastScale("Reclaimed", -10).Build()).granted, 2);
  EXPECT_EQ(WorkersOf(ViewBuilder(shrunk).LastScale("Reclaimed", -31).Build()).granted, 4);
}

TEST(ElasticYield, WhatTheUserGivesUpIsNotReclaimed) {
  EXPECT_EQ(WorkersOf(Yielding(Training().Target(2), Notice(3))).reason, ScaleReason::kSpecChanged);
}

// It yields as a whole.

TEST(ElasticYield, TrainsOnUntilTheDeadlineAndSaysSo) {
  const View view = Yielding(Training(), Notice(0, 30));
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 4);
  EXPECT_EQ(plan.status.phase, "Running");
  EXPECT_TRUE(kube::IsConditionTrue(plan.status.conditions, "Ready"));
  EXPECT_EQ(kit::ReasonIn(plan.status.conditions), "Preempting");
  EXPECT_THAT(
      kit::MessageIn(plan.status.conditions),
      HasSubstr("gives 4 workers (4 GPUs) to team-b/gpt, whose queue is below its guarantee; its workers end at " +
                kube::ToText(At(30))));
  EXPECT_LE(*plan.look_again, seconds(30));
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].reason, "Preempting");

  const View told = Yielding(Training().Status(plan.status), Notice(0, 30));
  EXPECT_THAT(PlanElasticJob(told).events, IsEmpty());
}

TEST(ElasticYield, TheLauncherIsToldTheDeadlineOnceAndWhenItIsTakenBack) {
  const std::string deadline = kube::ToText(At(30));
  struct Case {
    bool has_notice;
    std::string told;
    std::size_t tells;
  };
  for (const Case& c : {Case{true, "", 1}, {true, deadline, 0}, {false, deadline, 1}, {false, "", 0}}) {
    View view = Training().Build();
    if (c.has_notice) view.yield = Notice(0, 30);
    view.launcher_pods.front().told_deadline = c.told;
    const Plan plan = PlanElasticJob(view);
    EXPECT_EQ(plan.deadline, c.has_notice ? deadline : "");
    EXPECT_EQ(plan.tell_deadline_to.size(), c.tells) << c.has_notice << c.told;
  }
}

TEST(ElasticYield, GivesEverythingBackAtTheDeadline) {
  // One worker is below the minimum: it yields as a whole, too.
  for (const int to : {0, 1}) {
    const View view = Yielding(Training(), Notice(to, -1));
    const Plan plan = PlanElasticJob(view);
    EXPECT_EQ(plan.workers->granted, 0);
    EXPECT_EQ(plan.drop.size(), 4U);
    EXPECT_TRUE(plan.restart_launcher);
    EXPECT_EQ(plan.status.phase, "Waiting");
    EXPECT_EQ(plan.status.last_scale->reason, "Preempted");
    ASSERT_EQ(plan.events.size(), 1U);
    EXPECT_EQ(plan.events[0].type, kube::EventType::kWarning);
    EXPECT_THAT(plan.events[0].note, HasSubstr("stopped the training: gives 4 workers (4 GPUs) to team-b/gpt"));
  }
}

TEST(ElasticYield, StartsAgainAtOnceWhenTheNoticeIsGone) {
  const ViewBuilder waiting = ViewBuilder().MinMax(2, 4).Room(4).LastScale("Preempted", -1, 4, 0);
  const View yielding = Yielding(waiting, Notice(0, -1));
  EXPECT_TRUE(WorkersOf(yielding).is_waiting) << "the GPUs are for another job";
  EXPECT_THAT(kit::MessageIn(PlanElasticJob(yielding).status.conditions), HasSubstr("to team-b/gpt"));
  EXPECT_EQ(WorkersOf(waiting.Build()).granted, 4);
}

}  // namespace
}  // namespace grus
