// SPDX-License-Identifier: Apache-2.0
// When the time of a gang is over, what is rolled back, and when it is tried again.
#include <gmock/gmock.h>

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
using ::testing::Not;
using testing::ReasonOf;
using ::testing::UnorderedElementsAre;

TEST(GangRollBack, TheTimeOfAGangBeginsWithItsGatesWhateverAnEarlierStartLeftInItsStatus) {
  for (const char* pending : {kGangPending, "PreScheduling"}) {  // The latter is how scheduling.sigs.k8s.io says it.
    const GangView view = GangBuilder(2)
                              .Lifted(2, -1)
                              .Phase(pending, GangReason::kWaitingForRoom)
                              .Group([](auto& g) { g.status.schedule_start_time = At(-300); })
                              .Build();
    const GangPlan plan = PlanGang(view);
    EXPECT_THAT(plan.end, IsEmpty()) << pending;
    EXPECT_EQ(plan.status.schedule_start_time, At(-1)) << pending;
  }
}

TEST(GangRollBack, BelowItsMinimumWhenItsTimeIsOverItIsRolledBackWhole) {
  GangView view = GangBuilder(3).Bound(2, -70).Lifted(1, -70).Build();
  view.members[2].unschedulable_message = "0/2 nodes are available";
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Ends(plan), ElementsAre(2, 0, 1)) << "first the one that would get what the others leave";
  EXPECT_EQ(ReasonOf(plan), "BackingOff");
  EXPECT_EQ(plan.status.attempts, 1);
  EXPECT_EQ(plan.status.next_attempt_time, At(10));
  EXPECT_THAT(MessageOf(plan), HasSubstr("2 of the 3 members"));
  EXPECT_THAT(MessageOf(plan), HasSubstr("0/2 nodes are available"));
  EXPECT_THAT(plan.keep_places, IsEmpty());
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].type, kube::EventType::kWarning);
}

TEST(GangRollBack, ASchedulerThatSaidNothingOfItsMembersIsNamed) {
  GangView view = GangBuilder(2).Lifted(2, -70).Build();
  for (Member& member : view.members) member.silent_scheduler = "volcano";
  const std::string hint = "scheduler \"volcano\" has said nothing of pod " + view.members[0].name + ": does it run?";
  EXPECT_THAT(MessageOf(PlanGang(view)), HasSubstr(hint));
  view.now = At(-41);
  EXPECT_THAT(MessageOf(PlanGang(view)), Not(HasSubstr("volcano"))) << "it has had 29 s";
}

TEST(GangRollBack, TheNextTryAvoidsTheNodesWhereMembersWereToGoAndDidNot) {
  const GangView view =
      GangBuilder(4).Bound(1, -70).Lifted(2, -70).Gated(1).Places(1, "node-1").Places(2, "node-2").Build();
  EXPECT_THAT(PlanGang(view).refused, ElementsAre("node-1", "node-2"));
  const GangView in_time = GangBuilder(2).Bound(1).Lifted(1).Places(1, "node-1").Build();
  EXPECT_THAT(PlanGang(in_time).refused, IsEmpty());
}

TEST(GangRollBack, ItsTimeIsScheduleTimeoutSecondsFromTheLift) {
  const auto timeout = [](auto& group) { group.spec.schedule_timeout_seconds = 20; };
  const GangPlan early = PlanGang(GangBuilder(2).Bound(1, -19).Lifted(1, -19).Group(timeout).Build());
  EXPECT_THAT(early.end, IsEmpty());
  EXPECT_EQ(early.look_again, kube::Duration(seconds(1)));
  EXPECT_FALSE(PlanGang(GangBuilder(2).Bound(1, -20).Lifted(1, -20).Group(timeout).Build()).end.empty());
}

