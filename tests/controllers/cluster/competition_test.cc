// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/competition.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

using namespace std::chrono_literals;

constexpr char kAmd[] = "amd.com/gpu";

ShapePtr Shape(int cpus, int gpus = 0, const std::string& taint = {}) {
  PodShape shape;
  shape.request.milli_cpu = cpus * 1000;
  shape.request.pods = 1;
  if (gpus > 0) shape.request.AddExtended(kAmd, gpus);
  if (!taint.empty()) shape.tolerations.push_back({taint, "Exists", "", ""});
  return std::make_shared<const PodShape>(shape);
}

// One node of 64 CPUs and 8 GPUs that are not of NVIDIA.
class CompetitionTest : public ::testing::Test {
 protected:
  CompetitionTest() { ledger_.PutNode(Node()); }
  static NodeState Node() {
    NodeState node;
    node.name = "n1";
    node.allocatable.milli_cpu = 64'000;
    node.allocatable.pods = 110;
    node.allocatable.AddExtended(kAmd, 8);
    return node;
  }
  void Wait(const std::string& uid, const ShapePtr& need, const std::string& owner = {}, int priority = 0) {
    competition_.Put(uid, {owner, need, priority, true}, now_);
  }
  void KeepPlaces(const std::string& gang, const ShapePtr& shape, int count) {
    for (int i = 0; i < count; ++i) ledger_.AddPlace(gang, "n1", shape);
  }
  bool Threatens() { return competition_.Threatens("team-a/g", now_); }
  bool IsAtOne(int priority, kube::TimePoint held) const {
    return competition_.MayTakeOneOf(ledger_.PlacesOf("team-a/g"), "team-a/g", priority, held, now_);
  }

  ClusterLedger ledger_;
  Competition competition_{ledger_};
  kube::TimePoint now_{1000h};
};

TEST_F(CompetitionTest, AnybodyWhoAsksForTheDeviceOfAMember) {
  KeepPlaces("team-a/g", Shape(1, 2), 2);
  EXPECT_FALSE(Threatens());
  Wait("cpu", Shape(1));
  EXPECT_FALSE(Threatens()) << "it fits beside the gang";
  Wait("gpu", Shape(1, 1));
  EXPECT_TRUE(Threatens()) << "though four are free";
}

TEST_F(CompetitionTest, OfProcessorsOnlyMoreThanIsFreeBesideTheGang) {
  const ShapePtr member = Shape(20), one = Shape(2);
  KeepPlaces("team-a/g", member, 3);
  Wait("a", one);
  Wait("b", one);
  EXPECT_FALSE(Threatens()) << "4 of the 4 that are free";
  Wait("c", one);
  EXPECT_TRUE(Threatens());
  competition_.Remove("c", now_);
  EXPECT_TRUE(Threatens()) << "it may come again";
  now_ += 10min;
  EXPECT_FALSE(Threatens());
}

TEST_F(CompetitionTest, OneMoreOfEachKindThatRunsMayComeAtAnyTime) {
  const ShapePtr small = Shape(2), large = Shape(5);
  KeepPlaces("team-a/g", Shape(20), 3);
  for (int i = 0; i < 10; ++i) competition_.AddPresent(small);
  EXPECT_FALSE(Threatens());
  competition_.AddPresent(large);
  EXPECT_TRUE(Threatens()) << "5 of the 4 that are free";
  competition_.RemovePresent(large, now_);
  EXPECT_TRUE(Threatens());
  now_ += 10min;
  EXPECT_FALSE(Threatens());
}

TEST_F(CompetitionTest, NobodyWhoCouldNotUseTheNode) {
  NodeState tainted = Node();
  tainted.taints.push_back({"gpu", "", "NoSchedule"});
  ledger_.PutNode(tainted);
  KeepPlaces("team-a/g", Shape(1, 8, "gpu"), 1);
  Wait("stranger", Shape(1, 1));
  Wait("giant", Shape(1, 9, "gpu"));
  EXPECT_FALSE(Threatens());
  Wait("guest", Shape(1, 1, "gpu"));
  EXPECT_TRUE(Threatens());
}

