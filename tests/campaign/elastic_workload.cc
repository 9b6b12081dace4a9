// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/elastic_workload.h"

#include <algorithm>
#include <map>

#include "controllers/elastic/elastic_sizes.h"
#include "controllers/elastic/elastic_view.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;
using kube::testing::IsBeingDeleted;

constexpr char kPods[] = "pods", kSets[] = "statefulsets.apps", kLaunchers[] = "jobs.batch";

bool IsOfJob(const Json& object, const std::string& job) {
  return Text(object, {"metadata", "labels", kJobNameLabel}) == job;
}
bool HasRole(const Json& object, const char* role) { return Text(object, {"metadata", "labels", kRoleLabel}) == role; }

std::vector<std::string> HostsOf(const Json& config_map) {
  std::vector<std::string> hosts;
  std::string text = Text(config_map, {"data", "hosts"});
  for (std::size_t from = text.find('\n'); from != std::string::npos && from + 1 < text.size();) {
    const std::size_t end = text.find('\n', from + 1);
    hosts.push_back(text.substr(from + 1, text.find('.', from + 1) - from - 1));
    from = end;
  }
  return hosts;
}

// "the launcher failed: ...; last pod train-launcher-m54dl: exit code 1" -> "the launcher failed: ...": the name is
// drawn, and the pod may be out of sight.
void MaskPodNames(Json& value) {
  if (Json::Object* object = value.AsObject()) {
    for (auto& [name, member] : *object) MaskPodNames(member);
  } else if (Json::Array* array = value.AsArray()) {
    for (Json& item : *array) MaskPodNames(item);
  } else if (const std::string* text = value.AsString()) {
    const std::size_t at = text->find("; last pod ");
    if (at != std::string::npos) value = text->substr(0, at);
  }
}

// A launcher is never doubled: one Job, and one pod of it that has not ended.
std::string OneLauncher(const World& world, const kube::testing::ServerChange& change) {
  if (change.before || !change.after || !HasRole(*change.after, "launcher")) return {};
  const bool is_pod = change.resource == kPods;
  if (!is_pod && change.resource != kLaunchers) return {};
  std::map<std::string, int> count;
  for (const auto& [key, object] : world.All(change.resource)) {
    const std::string phase = Text(*object, {"status", "phase"});
    if (!HasRole(*object, "launcher") || IsBeingDeleted(*object) || phase == "Succeeded" || phase == "Failed") continue;
    const std::string job = key.ns + "/" + Text(*object, {"metadata", "labels", kJobNameLabel});
    if (++count[job] > 1) return job + " has two launchers in " + std::string(change.resource);
  }
  return {};
}

// A launcher's pod that runs is not deleted while its Job is there, and there to stay.
std::string RunningLauncherStays(const World& world, const kube::testing::ServerChange& change) {
  if (change.resource != kPods || !change.before || !change.after || !HasRole(*change.after, "launcher")) return {};
  if (IsBeingDeleted(*change.before) || !IsBeingDeleted(*change.after) ||
      Text(*change.before, {"status", "phase"}) != "Running")
    return {};
  const Json* owner = kube::testing::ControllerOf(*change.after);
  const Json* ns = world.Get("namespaces", {"", Text(*change.after, {"metadata", "namespace"})});
  if (owner == nullptr || ns == nullptr || IsBeingDeleted(*ns)) return {};
  if (!world.Get("nodes", {"", Text(*change.after, {"spec", "nodeName"})})) return {};
  for (const auto& [key, launcher] : world.All(kLaunchers)) {
    if (Text(*launcher, {"metadata", "uid"}) == Text(*owner, {"uid"}) && !IsBeingDeleted(*launcher)) {
      return "pod " + Text(*change.after, {"metadata", "name"}) + " is deleted while its launcher is there";
    }
  }
  return {};
}

