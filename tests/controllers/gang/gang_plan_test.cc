// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_plan.h"

#include <gmock/gmock.h>

#include "tests/controllers/gang/gang_builder.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::At;
using testing::GangBuilder;

std::vector<int> Lifts(const GangPlan& plan) {
  std::vector<int> ordinals;
  for (const Member* member : plan.lift) ordinals.push_back(member->ordinal);
  return ordinals;
}
std::vector<int> Ends(const GangPlan& plan) {
  std::vector<int> ordinals;
  for (const Member* member : plan.end) ordinals.push_back(member->ordinal);
  return ordinals;
}
std::string ReasonOf(const GangPlan& plan) { return testing::ReadyReason(plan.status.conditions); }
std::string MessageOf(const GangPlan& plan) { return testing::ReadyMessage(plan.status.conditions); }

// What is asked of the ledger.

TEST(GangNeeds, AskForTheMinimumOnlyWhenAllOfItExists) {
  EXPECT_FALSE(NeedsOf(GangBuilder(4).Gated(3).Build()));
  const auto demand = NeedsOf(GangBuilder(4).Gated(6).Build());
  ASSERT_TRUE(demand);
  EXPECT_EQ(demand->key, "team-a/gang");
  EXPECT_EQ(demand->needed, 4);
  EXPECT_EQ(demand->members.size(), 6U);
}

TEST(GangNeeds, CountWhatIsThereAlready) {
  struct Case {
    const char* rule;
    GangBuilder view;
    int needed;
    std::size_t members;
  };
  const Case kCases[] = {
      {"bound ones", GangBuilder(4).Bound(2).Gated(2), 2, 2},
      {"ended ones", GangBuilder(4).Ended(1, MemberState::kSucceeded).Gated(3), 3, 3},
      {"failed ones do not count", GangBuilder(4).Ended(1, MemberState::kFailed).Gated(4), 4, 4},
      {"lifted ones without a place", GangBuilder(4).Lifted(2).Gated(2), 4, 4},
      {"places", GangBuilder(4).Gated(6).Places(3), 1, 3},
      {"extras of a gang that runs are not urgent", GangBuilder(2).Running(2).Gated(2), 0, 2},
      {"nor replacements: they start anyway",
       GangBuilder(4).Running(3).Gated(1).Phase(kGangRunning, GangReason::kRunning), 0, 1},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.rule);
    const auto demand = NeedsOf(c.view.Build());
    ASSERT_TRUE(demand);
    EXPECT_EQ(demand->needed, c.needed);
    EXPECT_EQ(demand->members.size(), c.members);
  }
}

TEST(GangNeeds, NothingWhileItBacksOffOrWhenAllHavePlaces) {
  EXPECT_FALSE(NeedsOf(GangBuilder(2).Gated(2).Places(2).Build()));
  const auto with_next_try = [](int at) {
    const auto set = [at](auto& group) { group.status.next_attempt_time = At(at); };
    return GangBuilder(2).Gated(2).Group(set).Build();
  };
  EXPECT_FALSE(NeedsOf(with_next_try(5)));
  EXPECT_TRUE(NeedsOf(with_next_try(-5)));
}

// Which member gets which place.

TEST(GangAssign, AMemberKeepsTheNodeItIsPinnedTo) {
  const GangView view = GangBuilder(1)
                            .Lifted(2)
                            .Each([](Member& m) { m.pinned = m.ordinal == 0 ? "node-1" : "node-0"; })
                            .Places(1, "node-0")
                            .Places(1, "node-1")
                            .Build();
  const auto assigned = Assign(view);
  ASSERT_EQ(assigned.size(), 2U);
  EXPECT_EQ(assigned[0].place.node, "node-1");
}

TEST(GangAssign, AMemberKeepsTheNodeItWasNominatedForAndTheRestComeInOrder) {
  GangView view = GangBuilder(3).Gated(3).Build();
  view.members[2].nominated = "node-a";
  view.places = {{"node-a", GangBuilder::Shape()}, {"node-b", GangBuilder::Shape()}, {"node-c", GangBuilder::Shape()}};
  const std::vector<Assignment> assigned = Assign(view);
  ASSERT_EQ(assigned.size(), 3U);
  EXPECT_EQ(assigned[0].place.node, "node-b");
  EXPECT_EQ(assigned[1].place.node, "node-c");
  EXPECT_EQ(assigned[2].place.node, "node-a");
}

