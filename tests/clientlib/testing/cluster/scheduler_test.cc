// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::StartsWith;

Json GpuPod(const std::string& name, int gpus) {
  Json pod = ClusterWorld::Pod(name);
  Json& resources = (*pod["spec"]["containers"].AsArray())[0]["resources"];
  resources["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
  resources["requests"]["nvidia.com/gpu"] = std::to_string(gpus);
  return pod;
}

std::string WhyUnscheduled(ClusterWorld& world, const std::string& pod) {
  const Json object = world.Get("pods", pod);
  const Json* const condition = ConditionOf(object, "PodScheduled");
  if (!condition || TextAt(*condition, {"status"}) != "False") return {};
  return std::string(TextAt(*condition, {"reason"})) + ": " + std::string(TextAt(*condition, {"message"}));
}

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
    Json priority = Json::MakeObject({{"apiVersion", "scheduling.k8s.io/v1"}, {"kind", "PriorityClass"}});
    priority["metadata"]["name"] = name;
    priority["value"] = value;
    world.Create("priorityclasses.scheduling.k8s.io", std::move(priority));
    Json pod = GpuPod(name, 8);
    pod["spec"]["priorityClassName"] = name;
    pod["spec"]["preemptionPolicy"] = "Never";
    world.Create("pods", std::move(pod));
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

TEST(Scheduler, WaitsForGates) {
  ClusterWorld world;
  Json pod = GpuPod("gated", 1);
  pod["spec"]["schedulingGates"].Append(Json::MakeObject({{"name", "grus/quota"}}));
  world.Create("pods", std::move(pod));
  world.Run(5s);
  EXPECT_THAT(WhyUnscheduled(world, "gated"), StartsWith("SchedulingGated"));

  world.Change("pods", "gated", [](Json& gated) { gated["spec"].Erase("schedulingGates"); });
  world.Run(30s);
  EXPECT_TRUE(IsRunningAndReady(world.Get("pods", "gated")));
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
