// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_queues.h"

namespace grus::testing {
namespace {

constexpr char kQueues[] = "gpuqueues.ai.centauruscloud.io", kOwner[] = "owner";

// Without a selector, so that jobs of any namespace may name it.
void AddQueue(World& world, const std::string& name, std::string_view spec) {
  Json queue = FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"GpuQueue","metadata":{},"spec":{}})");
  queue["metadata"]["name"] = name;
  queue["spec"] = FromText(spec);
  queue["spec"]["preemptionNoticeSeconds"] = 5;
  Must(world.server.Create(kQueues, std::move(queue)));
}

// Of 2 nodes with 4 GPUs, 4 are guaranteed to the queue "owner", and none to "borrower".
void Shared(World& world) {
  AddQueue(world, kOwner, R"({"quotas":[{"pool":"default","guaranteed":4}]})");
  AddQueue(world, "borrower", R"({"quotas":[{"pool":"default","limit":8}]})");
  for (const char* node : {"node-0", "node-1"}) AddNode(world, node, 4);
}
std::function<void(World&)> Borrows(int min) {
  return [min](World& world) {
    Submit(world, kName,
           R"({"queueName":"borrower","workersSpec":{"maxReplicas":8,"minReplicas":)" + std::to_string(min) + "}}");
  };
}
void Claims(World& world) {
  Submit(world, kOwner, R"({"queueName":"owner","workersSpec":{"minReplicas":4,"maxReplicas":4}})");
}
std::function<void(World&)> ThenBorrows(int min) {
  return [min](World& world) {
    Shared(world);
    Borrows(min)(world);
  };
}
Step UntilOwnerTrains(std::function<void(World&)> act = nullptr) {
  return Until(
      "the owner trains", [](const World& world) { return Trains(world, kOwner, 4); }, std::move(act));
}
Step UntilOwnerIsDone(std::function<void(World&)> act = nullptr) {
  return Until(
      "the owner is done", [](const World& world) { return PhaseOf(world, kOwner) == "Succeeded"; }, std::move(act));
}
void OwnerEnds(World& world) { EndTraining(world, kOwner, "succeed"); }

// Workers beyond the minimum go back to the queue that they are guaranteed to, and return when it needs them no more.
ElasticStory SurplusIsReclaimed() {
  return {.name = "queue-reclaims-surplus",
          .prepare = ThenBorrows(2),
          .steps = {UntilTrains(8, Claims), UntilOwnerTrains(), UntilTrains(4, OwnerEnds), UntilOwnerIsDone(),
                    UntilTrains(8)},
          .has_retries = true};
}

// A job that cannot shrink gives all back after a notice, and starts again by itself.
ElasticStory JobIsPreempted() {
  return {.name = "queue-preempts-job",
          .prepare = ThenBorrows(8),
          .steps = {UntilTrains(8, Claims), UntilOwnerTrains(OwnerEnds), UntilOwnerIsDone(), UntilTrains(8)},
          .has_retries = true};
}

// The limit holds for all that comes, and nothing is stopped for it.
ElasticStory LimitIsLowered() {
  const auto lowers = [](World& world) {
    EditSpec(world, kQueues, "borrower", R"({"quotas":[{"pool":"default","limit":4}]})");
    Submit(world, "late", R"({"queueName":"borrower","workersSpec":{"minReplicas":1,"maxReplicas":1}})");
  };
  return {.name = "queue-limit-lowered",
          .prepare = ThenBorrows(8),
          .steps = {UntilTrains(8, lowers),
                    Until(
                        "the late one waits",
                        [](const World& world) {
                          return ConditionReason(world, "late", "Reconciling") == "WaitingForQuota" ||
                                 ConditionReason(world, "late", "Reconciling") == "WaitingForRoom";
                        },
                        Ends("succeed")),
                    Until("the late one trains", [](const World& world) { return Trains(world, "late", 1); })},
          .has_retries = true};
}

// While a job yields, a node is lost under it.
ElasticStory NodeIsLostWhileReclaiming() {
  const auto loses = [](World& world) {
    Claims(world);
    world.simulation.After(std::chrono::seconds(3), [&world] { Delete(world, "nodes", "node-1"); });
    world.simulation.After(std::chrono::seconds(90), [&world] { AddNode(world, "node-2", 4); });
  };
  return {
      .name = "queue-node-lost-while-reclaiming",
      .prepare = ThenBorrows(2),
      .steps = {UntilTrains(8, loses), UntilOwnerTrains(),
                Until("the borrower trains on the rest", [](const World& world) { return Trains(world, kName, 4); })},
      .has_retries = true};
}

// The nodes of a pool get a label that puts them into another one, where the queue has nothing.
ElasticStory PoolIsRelabelled() {
  const auto prepare = [](World& world) {
    Must(world.server.Create("nodepools.ai.centauruscloud.io",
                             FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"NodePool",
        "metadata":{"name":"fast"},"spec":{"nodeSelector":{"speed":"fast"}}})")));
    AddQueue(world, "borrower", R"({"quotas":[{"pool":"fast","limit":0},{"pool":"default","limit":4}]})");
    AddNode(world, "node-0", 4);
    Submit(world, kName, R"({"queueName":"borrower","workersSpec":{"minReplicas":4,"maxReplicas":4}})");
  };
  const auto relabels = [](World& world) {
    Json node = *world.server.Get("nodes", {"", "node-0"});
    node["metadata"]["labels"]["speed"] = "fast";
    Must(world.server.Update("nodes", std::move(node)));
    Submit(world, "late", R"({"queueName":"borrower","workersSpec":{"minReplicas":1,"maxReplicas":1}})");
  };
  const auto adds = [](World& world) { AddNode(world, "node-1", 1); };
  return {
      .name = "queue-pool-relabelled",
      .prepare = prepare,
      .steps = {UntilTrains(4, relabels), UntilTrains(4, adds),
                Until("the late one trains elsewhere", [](const World& world) { return Trains(world, "late", 1); })},
      .has_retries = true};
}

}  // namespace

std::vector<ElasticStory> ElasticQueues() {
  return {SurplusIsReclaimed(), JobIsPreempted(), LimitIsLowered(), NodeIsLostWhileReclaiming(), PoolIsRelabelled()};
}

}  // namespace grus::testing
