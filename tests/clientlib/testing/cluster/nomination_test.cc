// SPDX-License-Identifier: Apache-2.0
// The scheduler and status.nominatedNodeName, as gangs use it. Each rule was tried on Kubernetes 1.36.3.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/scheduler_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

constexpr char kNoRoom[] =
    "Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption: ";

// One node of eight GPUs, held by a gated pod.
struct HeldNode : ClusterWorld {
  explicit HeldNode(std::uint64_t seed = 1) : ClusterWorld(seed, 1) {
    Create("pods", GatedPod("member", 8));
    Nominate(*this, "member", "node-0");
    Run(1s);
  }
};

TEST(Nominations, HoldRoomAlsoWhileGated) {
  HeldNode world;

  world.Create("pods", GpuPod("outsider", 1));
  world.Run(10s);

  EXPECT_EQ(WhyUnscheduled(world, "outsider"),
            kNoRoom + std::string("0/1 nodes are available: 1 No preemption victims found for incoming pod."));
  LiftGates(world, "member");
  world.Run(10s);
  EXPECT_EQ(PlaceOf(world, "member"), "node-0");
}

TEST(Nominations, HoldRoomAgainstWhatWasMadeAfterThem) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    ClusterWorld world(seed, 1);
    world.Create("pods", GatedPod("member", 8));
    Nominate(world, "member", "node-0");
    world.Create("pods", GpuPod("outsider", 1));
    world.Run(10s);

    EXPECT_EQ(PlaceOf(world, "outsider"), "") << seed;
  }
}

TEST(Nominations, HoldTheirAmountOnly) {
  ClusterWorld world(1, 1);
  world.Create("pods", GatedPod("member", 6));
  Nominate(world, "member", "node-0");
  world.Run(1s);

  world.Create("pods", GpuPod("fits", 2));
  world.Create("pods", GpuPod("too-much", 1));
  world.Run(10s);

  EXPECT_EQ(PlaceOf(world, "fits"), "node-0");
  EXPECT_EQ(PlaceOf(world, "too-much"), "");
}

TEST(Nominations, HoldNothingAgainstHigherPriority) {
  HeldNode world;
  MakePriority(world, "high", 1000);

  world.Create("pods", WithPriority("high", GpuPod("outsider", 8)));
  world.Run(10s);

  EXPECT_EQ(PlaceOf(world, "outsider"), "node-0");
  EXPECT_EQ(NominationOf(world, "member"), "node-0");  // Nobody was preempted, so nobody is told.
}

TEST(Nominations, AreTriedFirst) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ClusterWorld world(seed);
    world.Create("pods", GatedPod("member", 1));
    Nominate(world, "member", "node-2");
    LiftGates(world, "member");
    world.Run(10s);

    EXPECT_EQ(PlaceOf(world, "member"), "node-2") << seed;
    EXPECT_EQ(NominationOf(world, "member"), "") << seed;  // The server clears it when the pod is bound.
  }
}

TEST(Nominations, GiveWayToOtherNodesWhenTheirsWentBad) {
  ClusterWorld world(1, 2);
  world.Create("pods", GatedPod("member", 8));
  Nominate(world, "member", "node-0");
  world.Run(1s);
  world.cluster.SetCordoned("node-0", true);

  LiftGates(world, "member");
  world.Run(10s);

  EXPECT_EQ(PlaceOf(world, "member"), "node-1");
}

TEST(Nominations, WakeThoseTheyKeptOutWhenTheyAreTakenBack) {
  HeldNode world;
  world.Create("pods", GpuPod("outsider", 8));
  world.Run(5s);
  ASSERT_EQ(PlaceOf(world, "outsider"), "");

  Nominate(world, "member", "");
  world.Run(15s);

  EXPECT_EQ(PlaceOf(world, "outsider"), "node-0");
}

TEST(Nominations, HoldUntilTheirPodIsGoneForGood) {
  HeldNode world;
  world.Change("pods", "member", [](Json& pod) { pod["metadata"]["finalizers"].Append("grus.dev/x"); });
  world.Delete("pods", "member");
  world.Create("pods", GpuPod("outsider", 8));
  world.Run(10s);
  EXPECT_EQ(PlaceOf(world, "outsider"), "");

  world.Change("pods", "member", [](Json& pod) { pod["metadata"].Erase("finalizers"); });
  world.Run(15s);
  EXPECT_EQ(PlaceOf(world, "outsider"), "node-0");
}

TEST(Nominations, AreLostWhenTheirPodFitsNowhere) {
  ClusterWorld world(1, 1);
  world.Create("pods", GpuPod("running", 8));
  world.Run(5s);
  world.Create("pods", GatedPod("member", 8));
  Nominate(world, "member", "node-0");
  world.Run(1s);

  LiftGates(world, "member");
  world.Run(5s);

  EXPECT_EQ(NominationOf(world, "member"), "");
  EXPECT_THAT(WhyUnscheduled(world, "member"), StartsWith(kNoRoom));
}

TEST(Nominations, StayWithPodsThatPreemptNever) {
  ClusterWorld world(1, 1);
  MakePriority(world, "patient", 0, "Never");
  world.Create("pods", GpuPod("running", 8));
  world.Run(5s);
  world.Create("pods", WithPriority("patient", GatedPod("member", 8)));
  Nominate(world, "member", "node-0");
  world.Run(1s);

  LiftGates(world, "member");
  world.Run(5s);

  EXPECT_EQ(NominationOf(world, "member"), "node-0");
  EXPECT_EQ(WhyUnscheduled(world, "member"), kNoRoom + std::string("not eligible due to preemptionPolicy=Never."));
}

