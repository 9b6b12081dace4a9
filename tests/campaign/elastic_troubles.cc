// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_troubles.h"

#include <algorithm>

#include "clientlib/testing/api_server/pod_security.h"
#include "controllers/elastic/scripts.h"
#include "tests/campaign/elastic_invariants.h"
#include "tests/campaign/gang_invariants.h"
#include "tests/kit/objects.h"

namespace grus::testing {
namespace {

using kube::testing::AnnotationOf;
using kube::testing::IntAt;
using Act = std::function<void(World&)>;

constexpr char kWorker[] = "train-workers-1";
constexpr char kFour[] = R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})";
constexpr char kAllFour[] = R"({"workersSpec":{"minReplicas":4,"maxReplicas":4}})";

std::string ReadyReason(const World& world) {
  const Json* job = world.Get(kJobs, {kNamespace, kName});
  const Json* ready = job ? kube::testing::ConditionOf(*job, "Ready") : nullptr;
  return ready ? Text(*ready, {"reason"}) : "";
}
bool HasAnnotation(const World& world, const std::string& pod, std::string_view annotation) {
  const Json* object = world.Get(kPods, {kNamespace, pod});
  return object && !AnnotationOf(*object, annotation).empty();
}

// Of all pods that `is_it` holds of; an empty value takes it off.
void Annotate(World& world, const std::function<bool(const Json& pod)>& is_it, std::string_view annotation,
              std::string_view value) {
  for (const auto& pod : world.server.List(kPods, kNamespace)) {
    if (!is_it(*pod) || AnnotationOf(*pod, annotation) == value) continue;
    Json changed = *pod;
    if (value.empty()) changed["metadata"]["annotations"].Erase(annotation);
    else changed["metadata"]["annotations"][annotation] = value;
    Must(world.server.Update(kPods, std::move(changed)));
  }
}
Act Annotates(const std::string& pod, std::string annotation, std::string value) {
  return [=](World& world) {
    Annotate(
        world,
        [&](const Json& object) {
          return Text(object, {"metadata", "name"}) == pod;
        },
        annotation, value);
  };
}
// From now on, whatever pods come.
void KeepTakingOff(World& world, const std::string& annotation, int times = 500) {
  Annotate(
      world, [&](const Json& pod) { return !AnnotationOf(pod, annotation).empty(); }, annotation, "");
  if (times == 0) return;
  world.simulation.After(std::chrono::seconds(5),
                         [&world, annotation, times] { KeepTakingOff(world, annotation, times - 1); });
}

// As Pod Security does with what the pods of these jobs are; empty: no longer.
void Refuse(World& world, std::string_view level) {
  Json ns = *world.server.Get("namespaces", {"", kNamespace});
  Json& labels = ns["metadata"]["labels"];
  if (level.empty()) labels.Erase(kube::testing::kEnforceLabel);
  else labels[kube::testing::kEnforceLabel] = level;
  Must(world.server.Update("namespaces", std::move(ns)));
}

Step UntilBroken(Act act = nullptr) {
  return Until(
      "its pods are said to be broken", [](const World& world) { return ReadyReason(world) == "PodsBroken"; },
      std::move(act));
}
Step UntilGivenBack(Act act) {
  return Until(
      "it has given back what it held",
      [](const World& world) {
        const Json* job = world.Get(kJobs, {kNamespace, kName});
        const std::string reason = ReadyReason(world);  // TemplateRefused: it has tried again, and asked first.
        return (reason == "PodsBroken" || reason == "TemplateRefused") && HoldsNothing(world, kName) &&
               IntAt(*job, {"status", "replicas", "granted"}) == 0;
      },
      std::move(act));
}
// Or the pod was replaced, by a fault.
Step UntilAnnotated(std::string name, std::function<bool(const World&)> when, std::string annotation,
                    Act act = nullptr) {
  return Until(
      std::move(name), [=](const World& world) { return when(world) || !HasAnnotation(world, kWorker, annotation); },
      std::move(act));
}

ElasticStory ImageRepaired() {
  return {.name = "image-repaired",
          .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4,"image":"registry.test/train:0",
              "template":{"metadata":{"annotations":{"grus.test/waiting":"ErrImagePull: not found"}}}}})"),
          .steps = {UntilBroken(), UntilGivenBack(Edits(R"({"workersSpec":{"image":"registry.test/train:1",
                        "template":{"metadata":{"annotations":{"grus.test/waiting":null}}}}})")),
                    UntilTrains(4)}};
}

ElasticStory RegistryComesBack() {
  return {.name = "registry-comes-back",
          .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4,
              "template":{"metadata":{"annotations":{"grus.test/waiting":"ErrImagePull: no such host"}}}}})"),
          .steps = {UntilBroken(), UntilGivenBack([](World& world) { KeepTakingOff(world, "grus.test/waiting"); }),
                    UntilTrains(4)}};
}

