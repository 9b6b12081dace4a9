// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_mutants.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "clientlib/testing/faults/fault_run.h"
#include "tests/campaign/gang_workload.h"
#include "tests/campaign/gang_workloads.h"

namespace grus::testing {
namespace {

using kube::testing::ServerChange;

using WorkloadPtr = kube::testing::Workloads::value_type;

// A wrong way to start a gang, and what is said about it.
struct Mutant {
  WorkloadPtr workload;
  const char* complaint;
};

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
        Must(world.server.Update("pods", std::move(pod), "naive"));
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

// grus without nominations, where an outsider comes in between.
WorkloadPtr NeverNominates() {
  for (auto& workload : GangWorkloads(kFaultySlack, Nominations::kNever)) {
    if (workload->name() == "gang-outsider-between") return std::move(workload);
  }
  throw std::logic_error("no story of that name");
}

std::vector<Mutant> Mutants() {
  std::vector<Mutant> mutants;
  mutants.push_back({LiftsEachAtOnce(2), "is lifted while gang has fewer members than its minimum"});
  mutants.push_back({LiftsEachAtOnce(4), "rests on nodes below its minimum"});
  mutants.push_back({LiftsEachAtOnce(4), "is lifted and finds no node"});
  mutants.push_back({LiftsEachAtOnce(4, "node-0"), "node-0 has 8 GPUs, pods hold 12"});
  mutants.push_back({NeverNominates(), "is rolled back"});
  return mutants;
}

}  // namespace

std::vector<std::string> CheckGangRules(int& asked) {
  std::vector<std::string> wrong;
  constexpr std::uint64_t kSeeds = 40;  // Of chance that a mutant may need.
  asked = 0;
  for (const auto& workload : GangWorkloads(kUsualSlack)) {
    ++asked;
    for (const std::string& complaint : Run(*workload, {std::string(workload->name()), 1, {}}).complaints) {
      wrong.push_back(std::string(workload->name()) + " without faults: " + complaint);
    }
  }
  for (const Mutant& mutant : Mutants()) {
    ++asked;
    const std::string name(mutant.workload->name());
    const auto is_found = [&](std::uint64_t seed) {
      const std::vector<std::string> complaints = Run(*mutant.workload, {name, seed, {}}).complaints;
      return std::any_of(complaints.begin(), complaints.end(),
                         [&](const std::string& text) { return text.find(mutant.complaint) != std::string::npos; });
    };
    bool was_found = false;
    for (std::uint64_t seed = 1; seed <= kSeeds && !was_found; ++seed) was_found = is_found(seed);
    if (!was_found) wrong.push_back(name + " is wrong, but nobody says that it \"" + mutant.complaint + "\"");
  }
  return wrong;
}

}  // namespace grus::testing