// Workers are granted as the spec allows: none, or from the minimum to the maximum.
std::string GrantsWithinLimits(const World& world, const kube::testing::ServerChange& change) {
  if (change.resource != kSets || !change.after) return {};
  const std::string granted = Text(*change.after, {"metadata", "annotations", kGrantedAnnotation});
  const std::string name = Text(*change.after, {"metadata", "labels", kJobNameLabel});
  const Json* job = world.Get(kJobs, {Text(*change.after, {"metadata", "namespace"}), name});
  if (granted.empty() || job == nullptr) return {};
  const auto decoded = kube::Decode<api::ElasticHorovodJob>(kube::ToText(*job));
  if (!decoded) return {};
  const Sizes sizes = SizesOf((*decoded)->spec.workers);
  const int count = std::stoi(granted);
  // A user may have lowered the limits a moment ago.
  if (count == 0 || (*decoded)->metadata.generation != (*decoded)->status.observed_generation) return {};
  if (count < sizes.min || count > sizes.max) {
    return name + " is granted " + granted + " workers, of " + std::to_string(sizes.min) + " to " +
           std::to_string(sizes.max);
  }
  return {};
}

// The launcher begins once the minimum of workers runs; for a while after it did, nobody may have seen that it does
// not.
kube::testing::Invariant LauncherWaitsForWorkers() {
  return [last = std::map<std::string, kube::TimePoint>()](const World& world,
                                                           const kube::testing::ServerChange& change) mutable {
    const bool is_launcher = change.resource == kLaunchers && !change.before && HasRole(*change.after, "launcher");
    if (change.resource != kPods && !is_launcher) return std::string();
    const Json& any = change.after ? *change.after : *change.before;
    const std::string name = Text(any, {"metadata", "labels", kJobNameLabel}),
                      ns = Text(any, {"metadata", "namespace"});
    const Json* job = world.Get(kJobs, {ns, name});
    const std::int64_t min = job ? IntAt(*job, {"spec", "workersSpec", "minReplicas"}) : 0;
    std::int64_t running = 0;
    for (const auto& [key, pod] : world.All(kPods)) {
      running += key.ns == ns && IsOfJob(*pod, name) && HasRole(*pod, "worker") &&
                 Text(*pod, {"status", "phase"}) == "Running";
    }
    const kube::TimePoint now = world.simulation.Now();
    if (running >= min) last[name] = now;
    if (!is_launcher || running >= min) return std::string();
    const auto enough = last.find(name);
    if (enough != last.end() && now - enough->second < std::chrono::minutes(1)) return std::string();
    return name + ": the launcher is made while " + std::to_string(running) + " workers run, of at least " +
           std::to_string(min);
  };
}

}  // namespace

void ElasticWorkload::Prepare(World& world) const {
  CreateCrds(world);
  traits_.prepare(world);
}

void ElasticWorkload::RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const {
  RunSuite(context, traits_.uses_leases, Nominations::kAuto, std::move(stop));
}

std::vector<std::string> ElasticWorkload::owned_resources() const {
  if (traits_.has_rival) return {"services", "secrets", "configmaps", kLaunchers};
  return {"services", "secrets", "configmaps", kSets, kLaunchers};
}

bool ElasticWorkload::Damage(std::string_view resource, Json& object) const {
  if (resource == "services") object["spec"]["selector"] = Json::MakeObject({{"app", "other"}});
  else if (resource == "configmaps") object["data"]["hosts"] = "nobody:1\n";
  else if (resource == kSets) object["spec"]["replicas"] = 1;
  // Secrets are not watched, so that nobody need allow us to: a missing one is made again once a worker does not start.
  else if (resource == kLaunchers)
    object["metadata"]["labels"][kManagedByLabel] = "somebody";  // Out of our caches' sight.
  else return false;
  return true;
}

std::string ElasticWorkload::NameOf(std::string_view resource, const Json& object) const {
  // The name carries the UID of its job.
  if (resource == "secrets") {
    const std::string name = Text(object, {"metadata", "name"});
    return name.substr(0, name.find("-ssh-")) + "-ssh-*";
  }
  if (resource == kPods && traits_.has_chance_ordinals && HasRole(object, "worker")) return "workers-*";
  return Workload::NameOf(resource, object);
}

