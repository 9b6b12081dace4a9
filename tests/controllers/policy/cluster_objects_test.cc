// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/cluster_objects.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

kube::Quantity Amount(std::string_view text) { return *kube::ParseQuantity(text); }

TEST(RequestOf, CountsContainersSidecarsAndOverheadAsTheSchedulerDoes) {
  kube::Pod pod;
  pod.spec.containers.resize(2);
  pod.spec.containers[0].resources.requests = {{"cpu", Amount("500m")}, {"nvidia.com/gpu", Amount("2")}};
  pod.spec.containers[1].resources.requests = {
      {"cpu", Amount("1")}, {"memory", Amount("1Gi")}, {"ephemeral-storage", Amount("10Gi")}};
  pod.spec.init_containers.resize(2);
  pod.spec.init_containers[0].restart_policy = "Always";
  pod.spec.init_containers[0].resources.requests = {{"cpu", Amount("250m")}};
  pod.spec.init_containers[1].resources.requests = {{"cpu", Amount("3")}};
  pod.spec.overhead = {{"cpu", Amount("50m")}};

  const Resources request = RequestOf(pod);
  EXPECT_EQ(request.milli_cpu, 3300);  // The second init container beside the sidecar, and the overhead.
  EXPECT_EQ(request.memory_bytes, 1LL << 30);
  EXPECT_EQ(request.pods, 1);
  EXPECT_EQ(request.Extended(kGpuResource), 2);
  EXPECT_EQ(request.Extended("ephemeral-storage"), 10LL << 30);
}

TEST(RequestOf, NoNumberOfAUserMakesSumsInexact) {
  kube::Pod pod;
  pod.spec.containers.resize(1);
  pod.spec.containers[0].resources.requests = {{"memory", Amount("9223372036854775807")},
                                               {"nvidia.com/gpu", Amount("9E")}};
  Resources sum;
  sum.memory_bytes = 5;
  for (int i = 0; i < 1000; ++i) sum += RequestOf(pod);
  for (int i = 0; i < 1000; ++i) sum -= RequestOf(pod);
  EXPECT_EQ(sum.memory_bytes, 5);
  EXPECT_EQ(sum.Extended(kGpuResource), 0);
}

TEST(RequestOf, WhatThePodAsksForAsAWholeCountsInPlaceOfItsContainers) {
  kube::Pod pod;
  kube::Container& container = pod.spec.containers.emplace_back();
  container.resources.requests = {{"cpu", Amount("1")}, {"nvidia.com/gpu", Amount("2")}};
  pod.spec.resources.emplace();
  pod.spec.resources->requests = {{"cpu", Amount("8")}, {"memory", Amount("1Gi")}, {"nvidia.com/gpu", Amount("5")}};
  pod.spec.overhead = {{"cpu", Amount("50m")}};

  const Resources request = RequestOf(pod);
  EXPECT_EQ(request.milli_cpu, 8050);
  EXPECT_EQ(request.memory_bytes, 1 << 30);
  EXPECT_EQ(request.Extended("nvidia.com/gpu"), 2) << "no such resource of a pod";
}

TEST(StateOf, ANodeBeingDeletedIsCordoned) {
  kube::Node node;
  node.metadata.name = "n";
  node.metadata.labels = {{"zone", "x"}};
  node.status.allocatable = {{"cpu", Amount("8")}, {"nvidia.com/gpu", Amount("4")}, {"hugepages-2Mi", Amount("0")}};
  node.spec.taints = {{"k", "v", "NoSchedule"}};

  NodeState state = StateOf(node);
  EXPECT_EQ(state.name, "n");
  EXPECT_EQ(state.allocatable.Extended(kGpuResource), 4);
  EXPECT_EQ(state.allocatable.extended.size(), 1U) << "nothing is kept of what there is none of";
  EXPECT_EQ(state.labels.Get("zone"), "x");
  EXPECT_EQ(state.taints.size(), 1U);
  EXPECT_FALSE(state.is_cordoned);
  node.metadata.deletion_timestamp.emplace();
  EXPECT_TRUE(StateOf(node).is_cordoned);
}

TEST(ShapeOf, TakesWhatIsRequiredAndNotWhatIsPreferred) {
  kube::Pod pod;
  pod.metadata.ns = "t";
  pod.metadata.labels = {{"app", "web"}};
  pod.spec.node_selector = {{"gpu", "a100"}};
  pod.spec.tolerations.push_back({"k", "Exists"});
  pod.spec.containers.resize(1);
  pod.spec.containers[0].ports = {{80, "UDP", "10.0.0.1"}, {0}};
  kube::Affinity& affinity = pod.spec.affinity.emplace();
  affinity.node.emplace().required.emplace().terms.resize(1);
  affinity.pod.emplace().required.resize(2);
  affinity.pod_anti.emplace().required.resize(3);
  pod.spec.topology_spread.resize(2);
  pod.spec.topology_spread[0].when_unsatisfiable = "ScheduleAnyway";
  pod.spec.topology_spread[1].when_unsatisfiable = "DoNotSchedule";

  const PodShape shape = ShapeOf(pod);
  EXPECT_EQ(shape.ns, "t");
  EXPECT_EQ(shape.labels.Get("app"), "web");
  EXPECT_EQ(shape.node_selector.at("gpu"), "a100");
  EXPECT_EQ(shape.tolerations, (std::vector<kube::Toleration>{{"k", "Exists"}}));
  EXPECT_EQ(shape.host_ports, (std::vector<HostPort>{{80, "UDP", "10.0.0.1"}}));
  EXPECT_EQ(shape.node_affinity->terms.size(), 1U);
  EXPECT_EQ(shape.affinity.size(), 2U);
  EXPECT_EQ(shape.anti_affinity.size(), 3U);
  EXPECT_EQ(shape.spread.size(), 1U);

  const PodShape footprint = FootprintOf(pod);
  EXPECT_EQ(footprint.labels, shape.labels);
  EXPECT_EQ(footprint.host_ports, shape.host_ports);
  EXPECT_EQ(footprint.anti_affinity, shape.anti_affinity);
  EXPECT_EQ(footprint.request, Resources{});
}

TEST(ShapeOf, LooksAtAHundredTermsOfAKindAtMost) {
  kube::Pod pod;
  pod.spec.containers.resize(1);
  pod.spec.containers[0].ports.resize(5000, {80});
  kube::Affinity& affinity = pod.spec.affinity.emplace();
  affinity.pod.emplace().required.resize(9000);
  affinity.pod_anti.emplace().required.resize(9000);
  pod.spec.topology_spread.resize(9000);

  const PodShape shape = ShapeOf(pod);
  EXPECT_EQ(shape.affinity.size(), 100U);
  EXPECT_EQ(shape.anti_affinity.size(), 100U);
  EXPECT_EQ(shape.spread.size(), 100U);
  EXPECT_EQ(shape.host_ports.size(), 100U);
}

}  // namespace
}  // namespace grus
