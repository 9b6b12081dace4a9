// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/gang_workload.h"

#include <chrono>
#include <memory>

#include "clientlib/base/wait.h"
#include "controllers/cluster/owners.h"
#include "crds/types/pod_group.h"
#include "tests/kit/objects.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;
using kube::testing::IsBeingDeleted;
using kube::testing::ServerChange;

constexpr char kPods[] = "pods", kSets[] = "statefulsets.apps";

void SubmitPod(World& world, const std::string& name, Json labels, Json spec) {
  Must(world.server.Create(kPods, kit::MakePod(name, std::move(spec), std::move(labels), kNamespace)));
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Members of the gang, but those that have ended or are being deleted.
std::vector<const Json*> MembersOf(const World& world, const std::string& group) {
  std::vector<const Json*> members;
  for (const auto& [key, pod] : world.All(kPods)) {
    if (GroupOf(*pod) != group || IsBeingDeleted(*pod) || kube::testing::HasEnded(*pod)) continue;
    members.push_back(pod.get());
  }
  return members;
}

}  // namespace

void GangWorkload::Prepare(World& world) const {
  CreateCrds(world);
  traits_.prepare(world);
}

void GangWorkload::RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const {
  if (!traits_.is_without_grus) return RunApp(context, traits_.uses_leases, traits_.nominations, std::move(stop));
  while (kube::WaitFor(context.clock, std::chrono::hours(1), stop)) {
  }
}

std::string GangWorkload::NameOf(std::string_view resource, const Json& object) const {
  std::string name = Workload::NameOf(resource, object);
  // Which of the members is where, and which of the extras run, is chance.
  if (resource == kPods && !GroupOf(object).empty()) name = GroupOf(object) + "-*";
  for (const std::string& alike : traits_.alike) name = Replaced(name, alike, "either");
  return name;
}

void GangWorkload::Mask(std::string_view resource, Json& object) const {
  // What is about ElasticHorovodJobs is asked in their own workloads.
  const bool is_of_gangs = resource == kPods || resource == kSets || resource == kGroups;
  if (!is_of_gangs || !Text(object, {"metadata", "labels", kJobNameLabel}).empty()) {
    object = Json();
    return;
  }
  if (resource == kPods) {
    const std::string phase = Text(object, {"status", "phase"});
    object["status"] = Json::MakeObject({{"phase", phase}, {"ready", IsReady(object)}});
    Json& metadata = object["metadata"];
    const bool is_lifted = !GroupOf(object).empty() && !IsGated(object);
    metadata = Json::MakeObject({{"group", GroupOf(object)}, {"lifted", is_lifted}});
    object["spec"].Erase("hostname");      // With the ordinal.
    object["spec"].Erase("nodeSelector");  // The node it is pinned to.
  }
  if (resource == kGroups) {
    SortConditions(object);
    if (object.Find("status")) object["status"].Erase("runSeconds");  // How long a member took to find its node.
  }
  if (traits_.alike.empty()) return;
  std::string text = kube::ToText(object);
  for (const std::string& alike : traits_.alike) text = Replaced(text, alike, "either");
  object = FromText(text);
}

std::vector<std::string> GangWorkload::CheckRest(const World& world) const {
  std::vector<std::string> complaints;
  CheckOwners(world, complaints);
  CheckGenerations(world, kGroups, {"Finished", "Failed"}, complaints);
  CheckGangs(world, complaints);
  return complaints;
}

void SubmitGroup(World& world, const std::string& name, int min_member, int seconds) {
  Json group = kit::MakePodGroup(name, min_member, "{}", kNamespace);
  group["spec"]["scheduleTimeoutSeconds"] = seconds;
  Must(world.server.Create(kGroups, std::move(group)));
}

void SubmitSet(World& world, const std::string& name, int replicas, int gpus, const std::string& group,
               std::string_view pod_spec) {
  Must(world.server.Create(kSets, kit::MakeStatefulSet(name, replicas, kit::Gated(kit::PodSpec(gpus, pod_spec)),
                                                       kit::MemberOf(group.empty() ? name : group), kNamespace)));
}

