// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/policy/reservation_keeper.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class GangPlannerTest : public ::testing::Test {
 protected:
  const GangStanding& Standing(const std::string& key) { return *planner_.StandingOf(key); }
  bool IsPlaced(const std::string& key) { return Standing(key).is_placed; }
  // A pod of `owner` on a node.
  void Run(const std::string& uid, const std::string& node, std::int64_t gpus, const std::string& owner) {
    ledger_.Bind(uid, node, GpuPod(gpus).request, owner);
  }
  void Put(GangDemand gang, std::int64_t since, int priority = 0, std::optional<std::int64_t> runtime = {}) {
    gang.waiting_since = since;
    gang.priority = priority;
    gang.runtime_seconds = runtime;
    planner_.Put(std::move(gang));
  }

  ClusterLedger ledger_;
  GangPlanner planner_{ledger_, 60};
};

TEST_F(GangPlannerTest, APlacedGangHasPlacesUnderItsKey) {
  PutNodes(ledger_, 2);
  Put(Gang("t/g", 3, 4), 0);

  EXPECT_THAT(planner_.Plan(0), ElementsAre("t/g"));
  EXPECT_TRUE(IsPlaced("t/g"));
  EXPECT_EQ(Standing("t/g").placed, 3);
  EXPECT_EQ(ledger_.PlacesOf("t/g").size(), 3U);
  EXPECT_EQ(planner_.waiting(), 0U);
}

TEST_F(GangPlannerTest, ACompanionIsPlacedWithTheGangUnderItsOwnOwner) {
  PutNodes(ledger_, 1);
  GangDemand gang = Gang("t/job", 5, 2);
  gang.members.insert(gang.members.begin() + 2, Shared(GpuPod(1)));
  gang.companion = {2, "t/job/launcher"};
  gang.needed = 3;
  Put(gang, 0);

  planner_.Plan(0);
  EXPECT_EQ(Standing("t/job").placed, 4) << "three of the five, and the companion";
  EXPECT_EQ(ledger_.PlacesOf("t/job").size(), 3U);
  ASSERT_EQ(ledger_.PlacesOf("t/job/launcher").size(), 1U);
  EXPECT_EQ(ledger_.PlacesOf("t/job/launcher").front().shape, gang.members[2]);
}

TEST_F(GangPlannerTest, WithoutRoomForItsCompanionAGangProtectionNothing) {
  PutNodes(ledger_, 1);
  GangDemand gang = Gang("t/job", 4, 2);
  gang.members.push_back(Shared(GpuPod(1)));
  gang.companion = {4, "t/job/launcher"};
  gang.needed = 5;
  Put(gang, 0);

  planner_.Plan(0);
  EXPECT_FALSE(IsPlaced("t/job"));
  EXPECT_EQ(Standing("t/job").fitting, 4);
  EXPECT_THAT(ledger_.PlacesOf("t/job"), IsEmpty());
  EXPECT_THAT(ledger_.PlacesOf("t/job/launcher"), IsEmpty());
}

TEST_F(GangPlannerTest, AGangThatDoesNotFitHoldsNothing) {
  PutNodes(ledger_, 2);
  Put(Gang("t/g", 3, 8), 0);

  planner_.Plan(0);
  EXPECT_FALSE(IsPlaced("t/g"));
  EXPECT_THAT(ledger_.PlacesOf("t/g"), IsEmpty());
  EXPECT_EQ(Standing("t/g").fitting, 2);
}

TEST_F(GangPlannerTest, AsManyAsFitStartIfTheyAreEnough) {
  PutNodes(ledger_, 2);
  GangDemand gang = Gang("t/g", 5, 4);
  gang.needed = 3;
  Put(gang, 0);

  planner_.Plan(0);
  EXPECT_EQ(Standing("t/g").placed, 4);
}

TEST_F(GangPlannerTest, ThePriorityThenTheTimeThenTheKeyDecide) {
  PutNodes(ledger_, 1);
  Put(Gang("t/late", 1, 8), 9);
  Put(Gang("t/b", 1, 8), 5);
  Put(Gang("t/a", 1, 8), 5);
  Put(Gang("t/urgent", 1, 8), 20, 1);

  planner_.Plan(20);
  EXPECT_TRUE(IsPlaced("t/urgent"));
  EXPECT_EQ(Standing("t/a").position, 1);
  EXPECT_EQ(Standing("t/b").position, 2);
  EXPECT_EQ(Standing("t/late").position, 3);
}

