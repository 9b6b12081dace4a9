// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_stories.h"

#include <chrono>
#include <utility>

namespace grus::testing {

void AddNodes(World& world, int nodes, int gpus) {
  for (int i = 0; i < nodes; ++i) AddNode(world, "node-" + std::to_string(i), gpus);
}

void SubmitGang(World& world, int min_member, int replicas, int gpus, int seconds, const std::string& name) {
  SubmitGroup(world, name, min_member, seconds);
  SubmitSet(world, name, replicas, gpus);
}

Act AddsNode(std::string name, int gpus) {
  return [=](World& world) { AddNode(world, name, gpus); };
}

Step UntilRuns(int members, Act act, const std::string& gang) {
  return Until(
      gang + " runs with " + std::to_string(members), [=](const World& world) { return Runs(world, gang, members); },
      std::move(act));
}

Step UntilWaits(int members, Act act, const std::string& gang) {
  return Until(
      gang + " waits, none of it started", [=](const World& world) { return WaitsWhole(world, gang, members); },
      std::move(act));
}

void StartOtherScheduler(World& world) {
  if (Runs(world, kGang, 4)) return;
  for (const auto& pod : world.server.List("pods", kNamespace)) {
    const bool is_ours = Text(*pod, {"spec", "schedulerName"}) == "other" && Text(*pod, {"spec", "nodeName"}).empty();
    if (is_ours && !IsGated(*pod) && !kube::testing::IsBeingDeleted(*pod)) {
      (void)world.server.Bind({kNamespace, Text(*pod, {"metadata", "name"})}, "node-0");
    }
  }
  world.simulation.After(std::chrono::milliseconds(500), [&world] { StartOtherScheduler(world); });
}

Step UntilPodRuns(const std::string& pod, Act act) {
  return Until(
      pod + " runs", [=](const World& world) { return IsRunning(world, pod); }, std::move(act));
}

}  // namespace grus::testing
