// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/gang_fixture.h"

#include "clientlib/client/patch.h"

namespace grus::testing {

using kube::Json;
using kube::KindOf;

void Gang::CreateGroup(int min_member, const std::string& name, std::string_view more, const kube::Kind& kind) {
  Json group = Json::MakeObject({{"kind", "PodGroup"}});
  group["apiVersion"] = std::string(kind.group) + "/v1alpha1";
  group["metadata"]["name"] = name;
  group["spec"] = FromText(more);
  group["spec"]["minMember"] = min_member;
  world().Create(kind, ns(), group);
}

void Gang::SetMinimum(int min_member, const std::string& name) {
  Patch<api::PodGroup>(name, R"({"spec":{"minMember":)" + std::to_string(min_member) + "}}");
}

Json Gang::PodSpec(int gpus) const {
  Json spec = FromText(R"({"schedulingGates":[{"name":"scheduling.x-k8s.io/gang"}],
      "terminationGracePeriodSeconds":0,
      "containers":[{"name":"c","image":"registry.test/x","resources":{"limits":{}}}]})");
  spec["nodeSelector"]["grus.test/pool"] = pool();
  (*spec["containers"].AsArray())[0]["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
  return spec;
}

void Gang::CreateSet(int replicas, int gpus, const std::string& name, const std::string& group, std::string_view spec) {
  Json set = FromText(R"({"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"podManagementPolicy":"Parallel",
      "template":{"metadata":{"labels":{}}}}})");
  set["metadata"]["name"] = name;
  set["spec"]["replicas"] = replicas;
  set["spec"]["serviceName"] = name;
  set["spec"]["selector"]["matchLabels"]["app"] = name;
  Json& labels = set["spec"]["template"]["metadata"]["labels"];
  labels["app"] = name;
  labels[api::kPodGroupLabel] = group.empty() ? name : group;
  Json pod = PodSpec(gpus);
  kube::MergePatch(pod, FromText(spec));
  set["spec"]["template"]["spec"] = std::move(pod);
  world().Create(KindOf<kube::StatefulSet>(), ns(), set);
}

void Gang::CreateMember(const std::string& name, int gpus, const std::string& group, std::string_view spec,
                        const std::string& label) {
  Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":{}}})");
  pod["metadata"]["name"] = name;
  pod["metadata"]["labels"][label] = group;
  pod["spec"] = PodSpec(gpus);
  kube::MergePatch(pod["spec"], FromText(spec));
  world().Create(KindOf<kube::Pod>(), ns(), pod);
}

void Gang::CreateOutsider(const std::string& name, int gpus, std::string_view spec) {
  Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{}})");
  pod["metadata"]["name"] = name;
  pod["spec"] = PodSpec(gpus);
  pod["spec"].Erase("schedulingGates");
  kube::MergePatch(pod["spec"], FromText(spec));
  world().Create(KindOf<kube::Pod>(), ns(), pod);
}

void Gang::CreateClaimWithoutVolume() {
  Json late = FromText(R"({"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{},
      "provisioner":"kubernetes.io/no-provisioner","volumeBindingMode":"WaitForFirstConsumer"})");
  late["metadata"]["name"] = ns() + "-late";
  Must(client().Create(KindOf<kube::StorageClass>(), "", late));
  Json claim = FromText(R"({"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"},
      "spec":{"accessModes":["ReadWriteMany"],"resources":{"requests":{"storage":"1Gi"}}}})");
  claim["spec"]["storageClassName"] = ns() + "-late";
  world().Create(KindOf<kube::PersistentVolumeClaim>(), ns(), claim);
}

void Gang::CreateVolume() {
  Json volume = FromText(R"({"apiVersion":"v1","kind":"PersistentVolume","metadata":{},"spec":{
      "capacity":{"storage":"1Gi"},"accessModes":["ReadWriteMany"],"persistentVolumeReclaimPolicy":"Retain",
      "hostPath":{"path":"/data"}}})");
  volume["metadata"]["name"] = ns() + "-data";
  volume["spec"]["storageClassName"] = ns() + "-late";
  Must(client().Create(KindOf<kube::PersistentVolume>(), "", volume));
}

void Gang::Cordon(const std::string& node, bool is_cordoned) {
  world().Patch(KindOf<kube::Node>(), {"", node}, kube::PatchType::kMerge,
                FromText(is_cordoned ? R"({"spec":{"unschedulable":true}})" : R"({"spec":{"unschedulable":null}})"));
}

std::shared_ptr<const api::PodGroup> Gang::Group(const std::string& name) const {
  return world().Get<api::PodGroup>(ns(), name);
}

std::string Gang::GroupPhase(const std::string& name) const {
  const auto group = Group(name);
  return group ? group->status.phase : "";
}

std::string Gang::GroupReason(const std::string& name) const {
  const auto group = Group(name);
  const auto* ready = group ? kube::FindCondition(group->status.conditions, "Ready") : nullptr;
  return ready ? ready->reason : "";
}

std::string Gang::GroupMessage(const std::string& name) const {
  const auto group = Group(name);
  const auto* ready = group ? kube::FindCondition(group->status.conditions, "Ready") : nullptr;
  return ready ? ready->message : "";
}

bool Gang::GroupSays(std::string_view text, const std::string& name) const {
  return GroupMessage(name).find(text) != std::string::npos;
}

PodList Gang::Members(const std::string& name) const {
  PodList members = world().List<kube::Pod>(ns());
  std::erase_if(members, [&](const PodPtr& pod) {
    return pod->metadata.Label(api::kPodGroupLabel) != name || pod->metadata.is_being_deleted();
  });
  return members;
}

int Gang::Bound(const std::string& name) const { return static_cast<int>(Where(Members(name), IsBound).size()); }

int Gang::Gated(const std::string& name) const { return static_cast<int>(Where(Members(name), IsGated).size()); }

bool Gang::Runs(int members, const std::string& name) const {
  return GroupPhase(name) == "Running" && Bound(name) == members;
}

std::set<std::string> Gang::EverMembers(const std::string& name) const {
  std::set<std::string> uids;
  for (const Step& step : world().History(ns())) {
    if (step.kind != &KindOf<kube::Pod>() || !step.after) continue;
    if (step.after->metadata.Label(api::kPodGroupLabel) == name) uids.emplace(step.after->metadata.uid);
  }
  return uids;
}

std::vector<std::string> Gang::Events(const std::string& object, const std::string& reason,
                                      const std::string& type) const {
  std::vector<std::string> notes;
  for (const auto& event : world().List<kube::Event>(ns())) {
    if (event->regarding.name == object && event->reason == reason && event->type == type)
      notes.emplace_back(event->note);
  }
  return notes;
}

}  // namespace grus::testing
