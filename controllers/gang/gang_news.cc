// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_news.h"

#include "controllers/cluster/owners.h"
#include "controllers/policy/volume_limits.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

const kube::CoreCondition* Scheduled(const kube::Pod& pod) {
  return kube::FindCondition(pod.status.conditions, "PodScheduled");
}

bool SameScheduling(const kube::Pod& a, const kube::Pod& b) {
  const kube::CoreCondition *before = Scheduled(a), *after = Scheduled(b);
  if (before == nullptr || after == nullptr) {
    // It is no news that the scheduler saw the gate.
    const kube::CoreCondition* only = before ? before : after;
    return only == nullptr || only->reason == "SchedulingGated";
  }
  return before->status == after->status && before->reason == after->reason;
}

}  // namespace

News NewsOfMember(const kube::Pod* before, const kube::Pod* after) {
  if (before == nullptr || after == nullptr || before->metadata.uid != after->metadata.uid) return News::kNow;
  const bool is_same = before->metadata.labels == after->metadata.labels &&
                       before->metadata.is_being_deleted() == after->metadata.is_being_deleted() &&
                       before->spec.node_name == after->spec.node_name &&
                       before->spec.scheduling_gates == after->spec.scheduling_gates &&
                       before->status.nominated_node_name == after->status.nominated_node_name;
  if (!is_same) return News::kNow;
  // A new phase changes counts. Running can wait: every bound pod runs soon.
  if (before->status.phase != after->status.phase) {
    return after->status.phase == "Running" ? News::kSoon : News::kNow;
  }
  if (SameScheduling(*before, *after)) return News::kNone;
  return after->spec.node_name.empty() ? News::kNow : News::kNone;
}

std::optional<kube::ObjectKey> GroupOfPod(const kube::Kind& kind, const kube::Pod& pod) {
  const std::string_view group = GroupNameOf(kind, pod.metadata);
  if (!group.empty()) return kube::ObjectKey{pod.metadata.ns, std::string(group)};
  const kube::Kind& ours = kube::KindOf<api::PodGroup>();
  const bool is_without = &kind == &ours && HasGate(pod, api::kGangGate) &&
                          GroupNameOf(kube::KindOf<api::LegacyPodGroup>(), pod.metadata).empty();
  return is_without ? std::optional(kube::ObjectKey{pod.metadata.ns, ""}) : std::nullopt;
}

std::vector<std::string> VolumeClaimsAwaitedBy(const kube::Kind& kind, const kube::Pod& pod) {
  if (pod.spec.volumes.empty() || !pod.spec.node_name.empty() || GroupNameOf(kind, pod.metadata).empty()) return {};
  std::vector<std::string> claims = VolumeClaimsOf(pod);
  for (std::string& claim : claims) claim = kube::ObjectKey{pod.metadata.ns, claim}.ToString();
  return claims;
}

}  // namespace grus
