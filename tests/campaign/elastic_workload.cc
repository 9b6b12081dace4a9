// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_workload.h"

#include <algorithm>
#include <regex>

#include "clientlib/base/wait.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_view.h"
#include "crds/types/pod_group.h"
#include "tests/campaign/elastic_invariants.h"
#include "tests/campaign/gang_invariants.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;
using kube::testing::IsBeingDeleted;

constexpr char kPodIndexLabel[] = "apps.kubernetes.io/pod-index";

// "the launcher failed: ...; last pod train-launcher-m54dl: exit code 1" -> "the launcher failed: ...": the name is
// drawn, and the pod may be out of sight. "launcher train-launcher-m54dl: cannot be scheduled" -> "launcher *: ...".
void MaskPodNames(Json& value) {
  if (Json::Object* object = value.AsObject()) {
    for (auto& [name, member] : *object) MaskPodNames(member);
  } else if (Json::Array* array = value.AsArray()) {
    for (Json& item : *array) MaskPodNames(item);
  } else if (const std::string* text = value.AsString()) {
    const std::size_t at = text->find("; last pod ");
    if (text->find("-launcher-") == std::string::npos) return;
    static const std::regex kLauncherPod("launcher [a-z-]+-launcher-[a-z0-9]{5}\\b");
    value = std::regex_replace(text->substr(0, at), kLauncherPod, "launcher *");
  }
}

}  // namespace

void ElasticWorkload::Prepare(World& world) const {
  CreateCrds(world);
  KeepPrinting(world);
  traits_.prepare(world);
}

void ElasticWorkload::RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const {
  if (traits_.is_without_grus) {
    kube::WaitFor(context.clock, std::chrono::hours(24 * 365), stop);
    return;
  }
  RunApp(context, traits_.uses_leases, Nominations::kAuto, std::move(stop));
}

std::vector<std::string> ElasticWorkload::owned_resources() const {
  std::vector<std::string> resources{"secrets"};
  if (!traits_.has_retries || traits_.has_rival)
    resources.insert(resources.end(), {"services", "configmaps", kLaunchers});
  if (!traits_.has_rival) resources.push_back(kPods);
  return resources;
}

// How often a worker is tried is chance: what must hold of their number is an invariant.
bool ElasticWorkload::AreCounted(std::string_view resource) const { return resource != kPods; }

bool ElasticWorkload::Damage(std::string_view resource, Json& object) const {
  if (resource == "services") object["spec"]["selector"] = Json::MakeObject({{"app", "other"}});
  else if (resource == "configmaps") object["data"] = Json::MakeObject({{"hosts", "nobody:1\n"}});
  // Secrets are not watched, so that nobody need allow us to: a missing one is made again once a worker does not start.
  else if (resource == kLaunchers)
    object["metadata"]["labels"][kManagedByLabel] = "somebody";  // Out of our caches' sight.
  else if (resource == kPods && HasRole(object, "worker")) object["metadata"].Erase("ownerReferences");
  else return false;
  return true;
}

std::string ElasticWorkload::NameOf(std::string_view resource, const Json& object) const {
  // The name carries the UID of its job.
  if (resource == "secrets") {
    const std::string name = Text(object, {"metadata", "name"});
    return name.substr(0, name.find("-files-")) + "-files-*";
  }
  if (resource == kPods && HasRole(object, "worker")) {
    const std::string name = Text(object, {"metadata", "name"});
    return name.substr(0, name.rfind('-')) + "-*";
  }
  return Workload::NameOf(resource, object);
}