TEST_F(GangPlannerTest, LaterGangsPassOneThatHasNotWaitedLong) {
  PutNodes(ledger_, 1);
  Run("p", "a", 4, "t/running");
  Put(Gang("t/large", 1, 8), 0);
  Put(Gang("t/small", 1, 4), 1);

  planner_.Plan(59);
  EXPECT_TRUE(IsPlaced("t/small"));
  EXPECT_EQ(planner_.next_change("t/large"), 60);
}

TEST_F(GangPlannerTest, WhenToPlanAgainIsSaidToTheGangThatItIsAbout) {
  PutNodes(ledger_, 1);
  Run("p", "a", 8, "t/running");
  planner_.SetEnd("t/running", 1000);
  Put(Gang("t/first", 1, 8), 0);
  Put(Gang("t/second", 1, 8), 10);
  planner_.Plan(20);
  EXPECT_EQ(planner_.next_change("t/first"), 60);
  EXPECT_EQ(planner_.next_change("t/second"), 70);
  EXPECT_EQ(planner_.next_change("t/running"), std::nullopt);

  planner_.Plan(70);
  EXPECT_EQ(planner_.next_change("t/first"), 1000);
  EXPECT_EQ(planner_.next_change("t/second"), std::nullopt) << "it hears of it when the reservation is given up";
}

TEST_F(GangPlannerTest, AGangThatWaitedLongKeepsOthersOffItsNodesOnly) {
  PutNodes(ledger_, 2);
  Run("p", "a", 2, "t/running");
  Run("q", "b", 4, "t/running");
  Put(Gang("t/large", 1, 8), 0);
  Put(Gang("t/small", 1, 4), 1);
  Put(Gang("t/medium", 1, 6), 2);

  planner_.Plan(60);
  EXPECT_TRUE(Standing("t/large").has_reservation);
  EXPECT_FALSE(Standing("t/large").expected_start);
  EXPECT_EQ(NodesOf(ledger_, "t/small"), "b") << "a, the emptier one, is reserved";
  EXPECT_EQ(Standing("t/medium").blocked_by, "t/large");

  ledger_.Release("p");
  EXPECT_THAT(planner_.Plan(61), UnorderedElementsAre("t/large", "t/medium"));
  EXPECT_EQ(NodesOf(ledger_, "t/large"), "a");
  EXPECT_EQ(Standing("t/medium").blocked_by, "");
}

TEST_F(GangPlannerTest, AReservationThatLeadsNowhereMakesWayForAsLongAsItLasted) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/forever");
  Put(Gang("t/large", 1, 8), 0);
  planner_.Plan(60);
  ASSERT_TRUE(Standing("t/large").has_reservation);
  EXPECT_EQ(planner_.next_change("t/large"), 660);
  Put(Gang("t/small", 1, 4), 100);
  planner_.Plan(659);
  EXPECT_EQ(Standing("t/small").blocked_by, "t/large");

  planner_.Plan(660);
  EXPECT_TRUE(IsPlaced("t/small"));
  EXPECT_FALSE(Standing("t/large").has_reservation);
  EXPECT_EQ(Standing("t/large").reserves_from, 1260);
  EXPECT_EQ(planner_.next_change("t/large"), 1260);

  planner_.Plan(1260);
  EXPECT_TRUE(Standing("t/large").has_reservation);
  EXPECT_FALSE(Standing("t/large").reserves_from);
}

TEST_F(GangPlannerTest, EachTurnOfAGangIsTwiceAsLong) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/forever");
  Put(Gang("t/large", 1, 8), 0);
  planner_.Plan(60);
  planner_.Plan(660);
  planner_.Plan(1260);
  EXPECT_EQ(planner_.next_change("t/large"), 1260 + 1200);
  ledger_.Release("p");
  planner_.Plan(1300);
  EXPECT_EQ(NodesOf(ledger_, "t/large"), "a");

  Put(Gang("t/next", 1, 8), 1200);
  planner_.Plan(1301);
  EXPECT_EQ(planner_.next_change("t/next"), 1301 + 600);
}