ElasticStory LauncherCannotStart() {
  return {.name = "launcher-cannot-start",
          .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4},
              "launcherSpec":{"template":{"metadata":{"annotations":{
              "grus.test/waiting":"CreateContainerConfigError: secret \"none\" not found"}}}}})"),
          .steps = {UntilBroken(), UntilGivenBack(Edits(R"({"launcherSpec":{
                        "template":{"metadata":{"annotations":{"grus.test/waiting":null}}}}})")),
                    UntilTrains(4)},
          .has_retries = true};
}

ElasticStory WorkerCrashesInPlace() {
  return {.name = "worker-crashes-in-place",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4, Annotates(kWorker, "grus.test/crash", "3")),
                    UntilAnnotated(
                        "it was started again three times",
                        [](const World& world) {
                          const Json* pod = world.Get(kPods, {kNamespace, kWorker});
                          if (pod == nullptr) return false;
                          const auto& containers = kube::testing::ItemsAt(*pod, {"status", "containerStatuses"});
                          return !containers.empty() && IntAt(containers.front(), {"restartCount"}) == 3;
                        },
                        "grus.test/crash"),
                    UntilTrains(4)}};
}

ElasticStory WorkerKeepsCrashing() {
  return {.name = "worker-keeps-crashing",
          .prepare = Cluster(2, 8, kFour),
          .steps = {UntilTrains(4, Annotates(kWorker, "grus.test/crash", "50")),
                    UntilAnnotated(
                        "it goes on with the others", [](const World& world) { return Trains(world, kName, 3); },
                        "grus.test/crash"),
                    UntilTrains(4)}};
}

// As the launcher sees it; its script then ends with that code.
Step UntilAllAreLost() {
  return UntilTrains(4, [](World& world) {
    for (const auto& pod : world.server.List(kPods, kNamespace)) {
      if (!HasRole(*pod, "worker")) continue;
      (void)world.server.Delete(kPods, kube::testing::KeyOf(*pod), Json::MakeObject({{"gracePeriodSeconds", 0}}));
    }
    const auto is_launcher = [](const Json& pod) { return HasRole(pod, "launcher") && !kube::testing::HasEnded(pod); };
    Annotate(world, is_launcher, "grus.test/exit-code", std::to_string(kWorkersLostExitCode));
    Annotate(world, is_launcher, "grus.test/outcome", "fail");
  });
}
Step UntilAnotherLauncherTrains() {
  return Until("another launcher trains with 4", [](const World& world) {
    const auto& pods = world.All(kPods);
    return Trains(world, kName, 4) && std::any_of(pods.begin(), pods.end(), [](const auto& entry) {
             const Json& pod = *entry.second;
             return HasRole(pod, "launcher") && IsReady(pod) && AnnotationOf(pod, "grus.test/outcome").empty();
           });
  });
}

ElasticStory AllWorkersLost() {
  return {
      .name = "all-workers-lost",
      .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4},"runPolicy":{"backoffLimit":0}})"),
      .steps = {UntilAllAreLost(), UntilAnotherLauncherTrains(), UntilAllAreLost(), UntilAnotherLauncherTrains()},
      .has_retries = true};
}

// As `kubectl drain`; the launcher is elsewhere.
ElasticStory SlowDrain() {
  return {.name = "slow-drain",
          .prepare =
              [](World& world) {
                AddNode(world, "base-0", 0, Json::MakeObject({{"pool", "base"}}));
                Cluster(2, 2, R"({"launcherSpec":{"template":{"spec":{"nodeSelector":{"pool":"base"}}}},
                    "workersSpec":{"minReplicas":2,"maxReplicas":4,
                    "template":{"metadata":{"annotations":{"grus.test/stop-seconds":"20"}}}}})")(world);
              },
          .steps = {UntilTrains(4,
                                [](World& world) {
                                  world.cluster.SetCordoned("node-0", true);
                                  for (const auto& pod : world.server.List(kPods, kNamespace)) {
                                    if (Text(*pod, {"spec", "nodeName"}) == "node-0")
                                      Delete(world, kPods, Text(*pod, {"metadata", "name"}));
                                  }
                                }),
                    UntilTrains(2, [](World& world) { world.cluster.SetCordoned("node-0", false); }), UntilTrains(4)}};
}

ElasticStory PodsRefused() {
  return {.name = "pods-refused",
          .prepare =
              [](World& world) {
                Refuse(world, "baseline");
                Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4,
                    "template":{"spec":{"hostPID":true}}}})")(world);
              },
          .steps = {Until(
                        "it says that its pods are refused, and holds nothing",
                        [](const World& world) {
                          return ReadyReason(world) == "TemplateRefused" && world.All(kPods).empty();
                        },
                        [](World& world) { Refuse(world, ""); }),
                    UntilTrains(4)}};
}