void ElasticWorkload::Mask(std::string_view resource, Json& object) const {
  if (resource == "nodes" || resource == "namespaces" || (traits_.has_retries && resource == kGroups)) object = Json();
  if (resource == "secrets") object.Erase("data");
  // Somebody took our label off when the job had ended: it goes with the job. (Of a job that lives it would be missed.)
  const bool goes_with_its_launcher = resource == "configmaps" || resource == "services";
  if (goes_with_its_launcher && Text(object, {"metadata", "labels", kManagedByLabel}).empty()) {
    object = Json();
    return;
  }
  if (resource == "configmaps") {
    object["metadata"].Erase("annotations");  // When it was published.
    Json hosts = Json::MakeArray();
    for (std::size_t left = HostsOf(object).size(); left > 0; --left) hosts.Append("*");
    object["data"]["hosts"] = std::move(hosts);
  }
  if (resource == kJobs && object.Find("status")) {
    for (const char* history : {"lastScale", "usage", "progress"}) object["status"].Erase(history);
    MaskPodNames(object["status"]);
    if (Json* replicas = object["status"].Find("replicas"); replicas && replicas->AsObject()) {
      std::erase_if(*replicas->AsObject(), [](const Json::Member& count) { return count.second == Json(0); });
    }
    SortConditions(object);
  }
  if (resource == kPods) {
    const bool is_ready = IsReady(object);
    const std::string phase = Text(object, {"status", "phase"});
    if (kube::testing::ItemsAt(object, {"spec", "schedulingGates"}).empty()) object["spec"].Erase("schedulingGates");
    object["status"] = Json::MakeObject({{"phase", phase}, {"ready", is_ready}});
    object["metadata"].Erase("annotations");  // The host list as it was pushed; when a gate was lifted.
    // One without an owner is nobody's (LeftNothing()); beside another one of its job it is told (OneLauncher()).
    const bool is_nobodys = kube::testing::ControllerOf(object) == nullptr;
    if (HasRole(object, "launcher") && (is_nobodys || phase == "Succeeded" || phase == "Failed")) object = Json();
    else if (HasRole(object, "worker")) {
      object["metadata"]["labels"].Erase(kPodIndexLabel);
      object["spec"].Erase("hostname");
      // The node of its place, if it had one.
      for (const char* wish : {"affinity", "topologySpreadConstraints"}) object["spec"].Erase(wish);
    }
  }
  if (traits_.has_retries && resource == kPods && object.At({"metadata", "labels"})) {
    object["metadata"]["labels"].Erase(api::kPodGroupLabel);
  }
  if (resource == kLaunchers) {
    object["metadata"].Erase("annotations");  // How often the job had given everything back.
    // Nobody mends a launcher that has ended, or makes it again.
    // The server gives a Job without labels those of its template.
    std::erase_if(*object["metadata"]["labels"].AsObject(), [](const Json::Member& label) {
      return label.first.view().ends_with("job-name") && !label.first.view().starts_with("ai.");
    });
    if (object.At({"status", "completionTime"}) || IntAt(object, {"status", "failed"}) > 0) object = Json();
    else object.Erase("status");  // How many of its pods failed is the faults' doing.
  }
}

std::vector<kube::testing::Invariant> ElasticWorkload::Invariants() const { return ElasticInvariants(traits_.slack); }

std::optional<kube::Duration> ElasticWorkload::QuietTime(const World& world) const {
  // A job that gave back what its broken pods held tries again five minutes later.
  constexpr kube::Duration kPause = std::chrono::minutes(4), kAfterDeadline = std::chrono::minutes(6);
  for (const auto& [key, job] : world.All(kJobs)) {
    const Json* ready = kube::testing::ConditionOf(*job, "Ready");
    if (ready && Text(*ready, {"reason"}) == "PodsBroken" && IntAt(*job, {"status", "replicas", "granted"}) == 0 &&
        HoldsNothing(world, key.name)) {
      return kPause;
    }
    // Its workers are there to be seen, and tried again when their time is over.
    const std::string phase = Text(*job, {"status", "phase"});
    const bool is_ungated =
        Text(*job, {"spec", "runPolicy", "schedulingPolicy", "whenUnschedulable"}) == "Ungate" && phase != "Running";
    if (is_ungated && !job->At({"status", "completionTime"})) return kPause;
    const kube::Duration deadline = std::chrono::seconds(IntAt(*job, {"spec", "runPolicy", "activeDeadlineSeconds"}));
    const bool is_due = job->At({"status", "startTime"}) && !job->At({"status", "completionTime"});
    if (is_due && deadline < std::chrono::hours(1)) return deadline + kAfterDeadline;
  }
  return std::nullopt;
}

std::vector<std::string> ElasticWorkload::CheckRest(const World& world) const {
  std::vector<std::string> complaints;
  CheckElasticJobs(world, complaints);
  CheckOwners(world, complaints);
  CheckGenerations(world, kJobs, {"Succeeded", "Failed"}, complaints);
  return complaints;
}

void Submit(World& world, const std::string& name, std::string_view spec) {
  Json job = FromText(
      R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"ElasticHorovodJob","metadata":{},"spec":{
      "launcherSpec":{"image":"registry.test/train:1","pythonCommand":["python","train.py"]},
      "workersSpec":{"image":"registry.test/train:1"},
      "elastic":{"unschedulableGraceSeconds":5,"cooldownSeconds":10,"shrinkGraceSeconds":5}}})");
  job["metadata"]["name"] = name;
  job["metadata"]["namespace"] = kNamespace;
  kube::MergePatch(job["spec"], FromText(spec));
  Must(world.server.Create(kJobs, std::move(job)));
}