TEST_F(GangPlannerTest, ALongTurnIsNotCutShortAndIsForgottenOnceItIsLongOver) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/forever");
  Put(Gang("t/large", 1, 8), 0);
  for (const int now : {60, 660, 1260, 2459}) planner_.Plan(now);
  EXPECT_TRUE(Standing("t/large").has_reservation);
  planner_.Plan(2460);
  EXPECT_EQ(Standing("t/large").reserves_from, 2460 + 1200);

  planner_.Remove("t/large");
  Put(Gang("t/large", 1, 8), 4000);
  planner_.Plan(2460 + 2 * 1200);
  EXPECT_EQ(planner_.next_change("t/large"), 2460 + 2 * 1200 + 600);
}

TEST_F(GangPlannerTest, WhoLeavesWithTheReservationLeavesItsRoom) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/forever");
  Put(Gang("t/large", 1, 8), 0);
  planner_.Plan(60);
  ASSERT_FALSE(ledger_.reserved().empty());

  planner_.Remove("t/large");
  EXPECT_TRUE(ledger_.reserved().empty());
  EXPECT_FALSE(planner_.reservations().IsOwner("t/large"));
}

TEST_F(GangPlannerTest, AGangThatSeemsToHaveWaitedSinceTheFutureMayReserve) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/forever");
  Put(Gang("t/large", 1, 8), 3600);
  planner_.Plan(60);
  EXPECT_TRUE(Standing("t/large").has_reservation);
}

TEST_F(GangPlannerTest, TheTurnOfOneNamespaceIsFollowedByThatOfAnother) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/forever");
  Put(Gang("t/first", 1, 8), 0);
  Put(Gang("t/second", 1, 8), 1);
  Put(Gang("u/third", 1, 8), 2);
  planner_.Plan(70);
  ASSERT_TRUE(Standing("t/first").has_reservation);

  planner_.Plan(670);
  EXPECT_FALSE(Standing("t/second").has_reservation) << "of the same namespace";
  EXPECT_TRUE(Standing("u/third").has_reservation);
}

TEST_F(GangPlannerTest, AReservationWhoseEndIsKnownStays) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/running");
  planner_.SetEnd("t/running", 5000);
  Put(Gang("t/large", 1, 8), 0);
  planner_.Plan(60);
  planner_.Plan(4000);
  EXPECT_TRUE(Standing("t/large").has_reservation);
}

TEST_F(GangPlannerTest, AStartThatIsYearsAwayKeepsRoomForOneTurn) {
  PutNodes(ledger_, 1);
  Run("p", "a", 1, "t/running");
  planner_.SetEnd("t/running", 300'000'000);
  Put(Gang("t/large", 1, 8), 0);
  planner_.Plan(60);
  EXPECT_TRUE(Standing("t/large").has_reservation);
  EXPECT_EQ(planner_.next_change("t/large"), 660);
  planner_.Plan(660);
  EXPECT_FALSE(Standing("t/large").has_reservation);
  EXPECT_EQ(Standing("t/large").reserves_from, 1260);
}

TEST_F(GangPlannerTest, WhatTheReservationDoesNotNeedMayBeUsed) {
  PutNodes(ledger_, 1);
  Run("p", "a", 4, "t/running");
  Put(Gang("t/large", 1, 6), 0);
  Put(Gang("t/two", 1, 2), 1);
  planner_.Plan(60);
  EXPECT_EQ(Standing("t/two").blocked_by, "t/large") << "4 + 6 + 2 are more than 8";

  ledger_.Bind("p", "a", GpuPod(3).request, "t/running");
  Put(Gang("t/one", 1, 0), 2);
  planner_.Plan(62);
  EXPECT_TRUE(IsPlaced("t/one"));
}

TEST_F(GangPlannerTest, AGangThatEndsBeforeTheExpectedStartMayUseTheRoom) {
  PutNodes(ledger_, 1);
  Run("p", "a", 4, "t/running");
  planner_.SetEnd("t/running", 1000);
  Put(Gang("t/large", 1, 8), 0);
  Put(Gang("t/unknown", 1, 2), 1);
  Put(Gang("t/long", 1, 2), 2, 0, 901);
  Put(Gang("t/short", 1, 2), 3, 0, 900);

  planner_.Plan(100);
  EXPECT_EQ(Standing("t/large").expected_start, 1000);
  EXPECT_FALSE(IsPlaced("t/unknown"));
  EXPECT_FALSE(IsPlaced("t/long"));
  EXPECT_EQ(Standing("t/long").blocked_by, "t/large");
  EXPECT_TRUE(IsPlaced("t/short"));
}

