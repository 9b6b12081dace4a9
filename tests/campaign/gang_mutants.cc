// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_mutants.h"

#include <chrono>
#include <memory>
#include <stdexcept>

#include "crds/types/sharing_names.h"
#include "tests/campaign/gang_parts.h"
#include "tests/campaign/gang_workload.h"
#include "tests/campaign/gang_workloads.h"
#include "tests/campaign/part_agents.h"
#include "tests/campaign/rule_check.h"

namespace grus::testing {
namespace {

using kube::testing::ServerChange;

using WorkloadPtr = kube::testing::Workloads::value_type;

// Somebody who lifts each gate as soon as there is a member, in place of grus. With a node: who binds it there, too.
WorkloadPtr LiftsEachAtOnce(int replicas, const std::string& node = {}) {
  GangWorkload::Traits traits;
  traits.name = "lifts-each-at-once";
  traits.prepare = [replicas, node](World& world) {
    AddNode(world, "node-0", 8);
    world.server.AddObserver([&world, node](const ServerChange& change) {
      if (change.resource != "pods" || change.before) return;
      world.simulation.After({}, [&world, node, made = change.after] {
        Json pod = *made;
        pod["spec"].Erase("schedulingGates");
        Must(world.server.Update("pods", std::move(pod)));
        if (!node.empty()) (void)world.server.Bind({kNamespace, Text(*made, {"metadata", "name"})}, node);
      });
    });
    SubmitGroup(world, "gang", 4);
    SubmitSet(world, "gang", replicas, 4);
  };
  traits.steps = {Until("anything", [](const World&) { return true; })};
  traits.is_without_grus = true;
  return std::make_unique<GangWorkload>(std::move(traits));
}

// Somebody who sees only the sum over a node's GPUs, and plans the same GPU for all. Who binds them there, too, or with
// faults, who plans them before any is bound.
WorkloadPtr PlansOneGpuForAll(int members, bool is_bound = true) {
  GangWorkload::Traits traits;
  traits.name = "plans-one-gpu-for-all";
  if (is_bound) traits.rules.slack = kUsualSlack;
  traits.prepare = [members, is_bound](World& world) {
    PartAgents::Start(world);
    AddSharedNode(world, "node-0", 2);
    world.server.AddObserver([&world, is_bound](const ServerChange& change) {
      if (change.resource != "pods" || change.before) return;
      world.simulation.After(std::chrono::seconds(1), [&world, is_bound, made = change.after] {
        Json pod = *made;
        pod["spec"].Erase("schedulingGates");
        pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = "GPU-node-0-0";
        Must(world.server.Update("pods", std::move(pod)));
        if (is_bound) (void)world.server.Bind({kNamespace, Text(*made, {"metadata", "name"})}, "node-0");
      });
    });
    SubmitParts(world, "gang", members, 600);
  };
  traits.steps = {Until("anything", [](const World&) { return true; })};
  traits.is_without_grus = true;
  return std::make_unique<GangWorkload>(std::move(traits));
}

// grus without nominations, where an outsider comes in between.
WorkloadPtr NeverNominates() {
  for (auto& workload : GangWorkloads(kFaultySlack, Nominations::kNever)) {
    if (workload->name() == "gang-outsider-between") return std::move(workload);
  }
  throw std::logic_error("no story of that name");
}

// Who rolls a gang of a Job back by plain deletions.
WorkloadPtr DeletesPodsOfAJob() {
  GangWorkload::Traits traits;
  traits.name = "deletes-pods-of-a-job";
  traits.prepare = [](World& world) {
    SubmitGroup(world, "gang", 2);
    SubmitJob(world, "train", 2, 1);
  };
  traits.steps = {Until(
      "its pods are there", [](const World& world) { return world.All("pods").size() == 2; },
      [](World& world) {
        for (const auto& pod : world.server.List("pods", kNamespace)) {
          Delete(world, "pods", Text(*pod, {"metadata", "name"}));
        }
      })};
  traits.is_without_grus = true;
  return std::make_unique<GangWorkload>(std::move(traits));
}

// Who rolls a gang that came together back when it has lost a member, with one made in its place or without.
WorkloadPtr RollsBackAtOnce(int replicas) {
  GangWorkload::Traits traits;
  traits.name = "rolls-back-at-once";
  traits.prepare = [replicas](World& world) {
    AddNode(world, "node-0", 8);
    SubmitGroup(world, "gang", 2);
    SubmitSet(world, "gang", replicas, 4);
    const auto write_status = [&world](std::string_view status) {
      Json group = *world.server.Get(kGroups, {kNamespace, "gang"});
      group["status"] = FromText(status);
      Must(world.server.Update(kGroups, std::move(group), "status"));
    };
    write_status(R"({"startedMinMember":2,"attempts":0})");
    Once(
        world, [](const ServerChange& change) { return change.resource == "pods" && !change.before; },
        [write_status](World& here, const ServerChange& change) {
          Json pod = *change.after;
          pod["spec"].Erase("schedulingGates");
          Must(here.server.Update("pods", std::move(pod)));
          (void)here.server.Bind({kNamespace, Text(*change.after, {"metadata", "name"})}, "node-0");
          here.simulation.After(std::chrono::seconds(5),
                                [write_status] { write_status(R"({"startedMinMember":0,"attempts":1})"); });
        });
  };
  traits.steps = {Until("it is rolled back", [](const World& world) {
    return kube::testing::IntAt(*world.Get(kGroups, {kNamespace, "gang"}), {"status", "attempts"}) == 1;
  })};
  traits.rules.may_roll_back = true;
  traits.is_without_grus = true;
  return std::make_unique<GangWorkload>(std::move(traits));
}

// Somebody in place of grus who tells a gang that waits this, and looks no more. Meanwhile a member of others, which
// was made without the gate, gets a node.
WorkloadPtr SaysOnce(const std::string& message) {
  GangWorkload::Traits traits;
  traits.name = "says-once";
  traits.prepare = [message](World& world) {
    AddNode(world, "node-0", 8);
    SubmitGroup(world, "gang", 2);
    SubmitSet(world, "gang", 2, 4);
    world.simulation.After(std::chrono::seconds(30), [&world, message] {
      Json group = *world.server.Get(kGroups, {kNamespace, "gang"});
      group["status"]["conditions"] = FromText(R"([{"type":"Ready","status":"False","reason":"WaitingForRoom",
          "lastTransitionTime":"2026-01-02T03:04:05Z"}])");
      (*group["status"]["conditions"].AsArray())[0]["message"] = message;
      Must(world.server.Update(kGroups, std::move(group), "status"));
    });
  };
  Step step = Until(
      "it is told something", [](const World& world) { return !ReasonOf(world, "gang").empty(); },
      [](World& world) {
        world.simulation.After(std::chrono::minutes(15), [&world] {
          SubmitUngated(world, "theirs", "others", 4);
          Must(world.server.Bind({kNamespace, "theirs"}, "node-0"));
        });
        world.simulation.After(std::chrono::minutes(30), [&world] { AddNode(world, "node-1", 0); });
      });
  step.lasts = std::chrono::minutes(31);
  traits.steps = {std::move(step)};
  traits.is_without_grus = true;
  return std::make_unique<GangWorkload>(std::move(traits));
}

