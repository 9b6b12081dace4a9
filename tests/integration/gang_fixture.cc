// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/gang_fixture.h"

#include <utility>

#include "clientlib/client/patch.h"

namespace grus::testing {

using kube::Json;
using kube::KindOf;

void Gang::CreateGroup(int min_member, const std::string& name, std::string_view more, const kube::Kind& kind) {
  world().Create(kind, ns(), kit::MakePodGroup(name, min_member, more, {}, kind));
}

Json Gang::PodSpec(int gpus, std::string_view more) const {
  Json spec = kit::Gated(kit::PodSpec(gpus));
  spec["terminationGracePeriodSeconds"] = 0;
  spec["nodeSelector"]["grus.test/pool"] = pool();
  kube::MergePatch(spec, FromText(more));
  return spec;
}

void Gang::CreateSet(int replicas, int gpus, const std::string& name, const std::string& group, std::string_view spec) {
  world().Create(
      KindOf<kube::StatefulSet>(), ns(),
      kit::MakeStatefulSet(name, replicas, PodSpec(gpus, spec), kit::MemberOf(group.empty() ? name : group)));
}

void Gang::CreateMember(const std::string& name, int gpus, const std::string& group, std::string_view spec,
                        const std::string& label) {
  world().Create(KindOf<kube::Pod>(), ns(), kit::MakePod(name, PodSpec(gpus, spec), kit::MemberOf(group, label)));
}

void Gang::CreateOutsider(const std::string& name, int gpus, std::string_view spec) {
  Json pod_spec = PodSpec(gpus, spec);
  pod_spec.Erase("schedulingGates");
  world().Create(KindOf<kube::Pod>(), ns(), kit::MakePod(name, std::move(pod_spec)));
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

std::shared_ptr<const api::PodGroup> Gang::Group(const std::string& name) const {
  return world().Get<api::PodGroup>(ns(), name);
}

std::string Gang::GroupPhase(const std::string& name) const {
  const auto group = Group(name);
  return group ? group->status.phase : "";
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