void KeepPrinting(World& world) {
  for (const auto& pod : world.server.List(kPods)) {
    const bool is_running = HasRole(*pod, "launcher") && Text(*pod, {"status", "phase"}) == "Running";
    if (!is_running || !kube::testing::AnnotationOf(*pod, kSilent).empty()) continue;
    world.server.AppendPodLog(kube::testing::KeyOf(*pod), "launcher", world.simulation.WallNow(), "a step\n");
  }
  world.simulation.After(std::chrono::seconds(10), [&world] { KeepPrinting(world); });
}

void Edit(World& world, const std::string& name, std::string_view spec) { EditSpec(world, kJobs, name, spec); }

void EndTraining(World& world, const std::string& name, const std::string& outcome) {
  const auto job = world.server.Get(kJobs, {kNamespace, name});
  if (!job || Text(*job, {"status", "phase"}) == "Succeeded" || Text(*job, {"status", "phase"}) == "Failed") return;
  for (const auto& pod : world.server.List(kPods, kNamespace)) {
    if (!IsOfJob(*pod, name) || !HasRole(*pod, "launcher") || IsBeingDeleted(*pod)) continue;
    if (Text(*pod, {"status", "phase"}) != "Running") continue;
    Json ended = *pod;
    ended["metadata"]["annotations"]["grus.test/outcome"] = outcome;
    Must(world.server.Update(kPods, std::move(ended)));
  }
  // A launcher that is started once more ends as soon.
  world.simulation.After(std::chrono::seconds(5), [&world, name, outcome] { EndTraining(world, name, outcome); });
}

std::string PhaseOf(const World& world, const std::string& name) {
  const Json* job = world.Get(kJobs, {kNamespace, name});
  return job ? Text(*job, {"status", "phase"}) : "";
}

std::string ConditionReason(const World& world, const std::string& name, std::string_view type) {
  const Json* job = world.Get(kJobs, {kNamespace, name});
  const Json* conditions = job ? job->At({"status", "conditions"}) : nullptr;
  if (conditions == nullptr || conditions->AsArray() == nullptr) return {};
  for (const Json& condition : *conditions->AsArray()) {
    if (Text(condition, {"type"}) == type && Text(condition, {"status"}) == "True") return Text(condition, {"reason"});
  }
  return {};
}

bool Trains(const World& world, const std::string& name, int workers) {
  const Json* job = world.Get(kJobs, {kNamespace, name});
  const Json* hosts = world.Get("configmaps", {kNamespace, name + "-hosts"});
  if (!job || !hosts || PhaseOf(world, name) != "Running") return false;
  if (IntAt(*job, {"status", "replicas", "ready"}) != workers ||
      IntAt(*job, {"status", "replicas", "granted"}) != workers ||
      IntAt(*job, {"status", "observedGeneration"}) != IntAt(*job, {"metadata", "generation"})) {
    return false;
  }
  int ready = 0, launchers = 0;
  for (const auto& [key, pod] : world.All(kPods)) {
    if (!IsOfJob(*pod, name)) continue;
    if (HasRole(*pod, "worker")) ready += IsReady(*pod);
    else launchers += Text(*pod, {"status", "phase"}) == "Running" && !IsBeingDeleted(*pod);
  }
  return ready == workers && launchers == 1 && static_cast<int>(HostsOf(*hosts).size()) == workers;
}

bool LeftNothing(const World& world, const std::string& name) {
  const auto is_left = [&](const auto& entry) {
    const bool is_nobodys = HasRole(*entry.second, "launcher") && !kube::testing::ControllerOf(*entry.second);
    return IsOfJob(*entry.second, name) && !is_nobodys && !kube::testing::HasEnded(*entry.second);
  };
  return std::none_of(world.All(kPods).begin(), world.All(kPods).end(), is_left) && world.All(kLaunchers).empty();
}

bool HoldsNothing(const World& world, const std::string& name) {
  const auto holds = [&](const auto& entry) {
    return IsOfJob(*entry.second, name) && !kube::testing::HasEnded(*entry.second);
  };
  return std::none_of(world.All(kPods).begin(), world.All(kPods).end(), holds) &&
         std::none_of(world.All(kLaunchers).begin(), world.All(kLaunchers).end(), holds);
}

}  // namespace grus::testing
