// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_yield.h"

#include <gmock/gmock.h>

#include "controllers/gang/member_writer.h"
#include "controllers/policy/yield_words.h"
#include "tests/controllers/gang/gang_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;
using testing::At;
using ::testing::ElementsAre;
using testing::Ends;
using testing::GangBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Lifts;
using testing::MessageOf;
using testing::ReasonOf;

YieldNotice Notice(int by) {
  return {.to = 0, .for_owner = "team-b/bert", .by = std::chrono::system_clock::to_time_t(At(by).value)};
}

GangBuilder Running(int members) {
  return GangBuilder(members).Running(members).Phase(kGangRunning, GangReason::kRunning);
}

GangView Yielding(GangBuilder builder, int by) {
  GangView view = builder.Build();
  view.yield = Notice(by);
  view.demand = NeedsOf(view);
  return view;
}

// The notice.

TEST(GangYield, RunsOnUntilTheDeadlineAndSaysWhoGetsItsGpus) {
  const GangView view = Yielding(Running(4), 5);
  const GangPlan plan = PlanGang(view);
  EXPECT_EQ(plan.status.phase, kGangRunning);
  EXPECT_EQ(ReasonOf(plan), "Preempting");
  EXPECT_TRUE(kube::IsConditionTrue(plan.status.conditions, "Ready"));
  EXPECT_EQ(MessageOf(plan),
            "gives the GPUs of its 4 members to team-b/bert, whose queue is below its guarantee; its pods end at " +
                kube::ToText(At(5)) + ", and it then waits for room again");
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_EQ(plan.look_again, seconds(5));
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].reason, "Preempting");
  EXPECT_EQ(plan.events[0].type, kube::EventType::kWarning);
}

TEST(GangYield, TellsTheNoticeOnce) {
  EXPECT_THAT(PlanGang(Yielding(Running(2).Phase(kGangRunning, GangReason::kPreempting), 5)).events, IsEmpty());
}

TEST(GangYield, NoMemberStartsWhileTheNoticeStands) {
  const GangView view = Yielding(Running(2).Gated(2).Places(2), 5);
  EXPECT_FALSE(view.demand);
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_THAT(plan.keep_places, IsEmpty());
}

TEST(GangYield, EachMemberThatEndsIsToldTheDeadlineOnceAndANewOneAgain) {
  const std::string deadline = kube::ToText(At(5));
  GangView view = Yielding(Running(3), 5);
  view.members[1].told_deadline = deadline;
  view.members[2].told_deadline = kube::ToText(At(3));
  const GangPlan plan = PlanGang(view);
  ASSERT_EQ(plan.notes.size(), 2U);
  EXPECT_EQ(plan.notes[0].member, &view.members[0]);
  EXPECT_EQ(plan.notes[1].member, &view.members[2]);
  EXPECT_EQ(plan.notes[1].deadline, deadline);
}

TEST(GangYield, WhenTheNoticeIsGoneItRunsOnAndTheDeadlineIsTakenBack) {
  GangView view = Running(2).Phase(kGangRunning, GangReason::kPreempting).Build();
  view.members[0].told_deadline = kube::ToText(At(5));
  const GangPlan plan = PlanGang(view);
  EXPECT_EQ(ReasonOf(plan), "Running");
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.notes[0].deadline, "");
}

TEST(GangYield, ADeadlineIsAnAnnotation) {
  const GangView view = Running(1).Build();
  const auto of = [&](const std::string& deadline) {
    return *DeadlinePatch({&view.members[0], deadline}).At({"metadata", "annotations", kPreemptionDeadlineAnnotation});
  };
  EXPECT_EQ(of("soon"), kube::Json("soon"));
  EXPECT_TRUE(of("").is_null());
}

// The deadline.

TEST(GangYield, GivesAllBackAtTheDeadlineWithoutABackOff) {
  const auto ran = [](api::PodGroup& group) {
    group.status.started_min_member = 3;
    group.status.attempts = 2;  // Of extras.
  };
  const GangView view = Yielding(Running(3).Group(ran).Phase(kGangRunning, GangReason::kPreempting), 0);
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Ends(plan), ElementsAre(0, 1, 2));
  EXPECT_EQ(plan.status.phase, kGangPending);
  EXPECT_EQ(ReasonOf(plan), "Preempted");
  EXPECT_THAT(MessageOf(plan), HasSubstr("gave the GPUs of its 3 members to team-b/bert"));
  EXPECT_EQ(plan.status.attempts, 0);
  EXPECT_EQ(plan.status.started_min_member, 0);
  EXPECT_FALSE(plan.status.next_attempt_time);
  EXPECT_FALSE(plan.status.schedule_start_time);
  EXPECT_THAT(plan.keep_places, IsEmpty());
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].reason, "Preempted");
}