// What its templates leave open is filled in, also for a launcher that another process makes.
ElasticStory RestrictedNamespace() {
  return {.name = "restricted-namespace",
          .prepare =
              [](World& world) {
                Refuse(world, "restricted");
                Cluster(2, 8, kFour)(world);
              },
          .steps = {UntilTrains(4)}};
}

ElasticStory LauncherRefused() {
  return {.name = "launcher-refused",
          .prepare = Cluster(2, 8, R"({"workersSpec":{"minReplicas":2,"maxReplicas":4,
              "template":{"metadata":{"annotations":{"grus.test/ready":"false"}}}},
              "launcherSpec":{"template":{"spec":{"hostPID":true}}}})"),
          .steps = {Until(
                        "its workers run",
                        [](const World& world) {
                          const auto& pods = world.All(kPods);
                          return std::count_if(pods.begin(), pods.end(), [](const auto& entry) {
                                   return Text(*entry.second, {"status", "phase"}) == "Running";
                                 }) == 4;
                        },
                        [](World& world) {
                          Refuse(world, "baseline");
                          KeepTakingOff(world, "grus.test/ready");
                        }),
                    UntilBroken(), UntilGivenBack([](World& world) { Refuse(world, ""); }), UntilTrains(4)},
          .has_retries = true};
}

ElasticStory WorkerFallsSilent() {
  return {.name = "worker-falls-silent",
          .prepare = Cluster(2, 8, kAllFour),
          .steps = {UntilTrains(4, Annotates(kWorker, "grus.test/ready", "false")),
                    UntilAnnotated(
                        "it trains below its minimum",
                        [](const World& world) { return ReadyReason(world) == "BelowMinimum"; }, "grus.test/ready",
                        Annotates(kWorker, "grus.test/ready", "")),
                    UntilTrains(4)},
          .has_retries = true};
}

ElasticStory BelowMinimumForLong() {
  return {.name = "below-minimum-for-long",
          .prepare = Cluster(2, 8, kAllFour),
          .steps = {UntilTrains(4, Annotates(kWorker, "grus.test/ready", "false")),
                    Until("it trains with others",
                          [](const World& world) {
                            return Trains(world, kName, 4) && !HasAnnotation(world, kWorker, "grus.test/ready");
                          })},
          .has_retries = true};
}

constexpr char kOther[] = "other";

// A job that cannot be carried out keeps nobody from training: all GPUs are the other one's until it ends.
ElasticStory NameTaken() {
  return {.name = "name-taken",
          .prepare =
              [](World& world) {
                Must(world.server.Create(kGroups, kit::MakePodGroup(kName, 1, "{}", kNamespace)));
                Cluster(1, 8, R"({"workersSpec":{"minReplicas":8,"maxReplicas":8}})")(world);
              },
          .steps = {Until(
                        "it says that a name is taken",
                        [](const World& world) { return ReadyReason(world) == "NameTaken"; },
                        [](World& world) {
                          Submit(world, kOther, R"({"workersSpec":{"minReplicas":8,"maxReplicas":8}})");
                        }),
                    Until(
                        "the other one trains", [](const World& world) { return Trains(world, kOther, 8); },
                        [](World& world) {
                          Delete(world, kGroups, kName);
                          EndTraining(world, kOther, "succeed");
                        }),
                    UntilTrains(8)},
          .has_retries = true};
}

bool IsSilent(const World& world) {
  const auto& pods = world.All(kPods);
  return std::any_of(pods.begin(), pods.end(), [](const auto& entry) {
    return !AnnotationOf(*entry.second, kSilent).empty() && !kube::testing::IsBeingDeleted(*entry.second) &&
           kube::testing::ControllerOf(*entry.second);
  });
}

// As a training that hangs, and goes on after all.
ElasticStory LauncherFallsSilent() {
  const auto silence = [](const char* value) -> Act {
    return [value](World& world) {
      Annotate(
          world, [](const Json& pod) { return HasRole(pod, "launcher"); }, kSilent, value);
    };
  };
  return {.name = "launcher-falls-silent",
          .prepare = Cluster(2, 8, kFour),
          .steps = {
              UntilTrains(4, silence("true")),
              Until(
                  "it is said to be silent, or another one was made",
                  [](const World& world) { return ReadyReason(world) == "NoOutput" || !IsSilent(world); }, silence("")),
              Until("it is said to train again",
                    [](const World& world) { return ReadyReason(world) == "Training" && Trains(world, kName, 4); })}};
}

}  // namespace

std::vector<ElasticStory> ElasticTroubles() {
  return {ImageRepaired(),       RegistryComesBack(), LauncherCannotStart(), WorkerCrashesInPlace(),
          WorkerKeepsCrashing(), AllWorkersLost(),    SlowDrain(),           PodsRefused(),
          RestrictedNamespace(), LauncherRefused(),   WorkerFallsSilent(),   BelowMinimumForLong(),
          LauncherFallsSilent(), NameTaken()};
}

}  // namespace grus::testing