void SubmitJob(World& world, const std::string& name, int pods, int gpus, const std::string& group,
               std::string_view job_spec) {
  Json job = kit::MakeJob(name, pods, kit::Gated(kit::PodSpec(gpus)), kit::MemberOf(group), kNamespace);
  kube::MergePatch(job["spec"], FromText(job_spec));
  Must(world.server.Create("jobs.batch", std::move(job)));
}

void SubmitMember(World& world, const std::string& name, const std::string& group, int gpus) {
  SubmitPod(world, name, kit::MemberOf(group), kit::Gated(kit::PodSpec(gpus, R"({"restartPolicy":"Never"})")));
}

void SubmitUngated(World& world, const std::string& name, const std::string& group, int gpus) {
  SubmitPod(world, name, kit::MemberOf(group), kit::PodSpec(gpus));
}

void SubmitOutsider(World& world, const std::string& name, int gpus, std::string_view pod_spec) {
  SubmitPod(world, name, Json::MakeObject({{"app", "outsider"}}), kit::PodSpec(gpus, pod_spec));
}

void EndWork(World& world, const std::string& group) {
  for (const auto& pod : world.server.List(kPods, kNamespace)) {
    if (GroupOf(*pod) != group || IsBeingDeleted(*pod) || Text(*pod, {"status", "phase"}) != "Running") continue;
    Json ended = *pod;
    ended["metadata"]["annotations"]["grus.test/outcome"] = "succeed";
    Must(world.server.Update(kPods, std::move(ended)));
  }
}

void Once(World& world, const std::function<bool(const ServerChange&)>& is_it,
          const std::function<void(World&, const ServerChange&)>& act) {
  const auto observe = [&world, is_it, act, is_over = false](const ServerChange& change) mutable {
    if (is_over || !is_it(change)) return;
    is_over = true;
    const auto delay = world.simulation.Between(std::chrono::milliseconds(0), std::chrono::milliseconds(20));
    world.simulation.After(delay, [&world, act, change] { act(world, change); });
  };
  world.server.AddObserver(observe);
}

bool IsNomination(const ServerChange& change) {
  if (change.resource != kPods || !change.before || !change.after || !IsGated(*change.after)) return false;
  return Text(*change.before, {"status", "nominatedNodeName"}).empty() &&
         !Text(*change.after, {"status", "nominatedNodeName"}).empty();
}

std::string ReasonOf(const World& world, const std::string& group) {
  const Json* object = world.Get(kGroups, {kNamespace, group});
  const Json* ready = object ? kube::testing::ConditionOf(*object, "Ready") : nullptr;
  return ready ? Text(*ready, {"reason"}) : "";
}

bool Runs(const World& world, const std::string& group, int members) {
  const Json* object = world.Get(kGroups, {kNamespace, group});
  if (!object || Text(*object, {"status", "phase"}) != "Running" ||
      IntAt(*object, {"status", "observedGeneration"}) != IntAt(*object, {"metadata", "generation"}) ||
      IntAt(*object, {"status", "scheduled"}) != members || IntAt(*object, {"status", "running"}) != members) {
    return false;
  }
  int ready = 0;
  for (const Json* member : MembersOf(world, group)) {
    const std::string node = Text(*member, {"spec", "nodeName"});
    if (node.empty()) continue;
    if (!IsReady(*member) || !world.Get("nodes", {"", node})) return false;
    ++ready;
  }
  return ready == members;
}

bool WaitsWhole(const World& world, const std::string& group, int members) {
  const std::string reason = ReasonOf(world, group);
  if (reason != "WaitingForRoom" && reason != "WaitingForQueue" && reason != "CannotFit") return false;
  int gated = 0;
  for (const Json* member : MembersOf(world, group)) {
    if (!IsGated(*member)) return false;
    ++gated;
  }
  return gated == members;
}

bool IsRunning(const World& world, const std::string& pod) {
  const Json* object = world.Get(kPods, {kNamespace, pod});
  return object && IsReady(*object);
}

}  // namespace grus::testing