TEST_F(CompetitionTest, OfAGangOnlyMembersWithoutAPlaceCount) {
  const ShapePtr gpu = Shape(0, 1);
  KeepPlaces("team-a/g", gpu, 2);
  KeepPlaces("team-a/h", gpu, 1);
  Wait("g-0", gpu, "team-a/g");
  Wait("g-1", gpu, "team-a/g");
  Wait("g-2", gpu, "team-a/g");
  EXPECT_FALSE(Threatens()) << "its own pods are no competition";
  Wait("h-0", gpu, "team-a/h");
  EXPECT_FALSE(Threatens());
  Wait("h-1", gpu, "team-a/h");
  EXPECT_TRUE(Threatens());
  competition_.Remove("h-1", now_);
  EXPECT_TRUE(Threatens()) << "another may come";
  KeepPlaces("team-a/h", gpu, 9);
  EXPECT_TRUE(Threatens()) << "whatever it was given afterwards";
  now_ += 10min;
  EXPECT_FALSE(Threatens());
}

TEST_F(CompetitionTest, AMemberThatWasNotSeenToWaitNeedsAPlaceWhenItIsBound) {
  const ShapePtr gpu = Shape(0, 1);
  KeepPlaces("team-a/g", gpu, 1);
  KeepPlaces("team-a/h", gpu, 1);
  competition_.AddBound("team-a/h", gpu, now_);
  EXPECT_FALSE(Threatens());
  Wait("h-0", gpu, "team-a/h");
  competition_.AddBound("team-a/h", gpu, now_);
  EXPECT_TRUE(Threatens()) << "the place is for the one that waits";
}

TEST_F(CompetitionTest, WhatTheSchedulerIsAtIsWaitedForTwentySeconds) {
  KeepPlaces("team-a/g", Shape(20), 3);
  Wait("foreign", Shape(5), "", 1);
  const kube::TimePoint held = now_;
  EXPECT_TRUE(IsAtOne(0, held));
  EXPECT_TRUE(IsAtOne(1, held));
  EXPECT_FALSE(IsAtOne(2, held)) << "it is less important than the gang";
  EXPECT_FALSE(IsAtOne(0, held - 5s)) << "it came when the places were held";
  now_ += 20s;
  EXPECT_FALSE(IsAtOne(0, held));

  EXPECT_TRUE(IsAtOne(0, now_));
  competition_.Put("foreign", {"", Shape(5), 1, false}, now_);
  EXPECT_FALSE(IsAtOne(0, now_)) << "no place was found for it";
  EXPECT_TRUE(Threatens()) << "the scheduler looks again when something changes";
}

TEST_F(CompetitionTest, ItIsNewsThatAPodWaitsOrWaitsAgain) {
  const ShapePtr need = Shape(1);
  EXPECT_TRUE(competition_.Put("a", {"", need, 0, true}, now_));
  EXPECT_FALSE(competition_.Put("a", {"", need, 0, true}, now_));
  EXPECT_FALSE(competition_.Put("a", {"", need, 0, false}, now_));
  EXPECT_TRUE(competition_.Put("a", {"", need, 0, true}, now_));
}

TEST_F(CompetitionTest, APodThatCameAndWentCountsOnce) {
  KeepPlaces("team-a/g", Shape(20), 3);
  const ShapePtr one = Shape(1);  // Four are free.
  for (int i = 0; i < 3; ++i) {
    Wait("p", one);
    competition_.Remove("p", now_);
    competition_.AddPresent(one);
    competition_.RemovePresent(one, now_);
  }
  EXPECT_FALSE(Threatens()) << "three, and one more";
  Wait("p", one);
  competition_.Remove("p", now_);
  EXPECT_TRUE(Threatens());
}