// Start.

TEST(GangPlan, LiftsTheGatesOfAllThatHavePlacesLowestOrdinalsFirst) {
  const GangView view = GangBuilder(3).Gated(4).Places(4).Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Lifts(plan), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(plan.nominate, IsEmpty());
  EXPECT_EQ(plan.keep_places.size(), 4U);
  EXPECT_EQ(ReasonOf(plan), "Starting");
  EXPECT_THAT(plan.events, IsEmpty());
}

TEST(GangPlan, LiftsNothingWhileTheMinimumHasNoPlace) {
  const GangView view = GangBuilder(3).Gated(3).Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_EQ(plan.status.phase, kGangPending);
  EXPECT_EQ(ReasonOf(plan), "WaitingForRoom");
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].reason, "WaitingForRoom");
}

TEST(GangPlan, WhileAForeignPodCouldComeInBetweenItNominatesFirstAndLiftsInALaterPass) {
  const GangView first = GangBuilder(2).Gated(2).Places(2).Competitors().Build();
  const GangPlan hold = PlanGang(first);
  EXPECT_EQ(hold.nominate.size(), 2U);
  EXPECT_THAT(hold.lift, IsEmpty());
  EXPECT_EQ(ReasonOf(hold), "Preparing");

  const GangView second = GangBuilder(2).Gated(2, "node-0").Places(2).Competitors().Build();
  const GangPlan go = PlanGang(second);
  EXPECT_THAT(go.nominate, IsEmpty());
  EXPECT_THAT(Lifts(go), ElementsAre(0, 1));
}

TEST(GangPlan, VerifiesTheNodesBeforeItLifts) {
  const GangPlan wait = PlanGang(GangBuilder(2).Gated(2, "node-0").Places(2).Competitors(Safety::kUndecided).Build());
  EXPECT_THAT(wait.lift, IsEmpty());
  EXPECT_FALSE(wait.must_replan);
  EXPECT_TRUE(wait.look_again);

  const GangPlan replan = PlanGang(GangBuilder(2).Gated(2, "node-0").Places(2).Competitors(Safety::kTaken).Build());
  EXPECT_THAT(replan.lift, IsEmpty());
  EXPECT_TRUE(replan.must_replan);
}

TEST(GangPlan, GatedMembersAreNominatedAnewWhenAnotherSchedulerLeads) {
  const auto nominated = [](const std::string& to) {
    return GangBuilder(2).Gated(2, "node-0").Each([&](Member& m) { m.nominated_to = to; }).Places(2).Competitors();
  };
  EXPECT_EQ(PlanGang(nominated("first").Scheduler("second").Build()).nominate.size(), 2U);
  EXPECT_THAT(PlanGang(nominated("first").Scheduler("second").Build()).lift, IsEmpty());
  EXPECT_THAT(Lifts(PlanGang(nominated("second").Scheduler("second").Build())), ElementsAre(0, 1));
  EXPECT_THAT(Lifts(PlanGang(nominated("first").Scheduler("").Build())), ElementsAre(0, 1)) << "its lease is hidden";
}

TEST(GangPlan, MembersThatAreLiftedAlreadyAreNotNominatedAnew) {
  const GangView view = GangBuilder(2)
                            .Lifted(1)
                            .Gated(1)
                            .Each([](Member& m) { m.nominated = "node-0"; })
                            .Places(2)
                            .Competitors()
                            .Scheduler("second")
                            .Build();
  const GangPlan plan = PlanGang(view);
  ASSERT_EQ(plan.nominate.size(), 1U);
  EXPECT_EQ(plan.nominate[0].member->ordinal, 1);
}

TEST(GangPlan, WhereNominationsDoNotHelpMembersArePinnedAsTheirGatesAreLifted) {
  const GangView view = GangBuilder(2).Gated(2).Places(1, "node-1").Places(1, "node-0").Pins().Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.nominate, IsEmpty());
  EXPECT_THAT(Lifts(plan), ElementsAre(0, 1));
  EXPECT_EQ(plan.pins.at(&view.members[0]), "node-1");
  EXPECT_EQ(plan.pins.at(&view.members[1]), "node-0");
}