void ElasticWorkload::Mask(std::string_view resource, Json& object) const {
  if (resource == "nodes" || resource == "namespaces") object = Json();
  if (resource == "secrets") object.Erase("data");
  // Somebody took our label off when the job had ended: it goes with the job. (Of a job that lives it would be missed.)
  if (resource == "configmaps" && Text(object, {"metadata", "labels", kManagedByLabel}).empty()) {
    object = Json();
    return;
  }
  if (resource == "configmaps") {
    object["metadata"].Erase("annotations");  // When it was published.
    Json hosts = Json::MakeArray();
    std::vector<std::string> names = HostsOf(object);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) hosts.Append(traits_.has_chance_ordinals ? "*" : name);
    object["data"]["hosts"] = std::move(hosts);
  }
  if (resource == kJobs && object.Find("status")) {
    object["status"].Erase("lastScale");  // History.
    MaskPodNames(object["status"]);
    if (Json* replicas = object["status"].Find("replicas"); replicas && replicas->AsObject()) {
      std::erase_if(*replicas->AsObject(), [](const Json::Member& count) { return count.second == Json(0); });
    }
    SortConditions(object);
  }
  if (resource == kPods) {
    const bool is_ready = IsReady(object);
    const std::string phase = Text(object, {"status", "phase"});
    object["status"] = Json::MakeObject({{"phase", phase}, {"ready", is_ready}});
    object["metadata"].Erase("annotations");  // The host list as it was pushed; when a gate was lifted.
    if (HasRole(object, "launcher") && (phase == "Succeeded" || phase == "Failed")) object = Json();
    else if (traits_.has_chance_ordinals && HasRole(object, "worker")) {
      if (phase != "Running") object = Json();  // Parked ordinals.
      else object = Json::MakeObject({{"status", object["status"]}});
    }
  }
  // A hash of what names the Secret, and so the UID of the job.
  if (resource == kSets && object.At({"metadata", "annotations"}))
    object["metadata"]["annotations"].Erase(kTemplateAnnotation);
  if (resource == kSets && traits_.has_chance_ordinals) {
    object["spec"].Erase("replicas");
    object["spec"]["template"]["spec"].Erase("schedulingGates");
    object.Erase("status");
  }
  if (resource == kLaunchers) {
    // Nobody mends a launcher that has ended, or makes it again.
    // The server gives a Job without labels those of its template.
    std::erase_if(*object["metadata"]["labels"].AsObject(), [](const Json::Member& label) {
      return label.first.ends_with("job-name") && !label.first.starts_with("ai.");
    });
    if (object.At({"status", "completionTime"}) || IntAt(object, {"status", "failed"}) > 0) object = Json();
    else object.Erase("status");  // How many of its pods failed is the faults' doing.
  }
}

std::vector<kube::testing::Invariant> ElasticWorkload::Invariants() const {
  return {OneLauncher, RunningLauncherStays, GrantsWithinLimits, NoGpuTwice, LauncherWaitsForWorkers()};
}

std::vector<std::string> ElasticWorkload::CheckRest(const World& world) const {
  std::vector<std::string> complaints;
  CheckOwners(world, complaints);
  CheckGenerations(world, kJobs, {"Succeeded", "Failed"}, complaints);
  return complaints;
}

void Submit(World& world, const std::string& name, std::string_view spec) {
  Json job = Parse(
      R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"ElasticHorovodJob","metadata":{},"spec":{
      "launcherSpec":{"image":"registry.test/train:1","pythonCommand":["python","train.py"]},
      "workersSpec":{"image":"registry.test/train:1"},
      "elastic":{"unschedulableGraceSeconds":5,"cooldownSeconds":10,"shrinkGraceSeconds":5}}})");
  job["metadata"]["name"] = name;
  job["metadata"]["namespace"] = kNamespace;
  kube::MergePatch(job["spec"], Parse(spec));
  Must(world.server.Create(kJobs, std::move(job), "kubectl"));
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
    Must(world.server.Update(kPods, std::move(ended), "training"));
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

bool HoldsNothing(const World& world, const std::string& name) {
  const auto holds = [&](const auto& entry) {
    const std::string phase = Text(*entry.second, {"status", "phase"});
    return IsOfJob(*entry.second, name) && phase != "Succeeded" && phase != "Failed";
  };
  return std::none_of(world.All(kPods).begin(), world.All(kPods).end(), holds) &&
         std::none_of(world.All(kLaunchers).begin(), world.All(kLaunchers).end(), holds);
}

}  // namespace grus::testing