TEST_F(GangPlannerTest, TheReservationIsWhereTheGangCanStartSoonest) {
  PutNodes(ledger_, 3);
  for (const char* node : {"a", "b", "c"}) Run(node, node, 8, std::string("t/") + node);
  planner_.SetEnd("t/a", 3000);
  planner_.SetEnd("t/b", 1000);
  planner_.SetEnd("t/c", 2000);
  Put(Gang("t/large", 2, 8), 0);

  planner_.Plan(100);
  EXPECT_EQ(Standing("t/large").expected_start, 2000);
  ledger_.Release("a");
  Put(Gang("t/small", 1, 8), 1);
  planner_.Plan(102);
  EXPECT_EQ(Standing("t/large").expected_start, 1000) << "a is free earlier than was said";
}

TEST_F(GangPlannerTest, WhatEndsInTheSameSecondAddsToTheReservation) {
  PutNodes(ledger_, 5);
  for (const char* node : {"a", "b", "c", "d", "e"}) Run(node, node, 8, "t/old");
  Put(Gang("t/two", 2, 8), 0);
  Put(Gang("t/three", 3, 8), 1);
  Put(Gang("t/one", 1, 8), 2);
  planner_.Plan(100);

  for (const char* node : {"a", "b", "c"}) ledger_.Release(node);
  planner_.Plan(100);
  ASSERT_TRUE(IsPlaced("t/two"));
  for (const char* node : {"d", "e"}) {
    ledger_.Release(node);
    planner_.Plan(100);
    EXPECT_FALSE(IsPlaced("t/one")) << node << " is one of the nodes that t/three lacks";
  }
  EXPECT_TRUE(IsPlaced("t/three"));
}

TEST_F(GangPlannerTest, AReservationFollowsWhenTheSchedulerTakesAnotherNodeThanWasPlanned) {
  PutNodes(ledger_, 4);
  for (const char* node : {"a", "b", "c", "d"}) Run(node, node, 8, "t/old");
  Put(Gang("t/one", 1, 8), 0);
  Put(Gang("t/two", 2, 8), 1);
  Put(Gang("t/last", 1, 8), 2);
  for (const char* node : {"c", "d"}) ledger_.Release(node);
  planner_.Plan(100);
  ASSERT_TRUE(IsPlaced("t/one"));
  const std::string planned = ledger_.PlacesOf("t/one").front().node;

  ledger_.Bind("one-0", planned == "c" ? "d" : "c", GpuPod(8).request, "t/one");
  planner_.Plan(100);

  EXPECT_FALSE(IsPlaced("t/last")) << planned << " is what is left of the reservation";
}

TEST_F(GangPlannerTest, AHigherPriorityIsNotBoundByAReservation) {
  PutNodes(ledger_, 1);
  Run("p", "a", 4, "t/running");
  Put(Gang("t/large", 1, 8), 0);
  planner_.Plan(100);
  Put(Gang("t/urgent", 1, 4), 101, 1);

  planner_.Plan(101);
  EXPECT_TRUE(IsPlaced("t/urgent"));
}

TEST_F(GangPlannerTest, AGangGoesOnlyWhereItsVolumesCanBeUsed) {
  for (const char* name : {"a", "b"}) {
    NodeState node = GpuNode(name, name[0] == 'a' ? 3 : 8);
    node.labels["zone"] = name;
    ledger_.PutNode(node);
  }
  PodShape in_a = GpuPod(1);
  in_a.volume_affinity.resize(1);
  in_a.volume_affinity[0].terms.emplace_back().match_expressions = {{"zone", "In", {"a"}}};
  Put(Gang("t/anywhere", 1, Shared(GpuPod(1))), 0);
  Put(Gang("t/three", 3, Shared(in_a)), 1);
  Put(Gang("t/four", 4, Shared(in_a)), 2);
  planner_.Plan(3);
  EXPECT_TRUE(Standing("t/four").can_never_fit);
  EXPECT_EQ(Standing("t/four").eligible_nodes, 1);
  // The first may have taken a GPU of "a"; without it there is room for three.
  ledger_.DropPlaces("t/anywhere");
  planner_.Plan(4);
  EXPECT_EQ(NodesOf(ledger_, "t/three"), "aaa");
}