TEST(SchedulerRestart, ForgetsHoldsOfGatedPodsUntilTheyChange) {
  HeldNode world;
  world.cluster.RestartScheduler();
  world.Create("pods", GpuPod("outsider", 8));
  world.Run(10s);
  EXPECT_EQ(PlaceOf(world, "outsider"), "node-0");
  world.Delete("pods", "outsider");
  world.Run(10s);

  world.Change("pods", "member", [](Json& pod) { pod["metadata"]["annotations"]["touched"] = "1"; });
  world.Create("pods", GpuPod("second-outsider", 8));
  world.Run(10s);
  EXPECT_EQ(PlaceOf(world, "second-outsider"), "");
}

TEST(SchedulerRestart, LosesNoPodAndOvercommitsNothing) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ClusterWorld world(seed);
    for (int i = 0; i < 40; ++i) world.Create("pods", GpuPod("pod-" + std::to_string(i), 1));
    world.Run(60ms);  // Some are bound, some about to be.
    world.cluster.RestartScheduler(2s);
    world.Run(30s);

    std::map<std::string, int> used;
    for (const auto& pod : world.server.List("pods")) ++used[std::string(NodeOf(*pod))];
    EXPECT_EQ(used[""], 8) << seed;
    for (const auto& [node, gpus] : used) EXPECT_LE(gpus, 8) << seed << " " << node;
  }
}

TEST(Gates, LiftedPodsQueueByTheTimeTheyWereMade) {
  ClusterWorld world(1, 1);
  world.Create("pods", GatedPod("older", 8));
  world.Run(1s);
  world.cluster.options().scheduling = {5s, 5s};
  world.Create("pods", GpuPod("younger", 8));
  world.Run(1s);

  LiftGates(world, "older");
  world.Run(30s);

  EXPECT_EQ(PlaceOf(world, "older"), "node-0");
}

TEST(Gates, ConditionStaysUntilTheFirstTry) {
  ClusterWorld world;
  world.Create("pods", GatedPod("member", 9));
  EXPECT_EQ(WhyUnscheduled(world, "member"),
            "SchedulingGated: Scheduling is blocked due to non-empty scheduling gates");

  LiftGates(world, "member");
  EXPECT_THAT(WhyUnscheduled(world, "member"), StartsWith("SchedulingGated"));
  world.Run(1s);
  EXPECT_THAT(WhyUnscheduled(world, "member"), StartsWith("Unschedulable"));
}

// ---- Preemption.

TEST(Preemption, TakesTheNodeWhereLeastIsLost) {
  ClusterWorld world(1, 2);
  MakePriority(world, "middle", 500);
  MakePriority(world, "high", 1000);
  for (const auto& [name, node] : {std::pair("a", "node-0"), {"b", "node-0"}, {"c", "node-1"}}) {
    Json pod = GpuPod(name, 4);
    pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = node;
    world.Create("pods", std::move(pod));
  }
  Json pod = WithPriority("middle", GpuPod("d", 4));
  pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "node-1";
  world.Create("pods", std::move(pod));
  world.Run(10s);

  world.Create("pods", WithPriority("high", GpuPod("urgent", 8)));
  world.Run(30s);

  EXPECT_EQ(PlaceOf(world, "urgent"), "node-0");
  EXPECT_EQ(PlaceOf(world, "c"), "node-1");
  EXPECT_EQ(PlaceOf(world, "d"), "node-1");
  EXPECT_TRUE(world.Get("pods", "a").is_null());
  EXPECT_TRUE(world.Get("pods", "b").is_null());
}

TEST(Preemption, SparesWhoNeedNotGo) {
  ClusterWorld world(1, 1);
  MakePriority(world, "middle", 500);
  MakePriority(world, "high", 1000);
  world.Create("pods", WithPriority("middle", GpuPod("important", 4)));
  world.Create("pods", GpuPod("plain", 4));
  world.Run(10s);

  world.Create("pods", WithPriority("high", GpuPod("urgent", 4)));
  world.Run(30s);

  EXPECT_EQ(PlaceOf(world, "urgent"), "node-0");
  EXPECT_EQ(PlaceOf(world, "important"), "node-0");
}

TEST(Preemption, TellsVictimsAndHoldsTheirRoom) {
  ClusterWorld world(1, 1);
  world.cluster.options().stop = {20s, 20s};
  MakePriority(world, "high", 1000);
  world.Create("pods", GpuPod("victim", 8));
  world.Run(10s);

  world.Create("pods", WithPriority("high", GpuPod("urgent", 8)));
  world.Run(5s);

  const Json victim = world.Get("pods", "victim");
  EXPECT_TRUE(IsBeingDeleted(victim));
  ASSERT_TRUE(HasTrueCondition(victim, "DisruptionTarget"));
  EXPECT_EQ(TextAt(*ConditionOf(victim, "DisruptionTarget"), {"reason"}), "PreemptionByScheduler");
  EXPECT_EQ(NominationOf(world, "urgent"), "node-0");
  EXPECT_EQ(WhyUnscheduled(world, "urgent"), "Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
}

TEST(Preemption, TakesNominationsOfLowerPriorityAway) {
  ClusterWorld world(1, 1);
  MakePriority(world, "high", 1000);
  world.Create("pods", GpuPod("victim", 4));
  world.Run(5s);
  world.Create("pods", GatedPod("member", 4));
  Nominate(world, "member", "node-0");
  world.Run(1s);

  world.Create("pods", WithPriority("high", GpuPod("urgent", 8)));
  world.Run(30s);

  EXPECT_EQ(PlaceOf(world, "urgent"), "node-0");
  EXPECT_EQ(NominationOf(world, "member"), "");
}

}  // namespace
}  // namespace kube::testing