TEST_F(CompetitionTest, PodsThatCameAndWentTakeNoSlotsOfTheNode) {
  KeepPlaces("team-a/g", Shape(1), 2);
  const ShapePtr none = Shape(0);
  for (int i = 0; i < 200; ++i) {
    Wait("p", none);
    competition_.Remove("p", now_);
  }
  EXPECT_FALSE(Threatens());
  for (int i = 0; i < 109; ++i) Wait(std::to_string(i), none);
  EXPECT_TRUE(Threatens()) << "108 of the 110 are free";
}

TEST_F(CompetitionTest, OneThatComesAloneSaysNothingOfOthers) {
  KeepPlaces("team-a/g", Shape(20), 3);
  competition_.Put("launcher", {"", Shape(5), 0, true, true}, now_);
  EXPECT_TRUE(Threatens());
  competition_.Remove("launcher", now_);
  EXPECT_FALSE(Threatens());
}

TEST_F(CompetitionTest, WhatAnEarlierProcessPlannedIsNotOutsideTheAccount) {
  const ShapePtr gpu = Shape(0, 1);
  KeepPlaces("team-a/g", gpu, 2);
  Wait("h-0", gpu, "team-a/h");
  competition_.ForgetOwners();
  KeepPlaces("team-a/h", gpu, 1);
  EXPECT_FALSE(Threatens());
}

TEST_F(CompetitionTest, NamesOfKubernetesItselfAreNoDevices) {
  PodShape shape = *Shape(1);
  shape.request.AddExtended("kubernetes.io/batch-cpu", 1);
  NodeState node = Node();
  node.allocatable.AddExtended("kubernetes.io/batch-cpu", 100);
  ledger_.PutNode(node);
  const auto batch = std::make_shared<const PodShape>(shape);
  KeepPlaces("team-a/g", batch, 2);
  Wait("a", batch);
  EXPECT_FALSE(Threatens()) << "98 of it are free";
}

TEST_F(CompetitionTest, AMemberIsNewsOnlyIfItHasNoPlace) {
  const ShapePtr gpu = Shape(0, 1);
  KeepPlaces("team-a/h", gpu, 1);
  EXPECT_FALSE(competition_.Put("h-0", {"team-a/h", gpu, 0, true}, now_));
  EXPECT_TRUE(competition_.Put("h-1", {"team-a/h", gpu, 0, true}, now_));
}

TEST_F(CompetitionTest, APodThatIsNotNominatedMayTakeAnothersPlaceAlthoughItHasItsOwn) {
  NodeState other = Node();
  other.name = "n2";
  ledger_.PutNode(other);
  const ShapePtr gpu = Shape(0, 1);
  KeepPlaces("team-a/g", gpu, 8);
  ledger_.AddPlace("team-a/h", "n2", gpu);
  competition_.Put("h-0", {"team-a/h", gpu, 0, true}, now_);
  EXPECT_TRUE(IsAtOne(0, now_)) << "made without a gate, it may be bound to n1";
  WaitingPod nominated{"team-a/h", gpu, 0, true};
  nominated.is_nominated = true;
  competition_.Put("h-0", nominated, now_);
  EXPECT_FALSE(IsAtOne(0, now_));
}

TEST_F(CompetitionTest, WhoWaitsForADeviceIsKnown) {
  competition_.Put("cpu", {"", Shape(1), 0, false}, now_);
  competition_.Put("member", {"team-a/h", Shape(1, 1), 0, false}, now_);
  competition_.Put("undecided", {"", Shape(1, 1), 0, true}, now_);
  EXPECT_FALSE(competition_.DoesAnyoneWaitForDevice());
  competition_.Put("waits", {"", Shape(1, 1), 0, false}, now_);
  EXPECT_TRUE(competition_.DoesAnyoneWaitForDevice());
}

}  // namespace
}  // namespace grus
