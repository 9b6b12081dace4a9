// SPDX-License-Identifier: Apache-2.0
#include "bench/race_objects.h"

#include "clientlib/model/core_v1.h"
#include "clientlib/model/scheduling_v1.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;

constexpr int kVictimGraceSeconds = 30;

void SetNode(Json& pod, const std::string& node) { pod["spec"]["nodeSelector"]["kubernetes.io/hostname"] = node; }

}  // namespace

kube::Status PrepareNodes(const GangWorld& world, const std::string& resource) {
  Json resources = Json::MakeObject({{kCpus, "96"}, {kGpus, Json()}, {kAmdGpus, Json()}});
  resources[resource] = "8";
  Json patch = Json::MakeObject();
  patch["status"]["capacity"] = resources;
  patch["status"]["allocatable"] = resources;
  auto nodes = world.client.List(KindOf<kube::Node>(), "");
  if (!nodes) return std::move(nodes).error();
  for (const auto& node : nodes->items) {
    auto patched = world.client.Patch(KindOf<kube::Node>(), {"", node->metadata.name}, kube::PatchType::kMerge, patch,
                                      {.subresource = "status"});
    if (!patched) return std::move(patched).error().with("patch Node " + node->metadata.name);
  }
  return {};
}

kube::Status CreatePriorityClasses(const GangWorld& world) {
  const struct {
    const char *name, *policy;
    int value;
  } classes[] = {{kLowClass, "PreemptLowerPriority", -100},
                 {kHighClass, "PreemptLowerPriority", 1000},
                 {kPatientClass, "Never", 0}};
  for (const auto& [name, policy, value] : classes) {
    kube::Status made =
        CreateObject(world.client, KindOf<kube::PriorityClass>(), "", kit::MakePriorityClass(name, value, policy));
    if (!made && made.error().code() != kube::ErrorCode::kAlreadyExists) return made;
  }
  return {};
}

Json MakeOutsider(const std::string& name, const Outsider& outsider, const RoundPlan& plan) {
  const std::string& resource = plan.gang.resource;
  Json pod = plan.minimum_of_outsiders > 0 ? MakeUngatedMember(name, kOthers, outsider.units, resource)
                                           : MakeGangPod(name, kOthers, outsider.units, false, resource);
  if (!outsider.node.empty()) SetNode(pod, outsider.node);
  // Victims are for the preemptor alone.
  if (!plan.victims.empty()) pod["spec"]["priorityClassName"] = outsider.is_preemptor ? kHighClass : kPatientClass;
  return pod;
}

Json MakeVictim(const std::string& name, const Victim& victim, const std::string& resource) {
  Json pod = MakeGangPod(name, "victims", victim.units, false, resource);
  pod["metadata"]["annotations"]["grus.test/stop-seconds"] = std::to_string(victim.stop_seconds);
  pod["spec"]["priorityClassName"] = kLowClass;
  pod["spec"]["terminationGracePeriodSeconds"] = kVictimGraceSeconds;
  SetNode(pod, victim.node);
  return pod;
}

}  // namespace bench