std::vector<Mutant> Mutants() {
  std::vector<Mutant> mutants;
  mutants.push_back({LiftsEachAtOnce(2), "is lifted while gang has fewer members than its minimum"});
  mutants.push_back({LiftsEachAtOnce(4), "rests on nodes below its minimum"});
  mutants.push_back({LiftsEachAtOnce(4), "is lifted and finds no node"});
  mutants.push_back({LiftsEachAtOnce(4, "node-0"), "node-0 has 8 GPUs, pods hold 12"});
  mutants.push_back({PlansOneGpuForAll(2), "GPU-node-0-0 has 1200 thousandths of pods"});
  mutants.push_back({PlansOneGpuForAll(2, false), "planned onto GPU-node-0-0, for which there are 1200 thousandths"});
  mutants.push_back({PlansOneGpuForAll(3), "is refused by its kubelet"});
  mutants.push_back({NeverNominates(), "is rolled back"});
  mutants.push_back({DeletesPodsOfAJob(), "Job train is charged with"});
  mutants.push_back({RollsBackAtOnce(1), "is rolled back while a member is still to be made"});
  mutants.push_back({RollsBackAtOnce(2), "is rolled back before the scheduler had its time for gang-"});
  mutants.push_back({SaysOnce("waiting for room"), "names nobody who could end its wait"});
  mutants.push_back({SaysOnce("8 of 8 GPUs are held, 8 by default/ghost"), "names default/ghost who holds nothing"});
  mutants.push_back({SaysOnce("8 of 8 GPUs are held; the rest is reserved for default/ghost"),
                     "names default/ghost who is not there"});
  mutants.push_back({SaysOnce("it is expected to start at 2026-01-02T03:10:00Z"), "names a time that is over"});
  mutants.push_back({SaysOnce("8 of 8 GPUs are held"), "waits while the GPUs that it needs are free"});
  mutants.push_back({SaysOnce("8 of 8 GPUs are held, what becomes free is kept from other gangs and jobs"),
                     "is told that room is kept for it, which theirs got"});
  return mutants;
}

}  // namespace

std::vector<std::string> CheckGangRules(int& asked) { return CheckRules(GangWorkloads(kUsualSlack), Mutants(), asked); }

}  // namespace grus::testing
