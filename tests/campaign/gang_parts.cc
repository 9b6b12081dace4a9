// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_parts.h"

#include <chrono>
#include <memory>
#include <utility>

#include "tests/campaign/part_agents.h"
#include "tests/kit/objects.h"

namespace grus::testing {
namespace {

using kube::testing::ServerChange;
using std::chrono::seconds;

constexpr char kOther[] = "other";

// The agents of the world that is being played.
using Agents = std::shared_ptr<std::shared_ptr<PartAgents>>;

void SubmitParts(World& world, const std::string& name, int replicas, int milli) {
  SubmitGroup(world, name, replicas);
  Must(world.server.Create("statefulsets.apps",
                           kit::MakeStatefulSet(name, replicas, kit::Gated(kit::PodSpec(milli, "{}", kMilli)),
                                                kit::MemberOf(name), kNamespace)));
}

Act Submits(const std::string& name, int replicas, int milli) {
  return [=](World& world) { SubmitParts(world, name, replicas, milli); };
}

// Nodes of two shared GPUs, and a gang of three of 600 thousandths, each of which needs a GPU for itself.
GangStory OfThree(std::string name, int nodes, const Agents& agents) {
  return {.name = std::move(name),
          .prepare =
              [=](World& world) {
                *agents = PartAgents::Start(world);
                for (int i = 0; i < nodes; ++i) (*agents)->AddNode("node-" + std::to_string(i), 2);
                SubmitParts(world, kGang, 3, 600);
              },
          .steps = {},
          .rules = {.most_members = 3}};
}
Act AddsSharedNode(const Agents& agents, const std::string& name) {
  return [=](World&) { (*agents)->AddNode(name, 2); };
}

// The sum of what is free is enough for the gang before, of single GPUs only after the second node.
GangStory WaitForGpus() {
  const auto agents = std::make_shared<std::shared_ptr<PartAgents>>();
  GangStory story = OfThree("parts-wait-for-gpus", 1, agents);
  story.steps = {UntilWaits(3, AddsSharedNode(agents, "node-9")), UntilRuns(3, Submits(kOther, 4, 400)),
                 UntilRuns(4, nullptr, kOther)};
  story.rules.most_members = 7;
  return story;
}

// Which dies with what it was about to write, while the next gang is planned beside the first one.
GangStory AgentDies() {
  const auto agents = std::make_shared<std::shared_ptr<PartAgents>>();
  GangStory story = OfThree("parts-agent-dies", 2, agents);
  story.prepare = [agents, prepare = std::move(story.prepare)](World& world) {
    prepare(world);
    Once(
        world,
        [](const ServerChange& change) { return change.resource == "pods" && change.after && IsBound(*change.after); },
        [agents](World& it, const ServerChange&) {
          (*agents)->KillAgents(it.simulation.Between(seconds(1), seconds(90)));
        });
  };
  story.steps = {UntilRuns(3, Submits(kOther, 4, 400)), UntilRuns(4, nullptr, kOther)};
  story.rules.most_members = 7;
  return story;
}

GangStory KubeletRestarts() {
  const auto agents = std::make_shared<std::shared_ptr<PartAgents>>();
  GangStory story = OfThree("parts-kubelet-restarts", 2, agents);
  story.steps = {UntilRuns(3,
                           [=](World& world) {
                             (*agents)->RestartKubelet("node-0", seconds(20));
                             (*agents)->RestartKubelet("node-1", seconds(40));
                             SubmitParts(world, kOther, 4, 400);
                           }),
                 UntilRuns(4, nullptr, kOther)};
  story.rules.most_members = 7;
  return story;
}

// Under running pods, which keep it. Nobody else is planned there until it is well.
GangStory GpuDies() {
  const auto agents = std::make_shared<std::shared_ptr<PartAgents>>();
  GangStory story = OfThree("parts-gpu-dies", 2, agents);
  story.steps = {UntilRuns(3,
                           [=](World& world) {
                             (*agents)->SetHealthy("node-0", 0, false);
                             world.simulation.After(seconds(30), [&world] { SubmitParts(world, kOther, 5, 400); });
                           }),
                 UntilWaits(
                     4, [=](World&) { (*agents)->SetHealthy("node-0", 0, true); }, kOther),
                 UntilRuns(5, nullptr, kOther)};
  story.rules.most_members = 8;
  return story;
}

GangStory NodeLeaves() {
  const auto agents = std::make_shared<std::shared_ptr<PartAgents>>();
  GangStory story = OfThree("parts-node-leaves", 2, agents);
  story.steps = {UntilRuns(3,
                           [=](World& world) {
                             world.cluster.RemoveNode("node-0");
                             (*agents)->AddNode("node-9", 2);
                           }),
                 UntilRuns(3)};
  story.rules = {.may_roll_back = true};
  return story;
}

}  // namespace

std::vector<GangStory> GangsOfParts() {
  return {WaitForGpus(), AgentDies(), KubeletRestarts(), GpuDies(), NodeLeaves()};
}

}  // namespace grus::testing
