// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_quotas.h"

namespace grus::testing {
namespace {

constexpr char kQuotas[] = "resourcequotas", kOther[] = "other";
constexpr char kFour[] = R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})";

// So many GPUs for the pods of any priority class but "spare".
void AddQuota(World& world, int gpus) {
  Must(world.server.Create("priorityclasses.scheduling.k8s.io", FromText(R"({"apiVersion":"scheduling.k8s.io/v1",
      "kind":"PriorityClass","metadata":{"name":"spare"},"value":0})")));
  Json quota = FromText(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"team"},
      "spec":{"scopeSelector":{"matchExpressions":[
      {"scopeName":"PriorityClass","operator":"NotIn","values":["spare"]}]}}})");
  quota["metadata"]["namespace"] = kNamespace;
  quota["spec"]["hard"]["requests.nvidia.com/gpu"] = std::to_string(gpus);
  Must(world.server.Create(kQuotas, std::move(quota)));
}
std::function<void(World&)> Sets(int gpus) {
  return [gpus](World& world) {
    EditSpec(world, kQuotas, "team", R"({"hard":{"requests.nvidia.com/gpu":")" + std::to_string(gpus) + R"("}})");
  };
}
// The job comes once the quota is in force.
std::function<void(World&)> Limited(int nodes, int gpus, int quota) {
  return [=](World& world) {
    AddQuota(world, quota);
    for (int i = 0; i < nodes; ++i) AddNode(world, "node-" + std::to_string(i), gpus);
  };
}
Step UntilInForce(int gpus, std::function<void(World&)> act) {
  return Until(
      "the quota is in force",
      [gpus](const World& world) {
        const Json* quota = world.Get(kQuotas, {kNamespace, "team"});
        return quota && Text(*quota, {"status", "hard", "requests.nvidia.com/gpu"}) == std::to_string(gpus);
      },
      std::move(act));
}
Step UntilWaits(std::function<void(World&)> act) {
  return Until(
      "it waits for the quota",
      [](const World& world) {
        return ConditionReason(world, kName, "Reconciling") == "WaitingForQuota" && HoldsNothing(world, kName);
      },
      std::move(act));
}

// Another job has the GPUs that it may not use.
ElasticStory QuotaRaised() {
  const auto submits = [](World& world) { Submit(world, kName, kFour); };
  const auto submits_other = [](World& world) {
    Submit(world, kOther, R"({"priorityClassName":"spare","workersSpec":{"minReplicas":4,"maxReplicas":4}})");
  };
  const auto other_ends = [](World& world) { EndTraining(world, kOther, "succeed"); };
  return {
      .name = "quota-raised",
      .prepare = Limited(1, 4, 1),
      .steps = {UntilInForce(1, submits), UntilWaits(submits_other),
                Until(
                    "the other one trains", [](const World& world) { return Trains(world, kOther, 4); }, other_ends),
                Until(
                    "the other one is done", [](const World& world) { return PhaseOf(world, kOther) == "Succeeded"; },
                    Sets(4)),
                UntilTrains(4)}};
}

// It runs on a part, which is all that it may have, and takes the rest when it may.
ElasticStory QuotaInPart() {
  const auto submits = [](World& world) { Submit(world, kName, kFour); };
  return {.name = "quota-in-part",
          .prepare = Limited(2, 4, 3),
          .steps = {UntilInForce(3, submits), UntilTrains(3, Sets(4)), UntilTrains(4)}};
}

// At rest on what it may have.
ElasticStory QuotaReached() {
  const auto submits = [](World& world) { Submit(world, kName, kFour); };
  const auto adds_node = [](World& world) { AddNode(world, "node-1", 4); };
  return {.name = "quota-reached",
          .prepare = Limited(1, 2, 3),
          .steps = {UntilInForce(3, submits), UntilTrains(2, adds_node), UntilTrains(3)}};
}

// Two jobs of one quota: the second one waits for the first one's end.
ElasticStory QuotaShared() {
  const auto submits = [](World& world) { Submit(world, kName, kFour); };
  const auto submits_other = [](World& world) {
    Submit(world, kOther, R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  };
  return {.name = "quota-shared",
          .prepare = Limited(2, 4, 3),
          .steps = {UntilInForce(3, submits), UntilTrains(3, submits_other),
                    Until(
                        "the other one waits for the quota",
                        [](const World& world) {
                          return ConditionReason(world, kOther, "Reconciling") == "WaitingForQuota" &&
                                 HoldsNothing(world, kOther);
                        },
                        Ends("succeed")),
                    Until("the other one trains", [](const World& world) { return Trains(world, kOther, 2); })},
          .has_rival = true,
          .has_retries = true};
}

}  // namespace

std::vector<ElasticStory> ElasticQuotas() { return {QuotaRaised(), QuotaInPart(), QuotaReached(), QuotaShared()}; }

}  // namespace grus::testing