// A node that is not ready, or cordoned, comes back: nothing is wrong with the gang.
TEST_F(GangPlannerTest, AGangThatWouldFitOnAClosedNodeIsNotHopeless) {
  PutNodes(ledger_, 1);
  NodeState closed = GpuNode("real-0", 8);
  closed.taints = {{"node.kubernetes.io/not-ready", "", "NoSchedule"}};
  ledger_.PutNode(closed);
  NodeState others = GpuNode("tainted", 8);
  others.taints = {{"team", "b", "NoSchedule"}};
  ledger_.PutNode(others);
  Put(Gang("t/both", 4, 4), 0);
  Put(Gang("t/more", 6, 4), 1);
  Put(Gang("t/large", 1, 9), 2);
  planner_.Plan(100);
  EXPECT_TRUE(Standing("t/both").can_never_fit) << "it reserves nothing";
  EXPECT_FALSE(Standing("t/both").is_hopeless());
  EXPECT_THAT(Standing("t/both").closed, ElementsAre("real-0"));
  EXPECT_TRUE(Standing("t/more").is_hopeless()) << "also with that node";
  EXPECT_TRUE(Standing("t/large").is_hopeless());

  ledger_.PutNode(GpuNode("real-0", 8));
  planner_.Plan(101);
  EXPECT_TRUE(IsPlaced("t/both"));
}

TEST_F(GangPlannerTest, AGangThatCanNeverFitReservesNothing) {
  PutNodes(ledger_, 1);
  Run("p", "a", 4, "t/running");
  Put(Gang("t/impossible", 2, 8), 0);
  GangDemand mixed = Gang("t/mixed", 1, 8);  // Each of its kinds would fit alone.
  mixed.members.push_back(Shared(GpuPod(1)));
  mixed.needed = 2;
  Put(mixed, 1);
  Put(Gang("t/small", 1, 4), 2);

  planner_.Plan(100);
  EXPECT_TRUE(Standing("t/impossible").can_never_fit);
  EXPECT_EQ(Standing("t/impossible").capacity, 1);
  EXPECT_TRUE(Standing("t/mixed").can_never_fit);
  EXPECT_TRUE(IsPlaced("t/small"));
}

// The largest member takes the node of 6, which leaves no place for three of the others; on the node of 7 it would.
TEST_F(GangPlannerTest, OfAGangWhosePlacesTheSearchMissesNobodySaysThatItCanNeverFit) {
  ledger_.PutNode(GpuNode("a", 7));
  ledger_.PutNode(GpuNode("b", 6));
  GangDemand gang = Gang("t/g", 1, 4);
  for (int i = 0; i < 3; ++i) gang.members.push_back(Shared(GpuPod(3)));
  gang.needed = 4;
  Put(gang, 0);

  planner_.Plan(100);
  EXPECT_FALSE(Standing("t/g").can_never_fit);
  EXPECT_FALSE(Standing("t/g").has_reservation) << "room that becomes free would not help it";

  ledger_.PutNode(GpuNode("a", 6));
  planner_.Plan(200);
  EXPECT_TRUE(Standing("t/g").can_never_fit) << "13 GPUs are needed, 12 are there";
}

TEST_F(GangPlannerTest, ALargeMemberLeavesTheOnlyNodeOfSmallOnesToThem) {
  for (const char* name : {"a", "b"}) {
    NodeState node = GpuNode(name, 2);
    node.labels["zone"] = name;
    ledger_.PutNode(node);
  }
  for (const char* zone : {"a", "b"}) {
    GangDemand gang = Gang("t/" + std::string(zone), 1, 2);
    PodShape small = GpuPod(1);
    small.node_selector["zone"] = zone;
    gang.members.resize(3, Shared(small));
    gang.needed = 3;
    Put(gang, 0);
    planner_.Plan(1);
    EXPECT_TRUE(IsPlaced(gang.key)) << zone;
    ledger_.DropPlaces(gang.key);
  }
}

TEST_F(GangPlannerTest, ExtrasComeAfterAllThatWaitAndNeverWithReservedRoom) {
  PutNodes(ledger_, 1);
  GangDemand extras = Gang("t/running", 8, 1);
  extras.needed = 0;
  Put(extras, 0);
  Put(Gang("t/g", 1, 6), 5);

  planner_.Plan(5);
  EXPECT_TRUE(IsPlaced("t/g"));
  EXPECT_EQ(Standing("t/running").placed, 2);

  Put(Gang("t/large", 1, 8), 6);
  extras.members.resize(6);
  Put(extras, 0);
  ledger_.DropPlaces("t/running");
  planner_.Plan(66);
  EXPECT_TRUE(Standing("t/large").has_reservation);
  EXPECT_FALSE(IsPlaced("t/running"));
}