TEST(GangRollBack, TheTimeBetweenTriesGrows) {
  const auto attempts = [](int n) { return [n](auto& group) { group.status.attempts = n; }; };
  const std::pair<int, int> kCases[] = {{0, 10}, {1, 20}, {2, 40}, {5, 320}, {6, 600}, {100, 600}};
  for (const auto& [before, wait] : kCases) {
    const GangPlan plan = PlanGang(GangBuilder(2).Bound(1, -70).Lifted(1, -70).Group(attempts(before)).Build());
    EXPECT_EQ(plan.status.next_attempt_time, At(wait)) << before;
  }
}

TEST(GangRollBack, ARollBackThatWasCutShortIsCarriedOn) {
  const GangView view = GangBuilder(3)
                            .Bound(1, -70)
                            .Gated(2)
                            .Phase(kGangPending, GangReason::kBackingOff)
                            .Group([](auto& g) { g.status.next_attempt_time = At(8); })
                            .Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Ends(plan), ElementsAre(0));
  EXPECT_EQ(plan.status.attempts, 0) << "counted once";
  EXPECT_EQ(plan.look_again, kube::Duration(seconds(8)));
}

TEST(GangRollBack, NobodysPodsAreNotTakenAway) {
  const auto bare = [](Member& member) { member.has_controller = false; };
  EXPECT_THAT(PlanGang(GangBuilder(2).Bound(1, -70).Lifted(1, -70).Each(bare).Build()).end, IsEmpty())
      << "nobody would make them again";
  const auto ungated = [](Member& member) { member.lifted_at.reset(); };
  EXPECT_THAT(PlanGang(GangBuilder(2).Bound(1).Lifted(1).Each(ungated).Build()).end, IsEmpty()) << "not lifted by us";
}

TEST(GangRollBack, AGangThatRanIsRolledBackOnlyIfItsMembersAreThere) {
  const auto below = [](GangBuilder builder) {
    return builder.Phase(kGangScheduling, GangReason::kBelowMinimum)
        .Group([](auto& g) { g.status.schedule_start_time = At(-100); })
        .Build();
  };
  EXPECT_THAT(Ends(PlanGang(below(GangBuilder(3).Running(2).Lifted(1, -70)))), UnorderedElementsAre(0, 1, 2));
  const GangPlan missing = PlanGang(below(GangBuilder(3).Running(2)));
  EXPECT_THAT(missing.end, IsEmpty());
  EXPECT_THAT(MessageOf(missing), HasSubstr("1 more member must be created"));
}

TEST(GangRollBack, AGangThatRanWaitsForAReplacementThatIsLateAndThenForItsTime) {
  const auto running = [](GangBuilder builder) {
    return builder.Phase(kGangScheduling, GangReason::kBelowMinimum)
        .Group([](auto& g) {
          g.status.schedule_start_time = At(-1000);
          g.status.started_min_member = 4;
        })
        .Build();
  };
  const GangView view = running(GangBuilder(4).Running(3).Gated(1));
  const GangPlan gated = PlanGang(view);
  EXPECT_THAT(gated.end, IsEmpty());
  EXPECT_THAT(Lifts(gated), ElementsAre(3));
  const GangPlan in_time = PlanGang(running(GangBuilder(4).Running(3).Lifted(1, -59)));
  EXPECT_THAT(in_time.end, IsEmpty());
  EXPECT_EQ(in_time.look_again, kube::Duration(seconds(1)));
  EXPECT_THAT(MessageOf(in_time), HasSubstr("if it is not whole by " + kube::ToText(At(1))));
  const GangPlan one_of_two = PlanGang(running(GangBuilder(4).Running(2).Lifted(1, -600)));
  EXPECT_THAT(one_of_two.end, IsEmpty()) << "the other one is still to be made";
  const GangPlan last_counts = PlanGang(running(GangBuilder(4).Running(2).Lifted(1, -600).Lifted(1, -1)));
  EXPECT_THAT(last_counts.end, IsEmpty());
  EXPECT_THAT(Ends(PlanGang(running(GangBuilder(4).Running(3).Lifted(1, -60)))), UnorderedElementsAre(0, 1, 2, 3));
}

