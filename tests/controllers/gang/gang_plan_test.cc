// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_plan.h"

#include <gmock/gmock.h>

#include "crds/types/sharing_names.h"
#include "tests/controllers/gang/gang_builder.h"

namespace grus {
namespace {

using testing::At;
using ::testing::ElementsAre;
using testing::GangBuilder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Lifts;
using testing::MessageOf;
using testing::ReasonOf;
using ::testing::SizeIs;

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

TEST(GangNeeds, OneOfWhichPodsWithoutAGateRunIsNotFirst) {
  const auto ungated = [](Member& member) { member.lifted_at.reset(); };
  const GangView view = GangBuilder(4).Running(1).Each(ungated).Gated(3).Build();
  EXPECT_GT(NeedsOf(view)->waiting_since, 0);
  EXPECT_EQ(NeedsOf(GangBuilder(4).Bound(1).Gated(3).Build())->waiting_since, 0) << "we have let it begin";
}

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

TEST(GangPlan, AGangThatItsQueueRefusesSaysSoByItsReason) {
  GangView view = GangBuilder(3).Gated(3).Build();
  view.standing.queue_refusal = "queue a is held: set its spec.stop to None to start jobs";
  EXPECT_EQ(ReasonOf(PlanGang(view)), "WaitingForQueue");
  view.standing.can_never_fit = true;
  EXPECT_EQ(ReasonOf(PlanGang(view)), "CannotFit");
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
  EXPECT_EQ(plan.lift[0].pinned_to, "node-1");
  EXPECT_EQ(plan.lift[1].pinned_to, "node-0");
}

TEST(GangPlan, AMemberThatNamesItsOwnHostIsNotPinned) {
  const auto named = [](Member& member) { member.has_own_hostname = true; };
  const GangPlan plan = PlanGang(GangBuilder(2).Gated(2).Each(named).Places(2).Pins().Build());
  ASSERT_THAT(plan.lift, SizeIs(2));
  EXPECT_EQ(plan.lift[0].pinned_to, "");
  EXPECT_EQ(plan.lift[1].pinned_to, "");
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

TEST(GangPlan, SaysThatAStatefulSetMakesItsPodsOneByOne) {
  const auto ordered = [](Member& member) {
    member.is_of_stateful_set = true;
    member.owner = "team-a/bert";
  };
  EXPECT_THAT(
      MessageOf(PlanGang(GangBuilder(8).Gated(1).Each(ordered).Build())),
      HasSubstr("7 more members must be created: unless StatefulSet team-a/bert has podManagementPolicy Parallel"));
  EXPECT_THAT(MessageOf(PlanGang(GangBuilder(8).Gated(2).Each(ordered).Build())),
              ::testing::EndsWith("6 more members must be created"));
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
  view.members[1].foreign_gate = "kueue.x-k8s.io/admission";
  EXPECT_FALSE(NeedsOf(view));
  const GangPlan plan = PlanGang(view);
  EXPECT_EQ(ReasonOf(plan), "GatedByOthers");
  EXPECT_THAT(MessageOf(plan),
              HasSubstr("1 member has a scheduling gate of another controller: kueue.x-k8s.io/admission"));
}

TEST(GangPlan, AMemberThatItsVolumeHoldsBackIsNotCountedOnAndTold) {
  GangView view = GangBuilder(2).Gated(2).Places(2).Build();
  view.members[1].volume_problem = "PersistentVolumeClaim team-a/data-1 does not exist";
  EXPECT_FALSE(NeedsOf(view));
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_EQ(ReasonOf(plan), "WaitingForRoom");
  EXPECT_EQ(MessageOf(plan),
            "1 of the 2 members that start together can be placed; gang-1 waits for its volume: "
            "PersistentVolumeClaim team-a/data-1 does not exist");
}

TEST(GangPlan, AnExtraThatItsVolumeHoldsBackKeepsNobodyFromStarting) {
  GangView view = GangBuilder(2).Gated(3).Places(2).Build();
  view.members[0].volume_problem = "PersistentVolumeClaim team-a/data-0 does not exist";
  const GangPlan plan = PlanGang(view);
  ASSERT_THAT(plan.lift, SizeIs(2));
  EXPECT_EQ(plan.lift[0].member->name, "gang-1");
  EXPECT_EQ(plan.lift[1].member->name, "gang-2");
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

TEST(GangPlan, HasFailedWhenOfThoseThatFailedOthersAreNotThereAnyMore) {
  const GangPlan plan = PlanGang(GangBuilder(3).Ended(1, MemberState::kFailed).Build());
  EXPECT_EQ(plan.status.phase, kGangFailed);
  EXPECT_THAT(MessageOf(plan), HasSubstr("1 member failed, 0 of the 3 members"));
}

TEST(GangPlan, WhatHasFinishedStaysSoWhileItsPodsAreDeleted) {
  const auto finished = [](GangBuilder builder) {
    return PlanGang(builder.Phase(kGangFinished, GangReason::kSucceeded)
                        .Group([](auto& g) { g.status.succeeded = g.status.scheduled = 4; })
                        .Build());
  };
  for (const int left : {1, 4, 8}) {
    const GangPlan plan = finished(GangBuilder(4).Ended(left, MemberState::kSucceeded));
    EXPECT_EQ(plan.status.phase, kGangFinished) << left;
    EXPECT_EQ(plan.status.succeeded, 4) << left;
    EXPECT_EQ(MessageOf(plan), "4 members succeeded") << left;
  }
  EXPECT_EQ(finished(GangBuilder(4).Ended(1, MemberState::kSucceeded).Gated(3)).status.succeeded, 1);
}

TEST(GangPlan, AFinishedRunCountsForNothing) {
  const GangPlan plan = PlanGang(GangBuilder(4)
                                     .Ended(4, MemberState::kPast)
                                     .Gated(2)
                                     .Places(2)
                                     .Phase(kGangFinished, GangReason::kSucceeded)
                                     .Group([](auto& g) { g.status.started_min_member = 4; })
                                     .Build());
  EXPECT_THAT(plan.lift, IsEmpty());
  EXPECT_EQ(plan.status.phase, kGangPending);
  EXPECT_EQ(plan.status.succeeded, 0);
  EXPECT_EQ(plan.status.started_min_member, 0);
}

TEST(GangPlan, PodsWithoutAGateThatAreTooFewAreNoStart) {
  const auto ungated = [](Member& member) { member.lifted_at.reset(); };
  const GangPlan plan = PlanGang(GangBuilder(4).Running(2).Each(ungated).Build());
  EXPECT_EQ(plan.status.phase, kGangPending);
  EXPECT_EQ(ReasonOf(plan), "WaitingForMembers");
}

TEST(GangStatus, NamesAllThatMakeItsMembers) {
  GangView view = GangBuilder(3).Running(3).Build();
  view.members[0].owner = "team-a/workers";
  view.members[1].owner = "team-a/driver";
  view.members[2].owner = "team-a/workers";
  EXPECT_EQ(PlanGang(view).status.occupied_by, "team-a/driver, team-a/workers");
}

TEST(GangPlan, AReplacementInARunningGangStartsAtOnceWithoutAPlace) {
  const GangView view = GangBuilder(4).Running(3).Gated(1).Phase(kGangRunning, GangReason::kRunning).Build();
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Lifts(plan), ElementsAre(3));
  EXPECT_EQ(ReasonOf(plan), "BelowMinimum");
  EXPECT_FALSE(plan.status.schedule_start_time) << "its time runs from when all that it lacks are the scheduler's";
}

// Of a running gang of four that lost two, which ask for parts of GPUs; `places` of these have one.
GangView LostTwoParts(int places) {
  PodShape shape = *GangBuilder::Shape();
  shape.request = {};
  shape.request.AddExtended(api::kGpuMilliResource, 600);
  const auto part = std::make_shared<const PodShape>(shape);
  GangView view = GangBuilder(4).Running(2).Gated(2).Phase(kGangRunning, GangReason::kRunning).Build();
  for (Member& member : view.members) member.shape = part;
  for (int i = 0; i < places; ++i) view.places.push_back({"node-0", part, "GPU-" + std::to_string(i)});
  view.must_nominate = places > 0;
  return view;
}

TEST(GangPlan, AReplacementWithPartOfAGpuIsFirstNominatedForItsNode) {
  GangView view = LostTwoParts(2);
  GangPlan plan = PlanGang(view);
  EXPECT_THAT(Lifts(plan), IsEmpty());
  ASSERT_EQ(plan.nominate.size(), 2U);
  EXPECT_EQ(plan.nominate.front().node, "node-0");

  for (Member& member : view.members) {
    if (member.state == MemberState::kGated) member.nominated = "node-0";
  }
  plan = PlanGang(view);
  EXPECT_THAT(plan.nominate, IsEmpty());
  ASSERT_THAT(Lifts(plan), ElementsAre(2, 3));
  EXPECT_EQ(plan.lift[0].gpu, "GPU-0");
  EXPECT_EQ(plan.lift[1].gpu, "GPU-1");
}

TEST(GangPlan, AReplacementForWhichNoGpuHasRoomStaysGatedAndItsGangsTimeRuns) {
  EXPECT_THAT(Lifts(PlanGang(LostTwoParts(0))), IsEmpty());
  GangView view = LostTwoParts(1);
  for (Member& member : view.members) member.nominated = "node-0", member.created_at = At(-5);
  const GangPlan plan = PlanGang(view);
  EXPECT_THAT(Lifts(plan), ElementsAre(2));
  EXPECT_EQ(plan.status.schedule_start_time, At(-5));
}

TEST(GangPlan, AMemberThatSomebodyEndsIsNoSurprise) {
  const auto below = [](int ending) {
    return PlanGang(GangBuilder(4)
                        .Running(3)
                        .Ended(ending, MemberState::kEnding)
                        .Phase(kGangRunning, GangReason::kRunning)
                        .Build());
  };
  EXPECT_EQ(ReasonOf(below(1)), "BelowMinimum");
  EXPECT_THAT(below(1).events, IsEmpty());
  EXPECT_FALSE(below(0).events.empty());
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

TEST(GangPlan, UngateShowsTheDemandToAClusterAutoscaler) {
  const auto ungate = [](auto& group) { group.spec.when_unschedulable = api::WhenUnschedulable::kUngate; };
  EXPECT_THAT(Lifts(PlanGang(GangBuilder(2).Gated(3).Group(ungate).Build())), ElementsAre(0, 1));
  EXPECT_THAT(PlanGang(GangBuilder(4).Gated(3).Group(ungate).Build()).lift, IsEmpty()) << "not all of it exists";
}

TEST(GangPlan, AGroupThatIsBeingDeletedIsLeftAlone) {
  EXPECT_TRUE(
      PlanGang(GangBuilder(2).Gated(2).Places(2).Group([](auto& g) { g.metadata.deletion_timestamp = At(-1); }).Build())
          .is_ignored);
}

}  // namespace
}  // namespace grus
