// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/statefulset_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(StatefulSetController, ParallelSetRunsWhatFits) {
  ClusterWorld world;

  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 34));
  world.Run(30s);

  EXPECT_EQ(world.CountPods(IsRunningAndReady), 32);
  EXPECT_EQ(world.CountPods([](const Json& pod) {
    const Json* const scheduled = ConditionOf(pod, "PodScheduled");
    return scheduled && TextAt(*scheduled, {"reason"}) == "Unschedulable";
  }),
            2);
  const Json set = world.Get("statefulsets.apps", "workers");
  EXPECT_EQ(IntAt(set, {"status", "replicas"}), 34);
  EXPECT_EQ(IntAt(set, {"status", "readyReplicas"}), 32);
  EXPECT_EQ(IntAt(set, {"status", "observedGeneration"}), 1);
}

TEST(StatefulSetController, PodsHaveIdentity) {
  ClusterWorld world;

  Json set = ClusterWorld::StatefulSet("workers", 2);
  set["spec"]["ordinals"]["start"] = 3;
  world.Create("statefulsets.apps", std::move(set));
  world.Run(30s);

  EXPECT_THAT(world.PodNames(), ElementsAre("workers-3", "workers-4"));
  const Json pod = world.Get("pods", "workers-3");
  EXPECT_EQ(LabelOf(pod, "apps.kubernetes.io/pod-index"), "3");
  EXPECT_EQ(LabelOf(pod, "statefulset.kubernetes.io/pod-name"), "workers-3");
  EXPECT_THAT(std::string(LabelOf(pod, "controller-revision-hash")), StartsWith("workers-"));
  EXPECT_EQ(TextAt(pod, {"spec", "hostname"}), "workers-3");
  EXPECT_EQ(TextAt(pod, {"spec", "subdomain"}), "workers");
  ASSERT_TRUE(ControllerOf(pod));
  EXPECT_EQ(TextAt(*ControllerOf(pod), {"uid"}), UidOf(world.Get("statefulsets.apps", "workers")));
}

TEST(StatefulSetController, ScaleDownRemovesTheHighestOrdinalsThoughTheyRun) {
  ClusterWorld world;
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 5));
  world.Run(30s);
  world.Change("pods", "workers-0", [](Json& pod) { pod["metadata"]["annotations"]["grus.test/ready"] = "false"; });
  world.Run(1s);

  world.Change("statefulsets.apps", "workers", [](Json& set) { set["spec"]["replicas"] = 2; });
  world.Run(30s);

  EXPECT_THAT(world.PodNames(), ElementsAre("workers-0", "workers-1"));
}

TEST(StatefulSetController, OrderedSetShrinksFromItsHighestOrdinalOneAfterTheOther) {
  ClusterWorld world;
  world.cluster.options().stop = {1s, 1s};
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 3, "OrderedReady"));
  world.Run(60s);

  world.Change("statefulsets.apps", "workers", [](Json& set) { set["spec"]["replicas"] = 0; });
  world.Run(500ms);

  EXPECT_TRUE(IsBeingDeleted(world.Get("pods", "workers-2")));
  EXPECT_EQ(world.CountPods([](const Json& pod) { return IsBeingDeleted(pod); }), 1);
}

TEST(StatefulSetController, EndedPodsAreReplacedUnderTheirNames) {
  ClusterWorld world;
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 2));
  world.Run(30s);
  const Json before = world.Get("pods", "workers-1");

  world.Change("pods", "workers-1", [](Json& pod) { pod["metadata"]["annotations"]["grus.test/outcome"] = "fail"; });
  world.Run(30s);

  const Json after = world.Get("pods", "workers-1");
  EXPECT_NE(UidOf(after), UidOf(before));
  EXPECT_TRUE(IsRunningAndReady(after));
}

TEST(StatefulSetController, OnDeleteLeavesOldPodsAlone) {
  ClusterWorld world;
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 2));
  world.Run(30s);
  const auto image = [](const Json& pod) {
    return std::string(TextAt(ItemsAt(pod, {"spec", "containers"}).front(), {"image"}));
  };

  world.Change("statefulsets.apps", "workers",
               [](Json& set) { (*set["spec"]["template"]["spec"]["containers"].AsArray())[0]["image"] = "train:2"; });
  world.Run(30s);
  EXPECT_EQ(image(world.Get("pods", "workers-0")), "registry.test/x");
  EXPECT_EQ(IntAt(world.Get("statefulsets.apps", "workers"), {"status", "updatedReplicas"}), 0);

  world.Delete("pods", "workers-0");
  world.Run(30s);
  EXPECT_EQ(image(world.Get("pods", "workers-0")), "train:2");
  EXPECT_EQ(image(world.Get("pods", "workers-1")), "registry.test/x");
}

TEST(StatefulSetController, AdoptsPodsThatMatch) {
  ClusterWorld world;
  Json pod = ClusterWorld::Pod("workers-0");
  pod["metadata"]["labels"]["app"] = "workers";
  world.Create("pods", std::move(pod));
  const Json before = world.Get("pods", "workers-0");

  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 1));
  world.Run(30s);

  const Json after = world.Get("pods", "workers-0");
  EXPECT_EQ(UidOf(after), UidOf(before));
  EXPECT_TRUE(ControllerOf(after));
}

TEST(StatefulSetController, SaysWhyItsPodIsRefusedAndTriesAgain) {
  ClusterWorld world;
  world.Enforce("restricted");
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 3));

  world.Run(30s);

  // The first of them alone is tried, at once again and then ever more rarely.
  const std::vector<std::string> events = world.Events("FailedCreate", "workers");
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0], MatchesRegex("1[0-9] x Create Pod workers-0 in StatefulSet workers failed error: "
                                      "pods \"workers-0\" is forbidden: violates PodSecurity .*"));

  world.Enforce("");
  world.RunUntil([&] { return world.CountPods("Running") == 3; });
  EXPECT_THAT(world.Events("SuccessfulCreate", "workers"),
              Contains("1 x Create Pod workers-2 in StatefulSet workers successful"));
}

}  // namespace
}  // namespace kube::testing
