// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/scheduler_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Scheduler, SaysWhatIsMissing) {
  ClusterWorld world;

  world.Create("pods", GpuPod("large", 9));
  world.Run(5s);

  EXPECT_THAT(WhyUnscheduled(world, "large"),
              StartsWith("Unschedulable: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu."));
}

TEST(Scheduler, NeverOvercommitsAndUsesWhatIsFreed) {
  ClusterWorld world(1, 1);
  world.Create("pods", GpuPod("first", 5));
  world.Run(5s);
  world.Create("pods", GpuPod("second", 5));
  world.Run(5s);
  ASSERT_THAT(WhyUnscheduled(world, "second"), StartsWith("Unschedulable"));

  world.Delete("pods", "first");
  world.Run(30s);

  EXPECT_TRUE(IsRunningAndReady(world.Get("pods", "second")));
  EXPECT_TRUE(HasTrueCondition(world.Get("pods", "second"), "PodScheduled"));
}

TEST(Scheduler, HigherPriorityGoesFirst) {
  ClusterWorld world(1, 1);
  world.Create("pods", GpuPod("running", 8));
  world.Run(5s);
  for (const auto& [name, value] : {std::pair("low", 1), std::pair("high", 1000)}) {
    MakePriority(world, name, value, "Never");
    world.Create("pods", WithPriority(name, GpuPod(name, 8)));
  }
  world.Run(15s);

  // Longer than any back-off: both are ready to be tried.
  world.cluster.options().scheduling = {11s, 11s};
  world.Delete("pods", "running");
  world.Run(1min);

  EXPECT_EQ(NodeOf(world.Get("pods", "high")), "node-0");
  EXPECT_EQ(NodeOf(world.Get("pods", "low")), "");
}

TEST(Scheduler, HonoursSelectorsAndTaints) {
  ClusterWorld world;
  NodeOptions special;
  special.labels["pool"] = "a100";
  special.taints.Append(Json::MakeObject({{"key", "gpu"}, {"value", "yes"}, {"effect", "NoSchedule"}}));
  ASSERT_TRUE(world.cluster.AddNode("special", 8, special));
  Json tolerant = GpuPod("tolerant", 1);
  tolerant["spec"]["nodeSelector"]["pool"] = "a100";
  Json timid = tolerant;
  timid["metadata"]["name"] = "timid";
  tolerant["spec"]["tolerations"].Append(Json::MakeObject({{"key", "gpu"}, {"operator", "Exists"}}));

  world.Create("pods", std::move(tolerant));
  world.Create("pods", std::move(timid));
  world.Run(5s);

  EXPECT_EQ(NodeOf(world.Get("pods", "tolerant")), "special");
  EXPECT_THAT(WhyUnscheduled(world, "timid"),
              StartsWith("Unschedulable: 0/5 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, "
                         "4 node(s) didn't match Pod's node affinity/selector."));
}

TEST(Scheduler, LeavesOtherSchedulersPodsAlone) {
  ClusterWorld world;
  Json pod = GpuPod("foreign", 1);
  pod["spec"]["schedulerName"] = "another";

  world.Create("pods", std::move(pod));
  world.Run(5s);

  EXPECT_EQ(NodeOf(world.Get("pods", "foreign")), "");
  EXPECT_EQ(WhyUnscheduled(world, "foreign"), "");
}

TEST(Scheduler, LeavesCordonedNodesAlone) {
  ClusterWorld world(1, 1);
  world.cluster.SetCordoned("node-0", true);
  world.Run(1s);
  world.Create("pods", GpuPod("late", 1));
  world.Run(5s);
  EXPECT_THAT(WhyUnscheduled(world, "late"),
              StartsWith("Unschedulable: 0/1 nodes are available: 1 node(s) were unschedulable."));

  world.cluster.SetCordoned("node-0", false);
  world.Run(30s);
  EXPECT_EQ(NodeOf(world.Get("pods", "late")), "node-0");
}

TEST(Scheduler, KeepsPodsApartThatRepelEachOther) {
  ClusterWorld world(1, 2);
  const auto make = [&](const std::string& name, const std::string& app, bool repels) {
    Json pod = GpuPod(name, 1);
    pod["metadata"]["labels"]["app"] = app;
    if (repels) {
      pod["spec"]["affinity"] = *ParseJson(R"({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
          {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}]}})");
    }
    world.Create("pods", std::move(pod));
    world.Run(5s);
  };

  make("first", "x", true);
  make("second", "x", true);
  make("third", "x", true);
  make("meek", "x", false);
  make("other", "y", false);

  EXPECT_NE(NodeOf(world.Get("pods", "first")), NodeOf(world.Get("pods", "second")));
  EXPECT_THAT(WhyUnscheduled(world, "third"), HasSubstr(": 2 node(s) didn't match pod anti-affinity rules."));
  EXPECT_THAT(WhyUnscheduled(world, "meek"),
              HasSubstr(": 2 node(s) didn't satisfy existing pods anti-affinity rules."));
  EXPECT_NE(NodeOf(world.Get("pods", "other")), "");
}

TEST(Scheduler, GivesAHostPortOnce) {
  ClusterWorld world(1, 1);
  const auto make = [&](const std::string& name, const std::string& port) {
    Json pod = GpuPod(name, 1);
    (*pod["spec"]["containers"].AsArray())[0]["ports"].Append(*ParseJson(port));
    world.Create("pods", std::move(pod));
    world.Run(5s);
  };

  make("first", R"({"containerPort": 80, "hostPort": 80})");
  make("second", R"({"containerPort": 81, "hostPort": 80, "hostIP": "10.0.0.1"})");
  make("datagrams", R"({"containerPort": 80, "hostPort": 80, "protocol": "UDP"})");
  EXPECT_THAT(WhyUnscheduled(world, "second"),
              HasSubstr(": 1 node(s) didn't have free ports for the requested pod ports."));
  EXPECT_EQ(NodeOf(world.Get("pods", "datagrams")), "node-0");

  world.Delete("pods", "first");
  world.Run(30s);
  EXPECT_EQ(NodeOf(world.Get("pods", "second")), "node-0");
}

TEST(Scheduler, HonoursNodeAffinity) {
  ClusterWorld world;
  Json pod = GpuPod("pinned", 1);
  pod["spec"]["affinity"] = *ParseJson(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-0", "node-1"]}],
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-3"]}]}]}}})");

  world.Create("pods", std::move(pod));
  world.Run(5s);

  EXPECT_EQ(NodeOf(world.Get("pods", "pinned")), "node-2");
}

TEST(Scheduler, SeesPodsInTheOrderTheyWereMade) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ClusterWorld world(seed, 1);
    world.Create("pods", GpuPod("second-by-name", 8));
    world.Create("pods", GpuPod("first-by-name", 8));
    world.Run(5s);

    EXPECT_EQ(NodeOf(world.Get("pods", "second-by-name")), "node-0") << seed;
  }
}

TEST(NodeFit, InitContainersCountAtTheirPeak) {
  const Json pod = *ParseJson(R"({"spec": {
      "initContainers": [
        {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "setup", "resources": {"requests": {"cpu": "4"}}}],
      "containers": [{"name": "main", "resources": {"requests": {"cpu": "2500m", "memory": "1Ki"}}}]}})");

  const Amounts requests = RequestsOf(pod);

  EXPECT_EQ(requests.at("cpu"), 5000);
  EXPECT_EQ(requests.at("memory"), 1024 * 1000);
}

}  // namespace
}  // namespace kube::testing
