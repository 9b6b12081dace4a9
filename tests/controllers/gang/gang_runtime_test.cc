// SPDX-License-Identifier: Apache-2.0
// The end of a gang that has run for as long as its queue allows.
#include "controllers/gang/gang_runtime.h"

#include <gmock/gmock.h>

#include "controllers/gang/gang_yield.h"
#include "controllers/policy/waited.h"
#include "tests/controllers/gang/gang_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using testing::At;
using ::testing::ElementsAre;
using testing::Ends;
using testing::GangBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MessageOf;
using testing::ReasonOf;

// It has run for 100 s, after `run_seconds` before.
GangBuilder Running(int members, int run_seconds = 0) {
  return GangBuilder(members)
      .Running(members)
      .Each([](Member& member) { member.bound_at = At(-100); })
      .Phase(kGangRunning, GangReason::kRunning)
      .Group([run_seconds](api::PodGroup& group) {
        group.status.run_seconds = run_seconds;
        group.status.occupied_by = "team-a/gang";
      });
}

GangView Limited(const GangBuilder& builder, std::int64_t limit) {
  GangView view = builder.Build();
  view.runtime_limit = RuntimeLimit{"batch", limit};
  view.demand = NeedsOf(view);
  return view;
}

// The group as the plan leaves it.
GangBuilder After(GangBuilder builder, const GangPlan& plan) {
  return builder.Group([&](api::PodGroup& group) { group.status = plan.status; });
}

TEST(GangRuntime, AGangEndsWhenAllItsRunsTogetherReachTheLimitOfItsQueue) {
  const GangPlan runs = PlanGang(Limited(Running(2, 300), 401));
  EXPECT_EQ(ReasonOf(runs), "Running");
  EXPECT_EQ(runs.look_again, seconds(1));

  const GangView at_its_limit = Limited(Running(2, 300), 400);
  const GangPlan ends = PlanGang(at_its_limit);
  EXPECT_THAT(Ends(ends), ElementsAre(0, 1));
  EXPECT_EQ(ends.status.phase, kGangFailed);
  EXPECT_EQ(ReasonOf(ends), "DeadlineExceeded");
  EXPECT_TRUE(kube::IsConditionTrue(ends.status.conditions, "Stalled"));
  EXPECT_THAT(MessageOf(ends), AllOf(HasSubstr("400 s"), HasSubstr("GpuQueue batch"),
                                     HasSubstr("spec.maximumRuntimeSeconds"), HasSubstr("raise that limit")));
  ASSERT_EQ(ends.events.size(), 1U);
  EXPECT_EQ(ends.events[0].reason, "DeadlineExceeded");
}

TEST(GangRuntime, WhatComesBackStaysGatedAlsoWhenTheLimitIsRaised) {
  const GangPlan ended = PlanGang(Limited(Running(2, 300), 400));
  const GangView view = Limited(After(GangBuilder(2).Gated(2, "node-0").Places(2), ended), 10'000);
  EXPECT_FALSE(view.demand);
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_THAT(plan.keep_places, IsEmpty());
  EXPECT_EQ(plan.nominate.size(), 2U) << "their nominations are taken back";
  EXPECT_EQ(ReasonOf(plan), "DeadlineExceeded");
  EXPECT_EQ(MessageOf(plan), MessageOf(ended));
  EXPECT_THAT(plan.events, IsEmpty());
}

TEST(GangRuntime, AGangThatWasStoppedGoesOnCountingWhereItStopped) {
  const GangPlan running = PlanGang(Limited(Running(2, 300), 1000));
  EXPECT_EQ(running.status.running_since, At(-100));
  const GangView waits = Limited(After(GangBuilder(2).Gated(2), running), 1000);
  const GangPlan stopped = PlanGang(waits);
  EXPECT_EQ(stopped.status.run_seconds, 400);
  EXPECT_EQ(stopped.status.running_since, std::nullopt);
  EXPECT_EQ(LongestRun(Limited(After(GangBuilder(2).Gated(2), stopped), 1000)), 600);
}

TEST(GangRuntime, AMemberThatIsReplacedDoesNotGiveTheGangMoreTime) {
  const GangPlan running = PlanGang(Limited(Running(1), 1000));
  const GangBuilder replaced = GangBuilder(1)
                                   .Running(1)
                                   .Each([](Member& member) { member.bound_at = At(-5); })
                                   .Phase(kGangRunning, GangReason::kRunning);
  EXPECT_EQ(TimeUntilDeadline(Limited(After(replaced, running), 1000)), kube::Duration(seconds(900)));
}

TEST(GangRuntime, TheNextJobOfAPodGroupHasTheWholeTime) {
  const GangPlan ended = PlanGang(Limited(Running(2, 300), 400));
  const auto of_next = [](Member& member) { member.owner = "team-a/gang-2"; };
  const GangView next = Limited(After(GangBuilder(2).Gated(2).Each(of_next), ended), 400);
  EXPECT_TRUE(next.demand);
  EXPECT_EQ(LongestRun(next), 400);
  const GangPlan plan = PlanGang(next);
  EXPECT_EQ(plan.status.run_seconds, 0);
  EXPECT_EQ(ReasonOf(plan), "WaitingForRoom");
}

TEST(GangRuntime, OneOfSeveralOwnersIsEnoughForTheSameRun) {
  const auto of_two = [](api::PodGroup& group) { group.status.occupied_by = "team-a/driver, team-a/gang"; };
  EXPECT_TRUE(IsOverdue(Limited(Running(2, 300).Group(of_two), 400)));
}

TEST(GangRuntime, PodsThatNobodyMakesAgainAreNotEnded) {
  const GangView view = Limited(Running(2).Each([](Member& member) { member.has_controller = false; }), 50);
  EXPECT_EQ(TimeUntilDeadline(view), std::nullopt);
  EXPECT_THAT(PlanGang(view).end, IsEmpty());
  EXPECT_EQ(LatestEnd(view), std::nullopt);
}

TEST(GangRuntime, ThePodGroupOfAJobLeavesItToTheJob) {
  GangView view = Running(2, 300).PlannedByOwner().Build();
  EXPECT_FALSE(IsOverdue(view));
  EXPECT_THAT(PlanGang(view).end, IsEmpty());
}

TEST(GangRuntime, ItsEndIsTheEarlierOfTheLimitAndWhatIsExpected) {
  const auto expects = [](std::int64_t runtime) {
    return [runtime](api::PodGroup& group) {
      group.spec.expected_runtime_seconds = runtime;
      kube::SetCondition(group.status.conditions, {.type = "Ready", .status = "True", .reason = "Running"},
                         At(-100).value);
    };
  };
  EXPECT_EQ(LatestEnd(Limited(Running(2).Group(expects(150)), 1000)), UnixSeconds(At(50)));
  EXPECT_EQ(LatestEnd(Limited(Running(2).Group(expects(5000)), 1000)), UnixSeconds(At(900)));
  EXPECT_EQ(LatestEnd(Running(2).Group(expects(150)).Build()), UnixSeconds(At(50)));
  EXPECT_EQ(LatestEnd(Running(2).Build()), std::nullopt);
}

TEST(GangRuntime, WithoutALimitNothingIsNoted) {
  const GangPlan plan = PlanGang(Running(2).Build());
  EXPECT_EQ(plan.status.running_since, std::nullopt);
  EXPECT_EQ(plan.status.run_seconds, 0);
}

}  // namespace
}  // namespace grus