TEST_F(GangPlannerTest, NodesToAvoidAreNotUsed) {
  PutNodes(ledger_, 2);
  GangDemand gang = Gang("t/g", 1, 8);
  gang.avoid = {"b", "never-was"};
  Put(gang, 0);
  planner_.Plan(0);
  EXPECT_EQ(NodesOf(ledger_, "t/g"), "a");
}

TEST_F(GangPlannerTest, TheStandingTellsWhatIsLackingAndWhoHoldsIt) {
  PutNodes(ledger_, 4);
  ledger_.PutNode(GpuNode("cpu", 0));
  Run("p1", "a", 8, "t/x");
  Run("p2", "b", 8, "t/x");
  Run("p3", "c", 3, "t/y");
  Run("p4", "c", 1, "");
  Run("p5", "d", 1, "t/z");
  Put(Gang("t/g", 3, 8), 0);

  planner_.Plan(0);
  const GangStanding& standing = Standing("t/g");
  EXPECT_EQ(standing.fitting, 0);
  EXPECT_EQ(standing.capacity, 3);
  EXPECT_EQ(standing.lacking, kGpuResource);
  EXPECT_EQ(standing.lacking_free, 11);
  EXPECT_EQ(standing.lacking_total, 32);
  EXPECT_EQ(standing.eligible_nodes, 4);
  EXPECT_THAT(standing.uses, ElementsAre(DeviceUse{"t/x", 16}, DeviceUse{"t/y", 3}, DeviceUse{"", 1}));
}

TEST_F(GangPlannerTest, NothingIsSaidTwice) {
  PutNodes(ledger_, 1);
  Put(Gang("t/g", 2, 8), 0);
  EXPECT_THAT(planner_.Plan(0), ElementsAre("t/g"));
  EXPECT_THAT(planner_.Plan(1), IsEmpty());
  Put(Gang("t/g", 2, 8), 0);
  EXPECT_THAT(planner_.Plan(2), ElementsAre("t/g")) << "another shape pointer is another demand";

  Run("p", "a", 8, "t/x");
  EXPECT_THAT(planner_.Plan(3), ElementsAre("t/g"));
  planner_.Remove("t/g");
  EXPECT_EQ(planner_.StandingOf("t/g"), nullptr);
  EXPECT_THAT(planner_.Plan(4), IsEmpty());
}

TEST_F(GangPlannerTest, OneThatIsRemovedGivesItsReservationUp) {
  PutNodes(ledger_, 1);
  Run("p", "a", 4, "t/running");
  Put(Gang("t/large", 1, 8), 0);
  Put(Gang("t/small", 1, 4), 1);
  planner_.Plan(60);
  EXPECT_FALSE(IsPlaced("t/small"));

  planner_.Remove("t/large");
  EXPECT_THAT(planner_.Plan(60), ElementsAre("t/small"));
  EXPECT_TRUE(IsPlaced("t/small"));
}

TEST_F(GangPlannerTest, WhatWasCountedForAShapeThatIsGoneIsNotTakenForThatOfAnother) {
  PutNodes(ledger_, 1);
  Run("p", "a", 4, "t/running");
  Put(Gang("t/large", 1, 8), 0);
  Put(Gang("t/small", 1, 4), 1);
  planner_.Plan(60);
  ASSERT_EQ(Standing("t/small").blocked_by, "t/large");

  // Its index may lie where that of the smaller one lay.
  planner_.Remove("t/small");
  Put(Gang("t/medium", 1, 6), 2);
  planner_.Plan(60);

  EXPECT_EQ(Standing("t/medium").blocked_by, "");
}

TEST_F(GangPlannerTest, AReservationOnANodeThatGoesIsMadeAnew) {
  PutNodes(ledger_, 2);
  Run("p", "a", 2, "t/running");
  Run("q", "b", 4, "t/running");
  Put(Gang("t/large", 1, 8), 0);
  planner_.Plan(60);
  ledger_.RemoveNode("a");
  ledger_.Release("p");
  Put(Gang("t/small", 1, 4), 1);

  planner_.Plan(60);
  EXPECT_TRUE(Standing("t/large").has_reservation);
  EXPECT_FALSE(IsPlaced("t/small"));
  ledger_.Release("q");
  planner_.Plan(60);
  EXPECT_TRUE(IsPlaced("t/large"));
}

}  // namespace
}  // namespace grus
