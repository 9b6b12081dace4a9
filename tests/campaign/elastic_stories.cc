// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_stories.h"

#include <algorithm>
#include <utility>

#include "tests/campaign/elastic_invariants.h"

namespace grus::testing {

std::function<void(World&)> Cluster(int nodes, int gpus, std::string_view spec) {
  return [=](World& world) {
    for (int i = 0; i < nodes; ++i) AddNode(world, "node-" + std::to_string(i), gpus);
    Submit(world, kName, spec);
  };
}

Step UntilTrains(int workers, std::function<void(World&)> act) {
  return Until(
      "it trains with " + std::to_string(workers),
      [workers](const World& world) { return Trains(world, kName, workers); }, std::move(act));
}
Step UntilPhase(std::string phase, std::function<void(World&)> act) {
  return Until(
      "it is " + phase, [phase](const World& world) { return PhaseOf(world, kName) == phase; }, std::move(act));
}
Step UntilOver(std::string phase, std::function<void(World&)> act) {
  return Until(
      "it is " + phase + " and its workers are gone",
      [phase](const World& world) {
        if (PhaseOf(world, kName) != phase) return false;
        const auto& pods = world.All(kPods);
        return std::none_of(pods.begin(), pods.end(), [](const auto& pod) { return HasRole(*pod.second, "worker"); });
      },
      std::move(act));
}

std::function<void(World&)> Edits(std::string spec) {
  return [spec](World& world) { Edit(world, kName, spec); };
}
std::function<void(World&)> Ends(std::string outcome) {
  return [outcome](World& world) { EndTraining(world, kName, outcome); };
}

}  // namespace grus::testing