TEST(GangPlan, AMemberThatNamesItsOwnHostIsNotPinned) {
  const auto named = [](Member& member) { member.has_own_hostname = true; };
  EXPECT_TRUE(PlanGang(GangBuilder(2).Gated(2).Each(named).Places(2).Pins().Build()).pins.empty());
}

TEST(GangPlan, ANominationWithoutAPlaceIsTakenBack) {
  const GangView view = GangBuilder(2).Gated(2, "node-0").Build();
  const GangPlan plan = PlanGang(view);
  ASSERT_EQ(plan.nominate.size(), 2U);
  EXPECT_EQ(plan.nominate[0].node, "");
}

TEST(GangPlan, SaysHowManyMembersExist) {
  const GangPlan plan = PlanGang(GangBuilder(8).Gated(3).Build());
  EXPECT_EQ(ReasonOf(plan), "WaitingForMembers");
  EXPECT_THAT(MessageOf(plan), HasSubstr("3 of the 8 members"));
  EXPECT_THAT(plan.lift, IsEmpty());
}

TEST(GangPlan, OneThatWasPlacedAndBoundBeforeItsPlacesWereReadIsSaidToStart) {
  GangView view = GangBuilder(3).Bound(1).Lifted(2).Places(1).Build();
  view.standing.is_placed = true;
  const GangPlan plan = PlanGang(view);
  EXPECT_EQ(ReasonOf(plan), "Starting");
  EXPECT_EQ(MessageOf(plan), "1 of the 3 members that start together have a node");
}

TEST(GangPlan, AMinimumBelowOneIsRefusedAndNothingStarts) {
  const GangPlan plan = PlanGang(GangBuilder(0).Gated(3).Places(3).Build());
  EXPECT_EQ(ReasonOf(plan), "InvalidMinimum");
  EXPECT_THAT(MessageOf(plan), HasSubstr("spec.minMember"));
  EXPECT_TRUE(kube::IsConditionTrue(plan.status.conditions, "Stalled"));
  EXPECT_THAT(plan.lift, IsEmpty());
}

TEST(GangPlan, AMemberWithGatesOfOthersIsNotCountedOn) {
  GangView view = GangBuilder(2).Gated(2).Build();
  view.members[1].has_foreign_gate = true;
  EXPECT_FALSE(NeedsOf(view));
  EXPECT_EQ(ReasonOf(PlanGang(view)), "GatedByOthers");
}

TEST(GangPlan, AMemberThatItsVolumeHoldsBackIsNotCountedOnAndTold) {
  GangView view = GangBuilder(2).Gated(2).Places(2).Build();
  view.members[1].volume_problem = "PersistentVolumeClaim team-a/data-1 does not exist";
  EXPECT_FALSE(NeedsOf(view));
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_EQ(ReasonOf(plan), "WaitingForRoom");
  EXPECT_EQ(MessageOf(plan), "1 of the 2 members that start together can be placed; gang-1 waits for its volume: "
                             "PersistentVolumeClaim team-a/data-1 does not exist");
}

TEST(GangPlan, AnExtraThatItsVolumeHoldsBackKeepsNobodyFromStarting) {
  GangView view = GangBuilder(2).Gated(3).Places(2).Build();
  view.members[0].volume_problem = "PersistentVolumeClaim team-a/data-0 does not exist";
  const GangPlan plan = PlanGang(view);
  ASSERT_THAT(plan.lift, SizeIs(2));
  EXPECT_EQ(plan.lift[0]->name, "gang-1");
  EXPECT_EQ(plan.lift[1]->name, "gang-2");
}

TEST(GangPlan, AReplacementWaitsForItsVolume) {
  GangView view = GangBuilder(2).Running(1).Gated(1).Phase(kGangRunning, GangReason::kRunning).Build();
  EXPECT_THAT(PlanGang(view).lift, SizeIs(1));
  view.members[1].volume_problem = "PersistentVolumeClaim team-a/data-1 is not bound to a volume yet";
  EXPECT_THAT(PlanGang(view).lift, IsEmpty());
}

// Together.

