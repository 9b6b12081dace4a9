// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_lives.h"

#include "tests/campaign/elastic_stories.h"

namespace grus::testing {
namespace {

using Traits = ElasticStory;

constexpr char kFour[] = R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})";

Traits StartAndSucceed() {
  return {.name = "start-and-succeed",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4, Ends("succeed")), UntilOver("Succeeded")}};
}

Traits LauncherFails() {
  return {
      .name = "launcher-fails",
      .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4},"runPolicy":{"backoffLimit":0}})"),
      .steps = {UntilTrains(4, Ends("fail")), UntilOver("Failed")}};
}

Traits ScaleUpAndDown() {
  return {.name = "scale-up-and-down",
          .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":8,"targetReplicas":3}})"),
          .steps = {UntilTrains(3, Edits(R"({"workersSpec":{"targetReplicas":6}})")),
                    UntilTrains(6, Edits(R"({"workersSpec":{"targetReplicas":2}})")), UntilTrains(2)}};
}

Traits ShrinkAndGrow() {
  return {.name = "shrink-and-grow",
          .prepare = Cluster(1, 4, R"({"workersSpec":{"minReplicas":2,"maxReplicas":6}})"),
          .steps = {UntilTrains(4, [](World& world) { AddNode(world, "node-9", 4); }), UntilTrains(6)}};
}

Traits NodeLost() {
  return {
      .name = "node-lost",
      .prepare = Cluster(3, 2, R"({"launcherSpec":{"template":{"spec":{"nodeSelector":{"pool":"base"}}}},
                                       "workersSpec":{"minReplicas":2,"maxReplicas":6}})"),
      .steps = {Until(
                    "it waits for a node for its launcher, and holds nothing",
                    [](const World& world) { return PhaseOf(world, kName) == "Waiting" && HoldsNothing(world, kName); },
                    [](World& world) {
                      AddNode(world, "base-0", 0, Json::MakeObject({{"pool", "base"}}));
                    }),
                UntilTrains(6, [](World& world) { world.cluster.RemoveNode("node-1"); }), UntilTrains(4)},
      .has_retries = true};
}

// The launcher asks for a GPU, too.
Traits LauncherNeedsRoom() {
  return {.name = "launcher-needs-room",
          .prepare = Cluster(1, 4, R"({"launcherSpec":{"template":{"spec":{"containers":[
              {"name":"launcher","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}},
              "workersSpec":{"minReplicas":2,"maxReplicas":4}})"),
          .steps = {UntilTrains(3, Ends("succeed")), UntilOver("Succeeded")}};
}

// Each container of the namespace gets a third of a node's processors, which no template says.
constexpr char kTightRange[] = R"({"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"range"},
    "spec":{"limits":[{"type":"Container","defaultRequest":{"cpu":"30"}}]}})";
std::function<void(World&)> TightCluster(int nodes, const char* spec) {
  return [=](World& world) {
    Json range = FromText(kTightRange);
    range["metadata"]["namespace"] = kNamespace;
    Must(world.server.Create("limitranges", std::move(range)));
    Cluster(nodes, 8, spec)(world);
  };
}

Traits LimitRange() {
  return {.name = "limit-range",
          .prepare = TightCluster(1, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})"),
          .steps = {UntilTrains(2, [](World& world) { AddNode(world, "node-9", 8); }), UntilTrains(4)}};
}

Traits LimitRangeTaken() {
  return {
      .name = "limit-range-taken",
      .prepare = TightCluster(1, R"({"workersSpec":{"minReplicas":4,"maxReplicas":4}})"),
      .steps = {Until(
                    "it waits and holds nothing",
                    [](const World& world) { return PhaseOf(world, kName) == "Waiting" && HoldsNothing(world, kName); },
                    [](World& world) { Delete(world, "limitranges", "range"); }),
                UntilTrains(4)}};
}

// A cluster autoscaler adds nodes when it sees pods that cannot be scheduled.
Traits UngatedForAnAutoscaler() {
  return {.name = "ungated-for-an-autoscaler",
          .prepare = Cluster(1, 2, R"({"runPolicy":{"schedulingPolicy":{"whenUnschedulable":"Ungate","minAvailable":4}},
              "workersSpec":{"minReplicas":2,"maxReplicas":4}})"),
          .steps = {Until(
                        "an autoscaler sees what is missing",
                        [](const World& world) {
                          const auto pods = world.server.List("pods", kNamespace);
                          return std::count_if(pods.begin(), pods.end(), [](const auto& pod) {
                                   return Text(*pod, {"spec", "nodeName"}).empty() &&
                                          Text(*pod, {"metadata", "labels", "ai.centauruscloud.io/role"}) == "worker";
                                 }) == 2;
                        },
                        [](World& world) { AddNode(world, "node-9", 2); }),
                    UntilTrains(4)}};
}

Traits SuspendAndResume() {
  return {.name = "suspend-and-resume",
          .prepare = Cluster(2, 8, kFour),
          .steps = {
              UntilTrains(4, Edits(R"({"runPolicy":{"suspend":true}})")),
              Until(
                  "it is suspended and holds nothing",
                  [](const World& world) { return PhaseOf(world, kName) == "Suspended" && HoldsNothing(world, kName); },
                  Edits(R"({"runPolicy":{"suspend":false}})")),
              UntilTrains(4)}};
}

