// SPDX-License-Identifier: Apache-2.0
// Gangs of plain pods and of StatefulSets, on the real scheduler.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

TEST_F(Gang, StartsWhenAllOfTheMinimumCan) {
  AddNodes(2, 8);
  CreateGroup(4);
  CreateSet(4, 4);

  ASSERT_TRUE(Await("the gang runs", [&] { return Runs(4); }));
  EXPECT_EQ(GroupReason(), "Running");
  EXPECT_EQ(Group()->status.scheduled, 4);
  EXPECT_EQ(Group()->status.occupied_by, ns() + "/gang");
}

TEST_F(Gang, WaitsWholeWhileItDoesNotFitAndSaysWhatIsMissing) {
  AddNode(8);
  CreateGroup(4);
  CreateSet(4, 4);

  ASSERT_TRUE(Await("it waits", [&] { return GroupReason() == "CannotFit"; }));
  EXPECT_TRUE(Await("it names what is missing", [&] { return GroupSays("nvidia.com/gpu"); }));
  EXPECT_TRUE(Await("all are gated", [&] { return Gated() == 4; }));
  EXPECT_EQ(Bound(), 0);

  AddNode(8);
  EXPECT_TRUE(Await("it runs once there is room", [&] { return Runs(4); }));
}

TEST_F(Gang, TwoThatFitOneAtATimeRunOneAfterTheOther) {
  AddNodes(2, 8);
  CreateGroup(4, "first");
  CreateGroup(4, "second");
  CreateSet(4, 4, "first");
  CreateSet(4, 4, "second");
  const auto one_runs = [&] { return Runs(4, "first") != Runs(4, "second"); };
  ASSERT_TRUE(Await("one of them runs", one_runs));
  const std::string winner = Runs(4, "first") ? "first" : "second", loser = winner == "first" ? "second" : "first";
  ASSERT_TRUE(Await("the other one waits", [&] { return GroupReason(loser) == "WaitingForRoom"; }));
  EXPECT_EQ(Bound(loser), 0);
  EXPECT_TRUE(Await("it says for whom", [&] { return GroupSays(ns() + "/" + winner, loser); }));

  Delete<kube::StatefulSet>(winner);
  EXPECT_TRUE(Await("then the other one runs", [&] { return Runs(4, loser); }));
}

TEST_F(Gang, AnOutsiderThatComesInBetweenKeepsTheGangWholeOrOut) {
  AddNodes(2, 8);
  CreateOutsider("early", 1);  // Competition is known of.
  ASSERT_TRUE(Await("it is bound", [&] { return IsBound(*ThePod("early")); }));
  CreateGroup(3);
  CreateSet(3, 5);  // Fits never: 2 x 8 GPUs hold two members of 5.
  ASSERT_TRUE(Await("it cannot fit", [&] { return GroupReason() == "CannotFit"; }));
  EXPECT_EQ(Bound(), 0);
}

TEST_F(Gang, APodThatIsResizedInPlaceLeavesLessRoom) {
  AddNodeWithoutKubelet(8);  // kwok's does not say that it could.
  CreateOutsider("service", 0, R"({"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"1"}}}]})");
  ASSERT_TRUE(Await("it has a node", [&] { return IsBound(*ThePod("service")); }));
  const auto resize = [&](const std::string& cpu) {
    Patch<kube::Pod>(
        "service",
        R"({"spec":{"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":")" + cpu + R"("}}}]}})",
        "resize");
  };
  resize("60");
  CreateGroup(2);
  CreateSet(
      2, 1, kGroup, kGroup,
      R"({"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"30"},"limits":{"nvidia.com/gpu":"1"}}}]})");

  ASSERT_TRUE(Await("the gang waits", [&] { return GroupReason() == "WaitingForRoom" && GroupSays("cpu"); }));
  EXPECT_TRUE(Await("both wait at their gates", [&] { return Gated() == 2; }));
  resize("2");
  EXPECT_TRUE(Await("it starts when there is room", [&] { return Bound() == 2; }));
}

TEST_F(Gang, WhatAPodAsksForAsAWholeCounts) {
  AddNode(8);
  CreateGroup(2);
  CreateSet(2, 1, kGroup, kGroup, R"({"resources":{"requests":{"cpu":"60"},"limits":{"cpu":"60"}}})");
  ASSERT_TRUE(Await("it cannot fit", [&] { return GroupReason() == "CannotFit" && GroupSays("cpu"); }));
  EXPECT_EQ(Gated(), 2);
}

TEST_F(Gang, AReplacementInARunningGangStartsAtOnce) {
  AddNodes(2, 8);
  CreateGroup(4);
  CreateSet(4, 4);
  ASSERT_TRUE(Await("the gang runs", [&] { return Runs(4); }));
  const std::string lost = std::string(Members().at(1)->metadata.uid);

  Delete<kube::Pod>("gang-1");

  EXPECT_TRUE(Await("all four are bound again", [&] {
    const PodList bound = Where(Members(), IsBound);
    return bound.size() == 4 &&
           std::none_of(bound.begin(), bound.end(), [&](const PodPtr& pod) { return pod->metadata.uid == lost; });
  }));
}

TEST_F(Gang, ExtrasStartAsRoomAppears) {
  AddNode(8);
  CreateGroup(2);
  CreateSet(4, 4);
  ASSERT_TRUE(Await("the minimum runs, and the others are there", [&] { return Runs(2) && Members().size() == 4; }));
  EXPECT_EQ(Gated(), 2);
  AddNode(4);
  ASSERT_TRUE(Await("one more", [&] { return Bound() == 3; }));
  AddNode(4);
  EXPECT_TRUE(Await("and the last", [&] { return Bound() == 4; }));
}

}  // namespace
}  // namespace grus::testing