TEST(GangPlan, RunsWhenTheMinimumRuns) {
  const GangPlan bound = PlanGang(GangBuilder(3).Bound(3).Build());
  EXPECT_EQ(bound.status.phase, kGangScheduling);
  const GangPlan running = PlanGang(GangBuilder(3).Bound(1).Running(3).Build());
  EXPECT_EQ(running.status.phase, kGangRunning);
  EXPECT_EQ(running.status.scheduled, 4);
  EXPECT_EQ(running.status.running, 3);
  EXPECT_TRUE(kube::IsConditionTrue(running.status.conditions, "Ready"));
}

TEST(GangPlan, EndsWhenItsMembersHave) {
  EXPECT_EQ(PlanGang(GangBuilder(2).Ended(2, MemberState::kSucceeded).Build()).status.phase, kGangFinished);
  const GangView mixed = GangBuilder(2).Ended(1, MemberState::kSucceeded).Ended(1, MemberState::kFailed).Build();
  EXPECT_EQ(PlanGang(mixed).status.phase, kGangFailed);
  EXPECT_EQ(PlanGang(GangBuilder(2).Ended(1, MemberState::kSucceeded).Running(1).Build()).status.phase, kGangRunning);
}

TEST(GangPlan, AReplacementInARunningGangStartsAtOnceWithoutAPlace) {
  const GangView view = GangBuilder(4).Running(3).Gated(1).Phase(kGangRunning, GangReason::kRunning).Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Lifts(plan), ElementsAre(3));
  EXPECT_EQ(ReasonOf(plan), "BelowMinimum");
  EXPECT_EQ(plan.status.schedule_start_time, At(0)) << "its time runs from now";
}

TEST(GangPlan, ExtrasStartWhenTheyHaveAPlace) {
  const GangView without = GangBuilder(2).Running(2).Gated(2).Build();
  EXPECT_THAT(PlanGang(without).lift, IsEmpty());
  const GangView with_one = GangBuilder(2).Running(2).Gated(2).Places(1).Build();
  EXPECT_THAT(Lifts(PlanGang(with_one)), ElementsAre(2));
}

TEST(GangPlan, AGangWhoseMembersAllWentStartsWholeAgain) {
  const GangView view = GangBuilder(2).Gated(2).Phase(kGangRunning, GangReason::kRunning).Build();
  EXPECT_EQ(NeedsOf(view)->needed, 2);
  EXPECT_THAT(PlanGang(view).lift, IsEmpty());
}

// Roll back.

TEST(GangPlan, TheTimeOfAGangBeginsWithItsGatesWhateverAnEarlierStartLeftInItsStatus) {
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

TEST(GangPlan, BelowItsMinimumWhenItsTimeIsOverItIsRolledBackWhole) {
  GangView view = GangBuilder(3).Bound(2, -70).Lifted(1, -70).Build();
  view.members[2].unschedulable_message = "0/2 nodes are available";
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Ends(plan), ElementsAre(0, 1, 2));
  EXPECT_EQ(ReasonOf(plan), "BackingOff");
  EXPECT_EQ(plan.status.attempts, 1);
  EXPECT_EQ(plan.status.next_attempt_time, At(10));
  EXPECT_THAT(MessageOf(plan), HasSubstr("2 of the 3 members"));
  EXPECT_THAT(MessageOf(plan), HasSubstr("0/2 nodes are available"));
  EXPECT_THAT(plan.keep_places, IsEmpty());
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events[0].type, kube::EventType::kWarning);
}

TEST(GangPlan, TheNextTryAvoidsTheNodesWhereMembersWereToGoAndDidNot) {
  const GangView view =
      GangBuilder(4).Bound(1, -70).Lifted(2, -70).Gated(1).Places(1, "node-1").Places(2, "node-2").Build();
  EXPECT_THAT(PlanGang(view).refused, ElementsAre("node-1", "node-2"));
  const GangView in_time = GangBuilder(2).Bound(1).Lifted(1).Places(1, "node-1").Build();
  EXPECT_THAT(PlanGang(in_time).refused, IsEmpty());
}

TEST(GangPlan, ItsTimeIsScheduleTimeoutSecondsFromTheLift) {
  const auto timeout = [](auto& group) { group.spec.schedule_timeout_seconds = 20; };
  const GangPlan early = PlanGang(GangBuilder(2).Bound(1, -19).Lifted(1, -19).Group(timeout).Build());
  EXPECT_THAT(early.end, IsEmpty());
  EXPECT_EQ(early.look_again, kube::Duration(seconds(1)));
  EXPECT_FALSE(PlanGang(GangBuilder(2).Bound(1, -20).Lifted(1, -20).Group(timeout).Build()).end.empty());
}