Traits WaitForRoom() {
  return {.name = "wait-for-room",
          .prepare = Cluster(1, 2, R"({"workersSpec":{"minReplicas":4,"maxReplicas":4}})"),
          .steps = {UntilPhase("Waiting", [](World& world) { AddNode(world, "node-9", 4); }), UntilTrains(4)}};
}

Traits TwoJobs() {
  static constexpr char kSix[] = R"({"workersSpec":{"minReplicas":6,"maxReplicas":6}})";
  return {.name = "two-jobs-one-room",
          .prepare = Cluster(1, 8, kSix),
          .steps = {UntilTrains(6, [](World& world) { Submit(world, "second", kSix); }),
                    Until(
                        "the second one waits",
                        [](const World& world) { return PhaseOf(world, "second") == "Waiting"; }, Ends("succeed")),
                    Until("the second one trains", [](const World& world) { return Trains(world, "second", 6); })},
          .has_rival = true};
}

Traits DeletedAndMadeAgain() {
  return {.name = "deleted-and-made-again",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4,
                                [](World& world) {
                                  Delete(world, kJobs, kName);
                                  Submit(world, kName, R"({"workersSpec":{"minReplicas":2,"maxReplicas":3}})");
                                }),
                    UntilTrains(3)}};  // The workers of the first one may not be gone yet.
}

Traits DeletedForGood() {
  return {.name = "deleted",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4, [](World& world) { Delete(world, kJobs, kName); }),
                    Until("nothing is left", [](const World& world) {
                      return LeftNothing(world, kName) && world.All("services").empty() && world.All("secrets").empty();
                    })}};
}

Traits NamespaceDeleted() {
  return {.name = "namespace-deleted",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4, [](World& world) { Delete(world, "namespaces", kNamespace); }),
                    Until("the namespace is gone", [](const World& world) {
                      return world.Get("namespaces", {"", kNamespace}) == nullptr;
                    })}};
}

Traits WorkerCrashes() {
  return {.name = "worker-crashes",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4, [](World& world) { Delete(world, "pods", "train-workers-1"); }),
                    Until("another one is there", [](const World& world) {
                      const Json* pod = world.Get("pods", {kNamespace, "train-workers-1"});
                      return !(pod && pod->At({"metadata", "deletionTimestamp"})) && Trains(world, kName, 4);
                    })}};
}

// Out of sight, and found again by its name.
Traits WorkerLosesItsLabels() {
  return {.name = "worker-loses-its-labels",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4,
                                [](World& world) {
                                  // A name that seemed taken when it was made is not used.
                                  auto pod = world.server.Get("pods", {kNamespace, "train-workers-1"});
                                  if (!pod) pod = world.server.Get("pods", {kNamespace, "train-workers-2"});
                                  if (!pod) return;
                                  Json bare = *pod;
                                  bare["metadata"].Erase("labels");
                                  Must(world.server.Update("pods", std::move(bare)));
                                }),
                    Until("it has them again", [](const World& world) {
                      for (const auto& [key, pod] : world.All("pods")) {
                        if (key.name.starts_with("train-workers-") && !pod->At({"metadata", "labels"})) return false;
                      }
                      return Trains(world, kName, 4);
                    })}};
}

Traits TimeToLive() {
  return {.name = "time-to-live",
          .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4},
                                       "runPolicy":{"ttlSecondsAfterFinished":60}})"),
          .steps = {UntilTrains(4, Ends("succeed")), Until("the job is gone", [](const World& world) {
                      return world.Get(kJobs, {kNamespace, kName}) == nullptr && LeftNothing(world, kName);
                    })}};
}

Traits CrdDeleted() {
  static constexpr char kCrds[] = "customresourcedefinitions.apiextensions.k8s.io";
  return {.name = "crd-deleted",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4,
                                [](World& world) {
                                  (void)world.server.Delete(kCrds, {"", kJobs});
                                }),
                    Until(
                        "its job and all that it held are gone",
                        [](const World& world) {
                          return world.All(kJobs).empty() && world.All("services").empty() && LeftNothing(world, kName);
                        },
                        [](World& world) {
                          CreateCrds(world);
                          Submit(world, kName, R"({"workersSpec":{"minReplicas":2,"maxReplicas":3}})");
                        }),
                    UntilTrains(3)}};
}

Traits TwoManagers() {
  return {.name = "two-managers",
          .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":8,"targetReplicas":4}})"),
          .steps = {UntilTrains(4, Edits(R"({"workersSpec":{"targetReplicas":6}})")),
                    UntilTrains(6, Edits(R"({"workersSpec":{"targetReplicas":3}})")), UntilTrains(3, Ends("succeed")),
                    UntilOver("Succeeded")},
          .processes = 2,
          .uses_leases = true};
}

}  // namespace

std::vector<ElasticStory> ElasticLives() {
  return {StartAndSucceed(),
          LauncherFails(),
          ScaleUpAndDown(),
          ShrinkAndGrow(),
          NodeLost(),
          LauncherNeedsRoom(),
          LimitRange(),
          LimitRangeTaken(),
          UngatedForAnAutoscaler(),
          SuspendAndResume(),
          WaitForRoom(),
          TwoJobs(),
          DeletedAndMadeAgain(),
          DeletedForGood(),
          NamespaceDeleted(),
          WorkerCrashes(),
          WorkerLosesItsLabels(),
          TimeToLive(),
          CrdDeleted(),
          TwoManagers()};
}

}  // namespace grus::testing