TEST(GangYield, MembersThatNobodyMakesAgainStay) {
  GangView view = Yielding(Running(3), -1);
  view.members[0].has_controller = false;
  EXPECT_THAT(Ends(PlanGang(view)), ElementsAre(1, 2));
  for (Member& member : view.members) member.lifted_at.reset();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_EQ(ReasonOf(plan), "Running") << "it cannot yield";
}

// Otherwise it would take the GPUs again, before the one that they are for.
TEST(GangYield, ItDoesNotStartAgainBeforeTheNoticeIsGone) {
  const GangBuilder back = GangBuilder(2).Gated(2).Places(2).Phase(kGangPending, GangReason::kPreempted);
  GangView view = Yielding(back, -10);
  EXPECT_FALSE(view.demand);
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_EQ(ReasonOf(plan), "Preempted");
  EXPECT_EQ(MessageOf(plan), "before");
  EXPECT_THAT(plan.events, IsEmpty());
  EXPECT_THAT(Lifts(PlanGang(back.Build())), ElementsAre(0, 1));
}

TEST(GangYield, APreemptedMemberOfAJobSaysWhy) {
  const GangView view = Yielding(Running(1), 0);
  const kube::Json patch = DisruptionPatch(view, view.members[0]);
  const kube::Json& condition = patch.At({"status", "conditions"})->AsArray()->front();
  EXPECT_EQ(*condition.Find("reason"), kube::Json("GangPreempted"));
  EXPECT_THAT(*condition.Find("message")->AsString(), HasSubstr("team-b/bert"));
}

// What the queues know.

TEST(GangHolder, CountsMembersThatHaveBeenLetGo) {
  const GangView view =
      GangBuilder(2)
          .Bound(2)
          .Each([](Member& m) { m.bound_at = At(-10 - m.ordinal); })
          .Lifted(1)
          .Gated(2)
          .Each([](Member& m) { m.priority = 7; })
          .Group([](auto& group) {
            group.metadata.labels = {{api::kQueueNameLabel, "a"}, {api::kWorkloadClassLabel, "Inference"}};
          })
          .Build();
  const Holder holder = HolderOf(view);
  EXPECT_EQ(holder.queue_name, "a");
  EXPECT_EQ(holder.job_class, JobClass::kInference);
  EXPECT_EQ(holder.priority, 7);
  EXPECT_EQ(holder.workers, 3);
  EXPECT_EQ(holder.min_workers, 3) << "it yields as a whole";
  EXPECT_EQ(holder.wanted_workers, 5);
  EXPECT_EQ(holder.running_since, Notice(-11).by);
  EXPECT_TRUE(holder.comes_back);
}

TEST(GangHolder, OneThatWaitsHasNoWorkers) {
  const Holder holder = HolderOf(GangBuilder(2).Gated(2).Build());
  EXPECT_EQ(holder.workers + holder.wanted_workers, 0);
  EXPECT_EQ(holder.running_since, 0);
  EXPECT_TRUE(holder.comes_back);
}

TEST(GangHolder, DoesNotComeBackWithAMemberThatNobodyMakesAgainGated) {
  EXPECT_FALSE(HolderOf(Running(2).Each([](Member& m) { m.has_controller = false; }).Build()).comes_back);
  EXPECT_FALSE(HolderOf(Running(2).Each([](Member& m) { m.lifted_at.reset(); }).Build()).comes_back);
}

TEST(GangHolder, AnUnknownClassIsUnattendedAndTheConditionSaysSo) {
  const GangView view = GangBuilder(2)
                            .Gated(2)
                            .Group([](auto& group) {
                              group.metadata.labels = {{api::kWorkloadClassLabel, "Batch"}};
                            })
                            .Build();
  EXPECT_EQ(HolderOf(view).job_class, JobClass::kUnattended);
  EXPECT_THAT(MessageOf(PlanGang(view)),
              HasSubstr("\"Batch\", which counts as Unattended: set it to Interactive, Inference or Unattended"));
}

// A manager that died in a roll-back: the Job makes others once they are gone, and counts nothing that these do.
TEST(GangGivenUp, WhatItsJobCountsNoMoreEndsWhateverTheGangDoes) {
  const GangView view = GangBuilder(2)
                            .Running(2)
                            .Each([](Member& member) {
                              member.is_given_up = member.ordinal == 1;
                              if (member.is_given_up) member.state = MemberState::kEnding;
                            })
                            .Phase(kGangRunning, GangReason::kRunning)
                            .Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Ends(plan), ElementsAre(1));
}

}  // namespace
}  // namespace grus
