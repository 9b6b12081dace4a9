// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_queues.h"

#include "tests/campaign/queue_objects.h"

namespace grus::testing {
namespace {

constexpr char kOwner[] = "owner";

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
                                 ConditionReason(world, "late", "Reconciling") == "WaitingForQueue";
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
    AddPool(world, "fast");
    AddQueue(world, "borrower", R"({"quotas":[{"pool":"fast","limit":0},{"pool":"default","limit":4}]})");
    AddNode(world, "node-0", 4);
    Submit(world, kName, R"({"queueName":"borrower","workersSpec":{"minReplicas":4,"maxReplicas":4}})");
  };
  const auto relabels = [](World& world) {
    Json node = *world.server.Get("nodes", {"", "node-0"});
    node["metadata"]["labels"]["pool"] = "fast";
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

// The share of the queue that waits grows with its weight: surplus workers of the other one yield.
ElasticStory WeightsAreChanged() {
  const auto prepare = [](World& world) {
    AddQueue(world, kOwner, R"({"quotas":[{"pool":"default","weight":1}]})");
    AddQueue(world, "borrower", R"({"quotas":[{"pool":"default","weight":1}]})");
    for (const char* node : {"node-0", "node-1"}) AddNode(world, node, 4);
    Borrows(2)(world);
  };
  const auto claims = [](World& world) {
    Submit(world, kOwner, R"({"queueName":"owner","workersSpec":{"minReplicas":6,"maxReplicas":6}})");
  };
  const auto weighs = [](World& world) {
    EditSpec(world, kQueues, kOwner, R"({"quotas":[{"pool":"default","weight":3}]})");
  };
  Step waits = Until(
      "the owner waits", [](const World& world) { return PhaseOf(world, kOwner) == "Waiting"; }, weighs);
  waits.lasts = std::chrono::minutes(2);
  return {
      .name = "queue-weights-changed",
      .prepare = prepare,
      .steps = {UntilTrains(8, claims), std::move(waits),
                Until("the owner trains", [](const World& world) { return Trains(world, kOwner, 6); }), UntilTrains(2)},
      .has_retries = true};
}

// A limit that is set under a job that has run for longer ends it at once, and its GPUs go to others.
ElasticStory RuntimeLimitIsSet() {
  const auto limits = [](World& world) {
    world.simulation.After(std::chrono::minutes(2),
                           [&world] { EditSpec(world, kQueues, "borrower", R"({"maximumRuntimeSeconds":60})"); });
  };
  return {.name = "queue-runtime-limit-set",
          .prepare = ThenBorrows(8),
          .steps = {UntilTrains(8, limits), UntilOver("Failed", Claims), UntilOwnerTrains()},
          .has_retries = true};
}

// The runs before and after a preemption count together; then the job fails, and never starts again. They count by the
// wall clock: where it was set forward, the job's time may be over before it runs again.
ElasticStory RuntimeIsOver() {
  const auto prepare = [](World& world) {
    ThenBorrows(8)(world);
    EditSpec(world, kQueues, "borrower", R"({"maximumRuntimeSeconds":3600})");
  };
  const auto raises = [](World& world) { EditSpec(world, kQueues, "borrower", R"({"maximumRuntimeSeconds":36000})"); };
  const auto runs_or_is_over = [](const World& world) {
    if (PhaseOf(world, kName) != "Failed") return Trains(world, kName, 8);
    // A clock that is set forward, and perhaps back again, has charged an hour to it: its status says so.
    const Json* job = world.Get(kJobs, {kNamespace, kName});
    const Json* ran = job->At({"status", "usage", "runSeconds"});
    const auto scaled = kube::ParseTime(Text(*job, {"status", "lastScale", "time"}));
    const auto ended = kube::ParseTime(Text(*job, {"status", "completionTime"}));
    const auto before = std::chrono::seconds(ran && ran->AsInt() ? *ran->AsInt() : 0);
    return scaled && ended && before + (ended->value - scaled->value) >= std::chrono::hours(1);
  };
  const auto until = [&](std::function<void(World&)> act) {
    return Until("it trains with 8, or its time is over", runs_or_is_over, std::move(act));
  };
  return {.name = "queue-runtime-over",
          .prepare = prepare,
          .steps = {until(Claims), UntilOwnerTrains(OwnerEnds), UntilOwnerIsDone(), until(nullptr),
                    UntilOver("Failed", raises)},
          .has_retries = true};
}

}  // namespace

std::vector<ElasticStory> ElasticQueues() {
  return {SurplusIsReclaimed(), JobIsPreempted(),    LimitIsLowered(),    NodeIsLostWhileReclaiming(),
          PoolIsRelabelled(),   WeightsAreChanged(), RuntimeLimitIsSet(), RuntimeIsOver()};
}

}  // namespace grus::testing
