// SPDX-License-Identifier: Apache-2.0
#include "bench/parts/part_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace bench {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

kube::Node NodeWith(const std::string& name, const std::string& gpu) {
  kube::Node node;
  node.metadata.name = name;
  node.metadata.annotations = {
      {api::kGpuInventoryAnnotation, R"([{"uuid":")" + gpu + R"(","memoryMiB":81000,"milli":1000,"mode":"milli"}])"}};
  node.status.allocatable = {{"pods", kube::Quantity(110)}, {api::kGpuMilliResource, kube::Quantity(1000)}};
  return node;
}

// Bound to the node, with that many thousandths.
kube::Pod PodOn(const std::string& name, const std::string& node, std::int64_t milli, const std::string& gpu) {
  kube::Pod pod;
  pod.metadata.name = pod.metadata.uid = name;
  pod.metadata.ns = "team-a";
  if (!gpu.empty()) pod.metadata.annotations = {{api::kPlannedGpuAnnotation, gpu}};
  pod.spec.node_name = node;
  kube::Container container;
  container.resources.requests = {{api::kGpuMilliResource, kube::Quantity(milli)}};
  pod.spec.containers.push_back(std::move(container));
  return pod;
}

PartAudit TwoNodes() {
  PartAudit audit;
  audit.PutNode(NodeWith("a", "GPU-1"));
  audit.PutNode(NodeWith("b", "GPU-2"));
  return audit;
}

TEST(PartAudit, FindsNoFaultWhileNoGpuIsGivenTwice) {
  PartAudit audit = TwoNodes();
  audit.PutPod(PodOn("x", "", 600, ""));  // It waits.
  audit.PutPod(PodOn("x", "a", 600, "GPU-1"));
  audit.PutPod(PodOn("x", "a", 600, "GPU-1"));  // Another revision of the same.
  audit.PutPod(PodOn("y", "a", 400, "GPU-1"));
  audit.PutPod(PodOn("z", "b", 700, "GPU-2"));

  EXPECT_THAT(audit.faults(), IsEmpty());
  EXPECT_EQ(audit.revisions(), 5);
  EXPECT_EQ(audit.most_milli(), 1000);
  EXPECT_EQ(audit.used_gpus(), 2);
}

TEST(PartAudit, TellsOfAGpuThatIsGivenTwice) {
  PartAudit audit = TwoNodes();
  audit.PutPod(PodOn("x", "a", 600, "GPU-1"));
  audit.PutPod(PodOn("y", "a", 401, "GPU-1"));

  EXPECT_THAT(audit.faults(), ElementsAre("pod team-a/y on a: 1001 thousandths of GPU-1 are given"));
}

TEST(PartAudit, APodThatIsGoneOrHasEndedHoldsNothing) {
  PartAudit audit = TwoNodes();
  kube::Pod ended = PodOn("x", "a", 1000, "GPU-1");
  audit.PutPod(ended);
  ended.status.phase = "Succeeded";
  audit.PutPod(ended);
  const kube::Pod gone = PodOn("y", "a", 1000, "GPU-1");
  audit.PutPod(gone);
  audit.RemovePod(gone);
  audit.PutPod(PodOn("z", "a", 1000, "GPU-1"));

  EXPECT_THAT(audit.faults(), IsEmpty());
  EXPECT_EQ(audit.revisions(), 5);
}

TEST(PartAudit, TellsOfABoundPodWithoutAGpuOfItsNode) {
  PartAudit audit = TwoNodes();
  audit.PutPod(PodOn("x", "a", 300, ""));
  audit.PutPod(PodOn("y", "a", 300, "GPU-2"));

  EXPECT_THAT(audit.faults(), ElementsAre("pod team-a/x on a: its annotations name 0 GPUs",
                                          "pod team-a/y on a: GPU-2 is not of its node"));
}

}  // namespace
}  // namespace bench