TEST(GangPlan, TheTimeBetweenTriesGrows) {
  const auto attempts = [](int n) { return [n](auto& group) { group.status.attempts = n; }; };
  const std::pair<int, int> kCases[] = {{0, 10}, {1, 20}, {2, 40}, {5, 320}, {6, 600}, {100, 600}};
  for (const auto& [before, wait] : kCases) {
    const GangPlan plan = PlanGang(GangBuilder(2).Bound(1, -70).Lifted(1, -70).Group(attempts(before)).Build());
    EXPECT_EQ(plan.status.next_attempt_time, At(wait)) << before;
  }
}

TEST(GangPlan, ARollBackThatWasCutShortIsCarriedOn) {
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

TEST(GangPlan, NobodysPodsAreNotTakenAway) {
  const auto bare = [](Member& member) { member.has_controller = false; };
  EXPECT_THAT(PlanGang(GangBuilder(2).Bound(1, -70).Lifted(1, -70).Each(bare).Build()).end, IsEmpty())
      << "nobody would make them again";
  const auto ungated = [](Member& member) { member.lifted_at.reset(); };
  EXPECT_THAT(PlanGang(GangBuilder(2).Bound(1).Lifted(1).Each(ungated).Build()).end, IsEmpty()) << "not lifted by us";
}

TEST(GangPlan, AGangThatRanIsRolledBackOnlyIfItsMembersAreThere) {
  const auto below = [](GangBuilder builder) {
    return builder.Phase(kGangScheduling, GangReason::kBelowMinimum)
        .Group([](auto& g) { g.status.schedule_start_time = At(-100); })
        .Build();
  };
  EXPECT_THAT(Ends(PlanGang(below(GangBuilder(3).Running(2).Lifted(1, -70)))), ElementsAre(0, 1, 2));
  const GangPlan missing = PlanGang(below(GangBuilder(3).Running(2)));
  EXPECT_THAT(missing.end, IsEmpty());
  EXPECT_THAT(MessageOf(missing), HasSubstr("1 member more must be created"));
}

TEST(GangPlan, AGangThatRunsIsNotRolledBackBecauseItsMinimumWasRaised) {
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

TEST(GangPlan, AnExtraThatFindsNoNodeWaitsGatedAgain) {
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

TEST(GangPlan, TheTimeBetweenTriesOfExtrasGrowsUntilOneFindsItsNode) {
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

TEST(GangPlan, UntilTheNextTryNoExtraIsAskedForOrLifted) {
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

TEST(GangPlan, TheNextTryOfAnExtraAvoidsItsNodeAndOneThatIsUnderWayGoesOn) {
  GangView view = RunningAfter(0).Lifted(2, -70).Places(1, "node-1").Places(1, "node-2").Build();
  view.members[3].lifted_at = At(-1);
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Ends(plan), ElementsAre(2));
  EXPECT_THAT(plan.refused, ElementsAre("node-1"));
  ASSERT_EQ(plan.keep_places.size(), 1U);
  EXPECT_EQ(plan.keep_places[0].node, "node-2");
}

TEST(GangPlan, TriesOfExtrasDelayNoReplacementBelowTheMinimumAndAreNotCountedAmongItsStarts) {
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

TEST(GangPlan, UngateShowsTheDemandToAClusterAutoscaler) {
  const auto ungate = [](auto& group) { group.spec.when_unschedulable = api::WhenUnschedulable::kUngate; };
  EXPECT_THAT(Lifts(PlanGang(GangBuilder(2).Gated(3).Group(ungate).Build())), ElementsAre(0, 1));
  EXPECT_THAT(PlanGang(GangBuilder(4).Gated(3).Group(ungate).Build()).lift, IsEmpty()) << "not all of it exists";
}

TEST(GangPlan, AGroupThatIsBeingDeletedIsLeftAlone) {
  EXPECT_TRUE(PlanGang(GangBuilder(2).Gated(2).Places(2).Group([](auto& g) {
    g.metadata.deletion_timestamp = At(-1);
  }).Build()).is_ignored);
}

}  // namespace
}  // namespace grus
