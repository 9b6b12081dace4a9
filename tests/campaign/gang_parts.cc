// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_parts.h"

#include <chrono>
#include <memory>
#include <utility>

#include "crds/types/sharing_names.h"
#include "tests/campaign/part_agents.h"
#include "tests/kit/objects.h"

namespace grus::testing {
namespace {

using kube::testing::ServerChange;
using std::chrono::seconds;

constexpr char kOther[] = "other";

Act Submits(const std::string& name, int replicas, int milli) {
  return [=](World& world) { SubmitParts(world, name, replicas, milli); };
}

// Nodes of two shared GPUs, and a gang of three of 600 thousandths, each of which needs a GPU for itself.
std::shared_ptr<PartAgents> StartWithThree(World& world, int nodes) {
  auto agents = PartAgents::Start(world);
  for (int i = 0; i < nodes; ++i) AddSharedNode(world, "node-" + std::to_string(i), 2);
  SubmitParts(world, kGang, 3, 600);
  return agents;
}

GangStory OfThree(std::string name, int nodes) {
  return {.name = std::move(name),
          .prepare = [=](World& world) { StartWithThree(world, nodes); },
          .steps = {},
          .rules = {.most_members = 3}};
}

// The sum of what is free is enough for the gang before, of single GPUs only after the second node.
GangStory WaitForGpus() {
  GangStory story = OfThree("parts-wait-for-gpus", 1);
  story.steps = {UntilWaits(3, [](World& world) { AddSharedNode(world, "node-9", 2); }),
                 UntilRuns(3, Submits(kOther, 4, 400)), UntilRuns(4, nullptr, kOther)};
  story.rules.most_members = 7;
  return story;
}

// Two whole GPUs of one node: in sum they are free before, and on two nodes.
GangStory WaitForWholeGpus() {
  GangStory story = OfThree("parts-wait-for-whole-gpus", 2);
  story.steps = {UntilRuns(3, Submits(kOther, 1, 2000)),
                 UntilWaits(
                     1, [](World& world) { AddSharedNode(world, "node-9", 2); }, kOther),
                 UntilRuns(1, nullptr, kOther)};
  story.rules.most_members = 4;
  return story;
}

// Which dies with what it was about to write, while the next gang is planned beside the first one.
GangStory AgentDies() {
  GangStory story = OfThree("parts-agent-dies", 2);
  story.prepare = [](World& world) {
    const auto agents = StartWithThree(world, 2);
    const auto is_bound = [](const ServerChange& change) {
      return change.resource == "pods" && change.after && IsBound(*change.after);
    };
    Once(world, is_bound,
         [agents](World& it, const ServerChange&) { agents->Kill(it.simulation.Between(seconds(1), seconds(90))); });
  };
  story.steps = {UntilRuns(3, Submits(kOther, 4, 400)), UntilRuns(4, nullptr, kOther)};
  story.rules.most_members = 7;
  return story;
}

GangStory KubeletRestarts() {
  GangStory story = OfThree("parts-kubelet-restarts", 2);
  story.steps = {UntilRuns(3,
                           [](World& world) {
                             RestartKubelet(world, "node-0", seconds(20));
                             RestartKubelet(world, "node-1", seconds(40));
                             SubmitParts(world, kOther, 4, 400);
                           }),
                 UntilRuns(4, nullptr, kOther)};
  story.rules.most_members = 7;
  return story;
}

// Under running pods, which keep it. Nobody else is planned there until it is well.
GangStory GpuDies() {
  GangStory story = OfThree("parts-gpu-dies", 2);
  story.steps = {UntilRuns(3,
                           [](World& world) {
                             SetSickGpu(world, "node-0", "0");
                             world.simulation.After(seconds(30), [&world] { SubmitParts(world, kOther, 5, 400); });
                           }),
                 UntilWaits(
                     5, [](World& world) { SetSickGpu(world, "node-0", ""); }, kOther),
                 UntilRuns(5, nullptr, kOther)};
  story.rules.most_members = 8;
  return story;
}

GangStory NodeLeaves() {
  GangStory story = OfThree("parts-node-leaves", 2);
  story.steps = {UntilRuns(3,
                           [](World& world) {
                             world.cluster.RemoveNode("node-0");
                             AddSharedNode(world, "node-9", 2);
                           }),
                 UntilRuns(3)};
  story.rules = {.may_roll_back = true};
  return story;
}

}  // namespace

void SubmitParts(World& world, const std::string& name, int replicas, int milli) {
  SubmitGroup(world, name, replicas);
  Must(world.server.Create(
      "statefulsets.apps",
      kit::MakeStatefulSet(name, replicas, kit::Gated(kit::PodSpec(milli, "{}", api::kGpuMilliResource)),
                           kit::MemberOf(name), kNamespace)));
}

std::vector<GangStory> GangsOfParts() {
  return {WaitForGpus(), WaitForWholeGpus(), AgentDies(), KubeletRestarts(), GpuDies(), NodeLeaves()};
}

}  // namespace grus::testing