TEST(GangRollBack, OneThatCameTogetherAndDoesNotRunYetIsAlsoGivenTime) {
  const GangView view = GangBuilder(4)
                            .Bound(3, -300)
                            .Gated(1)
                            .Phase(kGangScheduling, GangReason::kStarting)
                            .Group([](auto& g) { g.status.started_min_member = 4; })
                            .Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_THAT(Lifts(plan), ElementsAre(3));
}

TEST(GangRollBack, AStartThatAnotherClockStampedAheadHasJustBegun) {
  const auto ahead = [](auto& g) { g.status.schedule_start_time = At(300); };
  const GangPlan plan = PlanGang(
      GangBuilder(2).Bound(1, 300).Lifted(1, 300).Phase(kGangScheduling, GangReason::kStarting).Group(ahead).Build());
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_EQ(plan.status.schedule_start_time, At(0));
}

TEST(GangRollBack, AReplacementThatAClockStampedAheadHasItsTimeAndNoMore) {
  const auto running = [](int said) {
    return GangBuilder(4)
        .Running(3)
        .Lifted(1, 3600)
        .Phase(kGangScheduling, GangReason::kBelowMinimum)
        .Group([said](auto& g) {
          g.status.started_min_member = 4;
          g.status.schedule_start_time = At(said);
        })
        .Build();
  };
  const GangPlan first = PlanGang(running(3600));
  EXPECT_THAT(first.end, IsEmpty());
  EXPECT_EQ(first.status.schedule_start_time, At(0));
  EXPECT_EQ(PlanGang(running(-59)).look_again, kube::Duration(seconds(1)));
  EXPECT_THAT(Ends(PlanGang(running(-60))), UnorderedElementsAre(0, 1, 2, 3));
}

TEST(GangRollBack, ARunThatFailedLeavesNoTimeToTheNext) {
  const GangPlan plan = PlanGang(GangBuilder(2)
                                     .Ended(2, MemberState::kPast)
                                     .Lifted(2, -1)
                                     .Phase(kGangFailed, GangReason::kFailed)
                                     .Group([](auto& g) { g.status.schedule_start_time = At(-1000); })
                                     .Build());
  EXPECT_THAT(plan.end, IsEmpty());
}

TEST(GangRollBack, TriesOfARunThatIsGoneDelayNoStart) {
  const GangView view = GangBuilder(2)
                            .Gated(2)
                            .Places(2)
                            .Phase(kGangRunning, GangReason::kRunning)
                            .Group([](auto& g) {
                              g.status.started_min_member = 2;
                              g.status.attempts = 5;
                              g.status.next_attempt_time = At(400);
                            })
                            .Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Lifts(plan), ElementsAre(0, 1));
  EXPECT_FALSE(plan.status.next_attempt_time);
  EXPECT_EQ(plan.status.attempts, 0);
}

TEST(GangRollBack, AGangThatRunsIsNotRolledBackBecauseItsMinimumWasRaised) {
  const GangView view = GangBuilder(4)
                            .Running(2)
                            .Gated(2)
                            .Phase(kGangScheduling, GangReason::kBelowMinimum)
                            .Group([](auto& g) {
                              g.status.schedule_start_time = At(-100);
                              g.status.started_min_member = 2;
                            })
                            .Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_THAT(plan.lift, IsEmpty()) << "the two that are new wait for a place";
  EXPECT_EQ(ReasonOf(plan), "BelowMinimum");
}

TEST(GangRollBack, AnExtraThatFindsNoNodeWaitsGatedAgain) {
  EXPECT_THAT(Ends(PlanGang(GangBuilder(2).Running(2).Lifted(1, -70).Build())), ElementsAre(2));
  EXPECT_THAT(PlanGang(GangBuilder(2).Running(2).Lifted(1, -50).Build()).end, IsEmpty());
}

