// SPDX-License-Identifier: Apache-2.0
// What tests of the scheduler say often.
#pragma once

#include <string>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {

inline Json GpuPod(const std::string& name, int gpus) {
  return kit::MakePod(name, kit::PodSpec(gpus, R"({"restartPolicy": "Never"})"), {}, "default");
}

inline Json GatedPod(const std::string& name, int gpus) {
  Json pod = GpuPod(name, gpus);
  pod["spec"] = kit::Gated(std::move(pod["spec"]));
  return pod;
}

inline Json WithPriority(const std::string& priority_class, Json pod) {
  pod["spec"]["priorityClassName"] = priority_class;
  return pod;
}

inline void MakePriority(ClusterWorld& world, const std::string& name, int value,
                         const std::string& preemption = "PreemptLowerPriority") {
  world.Create("priorityclasses.scheduling.k8s.io", kit::MakePriorityClass(name, value, preemption));
}

inline std::string WhyUnscheduled(ClusterWorld& world, const std::string& pod) {
  const Json object = world.Get("pods", pod);
  const Json* const condition = ConditionOf(object, "PodScheduled");
  if (!condition || TextAt(*condition, {"status"}) != "False") return {};
  return std::string(TextAt(*condition, {"reason"})) + ": " + std::string(TextAt(*condition, {"message"}));
}

inline std::string PlaceOf(ClusterWorld& world, const std::string& pod) {
  return std::string(NodeOf(world.Get("pods", pod)));
}

inline std::string NominationOf(ClusterWorld& world, const std::string& pod) {
  const Json object = world.Get("pods", pod);
  return std::string(TextAt(object, {"status", "nominatedNodeName"}));
}

// No node: takes the nomination back.
inline void Nominate(ClusterWorld& world, const std::string& pod, const std::string& node) {
  Json object = world.Get("pods", pod);
  object["status"]["nominatedNodeName"] = node;
  const auto updated = world.server.Update("pods", std::move(object), "status");
  ASSERT_TRUE(updated) << updated.error().message();
}

inline void LiftGates(ClusterWorld& world, const std::string& pod) {
  world.Change("pods", pod, [](Json& object) { object["spec"].Erase("schedulingGates"); });
}

}  // namespace kube::testing
