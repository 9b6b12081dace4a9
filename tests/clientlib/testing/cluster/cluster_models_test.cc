// SPDX-License-Identifier: Apache-2.0
// What several models do together: nodes, garbage and namespaces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

std::string NodeOfPod(ClusterWorld& world, const std::string& name) {
  return std::string(NodeOf(world.Get("pods", name)));
}

Json ConfigMap(const std::string& name, const Json& owner, std::string_view kind, std::string_view version) {
  Json map = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
  map["metadata"] = Json::MakeObject({{"name", name}, {"namespace", "default"}});
  if (!owner.is_null()) map["metadata"]["ownerReferences"].Append(ControllerReference(owner, version, kind));
  return map;
}

TEST(Nodes, PodsOfARemovedNodeGoAndAreReplacedElsewhere) {
  ClusterWorld world;
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 8));
  world.Run(30s);
  const std::string node = NodeOfPod(world, "workers-0");

  world.cluster.RemoveNode(node);
  world.Run(30s);
  EXPECT_EQ(NodeOfPod(world, "workers-0"), node);
  world.Run(1min);

  EXPECT_NE(NodeOfPod(world, "workers-0"), node);
  EXPECT_EQ(world.CountPods(IsRunningAndReady), 8);
}

TEST(Nodes, PodsOfAnUnreachableNodeAreNotReadyAtOnceAndEvictedAfterFiveMinutes) {
  ClusterWorld world;
  world.Create("pods", ClusterWorld::Pod("a"));
  world.Run(10s);

  world.cluster.SetNodeReady(NodeOfPod(world, "a"), false);
  world.Run(1s);
  EXPECT_FALSE(HasTrueCondition(world.Get("pods", "a"), "Ready"));
  world.Run(4min + 50s);
  EXPECT_FALSE(IsBeingDeleted(world.Get("pods", "a")));
  world.Run(20s);
  EXPECT_TRUE(IsBeingDeleted(world.Get("pods", "a")));

  // Only its kubelet can say that it has ended.
  world.Run(10min);
  ASSERT_EQ(world.CountPods("Running"), 1);
  world.cluster.SetNodeReady(NodeOfPod(world, "a"), true);
  world.Run(10s);
  EXPECT_THAT(world.PodNames(), IsEmpty());
}

TEST(Nodes, ANodeThatComesBackInTimeKeepsItsPods) {
  ClusterWorld world;
  world.Create("pods", ClusterWorld::Pod("a"));
  world.Run(10s);
  const std::string node = NodeOfPod(world, "a");

  world.cluster.SetNodeReady(node, false);
  world.Run(1min);
  world.cluster.SetNodeReady(node, true);
  world.Run(10min);

  EXPECT_TRUE(IsRunningAndReady(world.Get("pods", "a")));
  EXPECT_THAT(ItemsAt(world.Get("nodes", node, ""), {"spec", "taints"}), IsEmpty());
}

TEST(GarbageCollector, ChildrenOfADeletedOwnerGo) {
  ClusterWorld world;
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 4));
  world.Run(30s);

  world.Delete("statefulsets.apps", "workers", "Background");
  EXPECT_FALSE(world.server.Get("statefulsets.apps", {"default", "workers"}));
  world.Run(30s);

  EXPECT_THAT(world.PodNames(), IsEmpty());
}

TEST(GarbageCollector, ForegroundOwnerGoesAfterItsChildren) {
  ClusterWorld world;
  world.cluster.options().stop = {5s, 5s};
  world.Create("statefulsets.apps", ClusterWorld::StatefulSet("workers", 4));
  world.Run(30s);

  world.Delete("statefulsets.apps", "workers", "Foreground");
  world.Run(4s);
  EXPECT_TRUE(IsBeingDeleted(world.Get("statefulsets.apps", "workers")));
  EXPECT_EQ(world.CountPods([](const Json& pod) { return IsBeingDeleted(pod); }), 4);
  world.RunUntil([&] { return world.PodNames().empty(); });
  EXPECT_TRUE(world.server.Get("statefulsets.apps", {"default", "workers"}));
  world.Run(1s);
  EXPECT_FALSE(world.server.Get("statefulsets.apps", {"default", "workers"}));
}

TEST(GarbageCollector, OrphansStay) {
  ClusterWorld world;
  world.Create("configmaps", ConfigMap("owner", {}, "", ""));
  world.Create("configmaps", ConfigMap("child", world.Get("configmaps", "owner"), "ConfigMap", "v1"));

  world.Delete("configmaps", "owner", "Orphan");
  world.Run(10s);

  EXPECT_FALSE(world.server.Get("configmaps", {"default", "owner"}));
  EXPECT_THAT(ItemsAt(world.Get("configmaps", "child"), {"metadata", "ownerReferences"}), IsEmpty());
  EXPECT_TRUE(world.server.Get("configmaps", {"default", "child"}));
}

TEST(GarbageCollector, ChildOfAnOwnerThatNeverWasGoes) {
  ClusterWorld world;
  Json owner = Json::MakeObject();
  owner["metadata"] = Json::MakeObject({{"name", "ghost"}, {"uid", "00000000-0000-4000-8000-000000000000"}});

  world.Create("configmaps", ConfigMap("child", owner, "ConfigMap", "v1"));
  world.Run(1s);

  EXPECT_FALSE(world.server.Get("configmaps", {"default", "child"}));
}

TEST(Namespaces, DeletionLeavesNothing) {
  ClusterWorld world;
  Json ns = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Namespace"}});
  ns["metadata"]["name"] = "team-a";
  world.Create("namespaces", std::move(ns));
  Json set = ClusterWorld::StatefulSet("workers", 4), map = ConfigMap("hosts", {}, "", "");
  Json job = ClusterWorld::Job("train", 3);
  for (Json* const object : {&set, &map, &job}) (*object)["metadata"]["namespace"] = "team-a";
  world.Create("statefulsets.apps", std::move(set));
  world.Create("configmaps", std::move(map));
  world.Create("jobs.batch", std::move(job));
  world.Run(30s);
  ASSERT_EQ(world.server.List("pods", "team-a").size(), 5U);

  ASSERT_TRUE(world.server.Delete("namespaces", {"", "team-a"}));
  world.RunUntil([&] { return !world.server.Get("namespaces", {"", "team-a"}); });

  for (const std::string_view resource : {"pods", "statefulsets.apps", "configmaps", "jobs.batch"}) {
    EXPECT_TRUE(world.server.List(resource, "team-a").empty()) << resource;
  }
}

}  // namespace
}  // namespace kube::testing