// A gang of two that runs, `before` tries of whose extras were refused.
GangBuilder RunningAfter(int before) {
  return GangBuilder(2).Running(2).Phase(kGangRunning, GangReason::kRunning).Group([before](auto& group) {
    group.status.scheduled = 2;
    group.status.started_min_member = 2;
    group.status.attempts = before;
  });
}
auto NextTryAt(int at) {
  return [at](auto& group) { group.status.next_attempt_time = At(at); };
}

TEST(GangRollBack, TheTimeBetweenTriesOfExtrasGrowsUntilOneFindsItsNode) {
  const std::pair<int, int> kCases[] = {{0, 10}, {1, 20}, {6, 600}};
  for (const auto& [before, wait] : kCases) {
    const GangView view = RunningAfter(before).Lifted(1, -70).Build();
    const GangPlan plan = PlanGang(view);
    EXPECT_THAT(Ends(plan), ElementsAre(2)) << before;
    EXPECT_EQ(plan.status.attempts, before + 1);
    EXPECT_EQ(plan.status.next_attempt_time, At(wait)) << before;
    EXPECT_EQ(ReasonOf(plan), "Running");
  }
  const GangPlan progress = PlanGang(RunningAfter(6).Bound(1).Lifted(1, -70).Build());
  EXPECT_EQ(progress.status.next_attempt_time, At(10));
}

TEST(GangRollBack, UntilTheNextTryNoExtraIsAskedForOrLifted) {
  const GangBuilder gang = RunningAfter(1).Gated(2).Places(1);
  const GangView waits = GangBuilder(gang).Group(NextTryAt(8)).Build();
  EXPECT_FALSE(NeedsOf(waits));
  const GangPlan plan = PlanGang(waits);
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_THAT(plan.keep_places, IsEmpty());
  EXPECT_EQ(plan.look_again, kube::Duration(seconds(8)));
  EXPECT_THAT(MessageOf(plan), HasSubstr("2 more wait for room, and the next try begins at "));

  const GangView goes_on = GangBuilder(gang).Group(NextTryAt(-1)).Build();
  EXPECT_TRUE(NeedsOf(goes_on));
  EXPECT_THAT(Lifts(PlanGang(goes_on)), ElementsAre(2));
  EXPECT_EQ(PlanGang(goes_on).status.attempts, 1) << "whether it succeeds is not known yet";
}

TEST(GangRollBack, TheNextTryOfAnExtraAvoidsItsNodeAndOneThatIsUnderWayGoesOn) {
  GangView view = RunningAfter(0).Lifted(2, -70).Places(1, "node-1").Places(1, "node-2").Build();
  view.members[3].lifted_at = At(-1);
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Ends(plan), ElementsAre(2));
  EXPECT_THAT(plan.refused, ElementsAre("node-1"));
  ASSERT_EQ(plan.keep_places.size(), 1U);
  EXPECT_EQ(plan.keep_places[0].node, "node-2");
}

TEST(GangRollBack, TriesOfExtrasDelayNoReplacementBelowTheMinimumAndAreNotCountedAmongItsStarts) {
  const GangView view = GangBuilder(3)
                            .Running(2)
                            .Gated(1)
                            .Phase(kGangRunning, GangReason::kRunning)
                            .Group([](auto& group) {
                              group.status.started_min_member = 3;
                              group.status.attempts = 5;
                            })
                            .Group(NextTryAt(100))
                            .Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_THAT(Lifts(plan), ElementsAre(2));
  EXPECT_EQ(plan.status.attempts, 0);
  EXPECT_FALSE(plan.status.next_attempt_time);
}

TEST(GangStatus, WhenExtrasAreTriedAgainIsWrittenBeforeTheyAreEnded) {
  const GangView view = RunningAfter(0).Lifted(1, -70).Build();
  EXPECT_FALSE(IsMinorGangChange(view.group->status, PlanGang(view).status));
}

}  // namespace
}  // namespace grus
