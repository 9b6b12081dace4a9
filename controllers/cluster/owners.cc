// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/owners.h"

#include "controllers/policy/node_match.h"
#include "crds/types/pod_group.h"

namespace grus {
namespace {

bool IsLegacy(const kube::Kind& kind) { return kind.group == api::LegacyPodGroup::ResourceKind().group; }

}  // namespace

std::optional<kube::ObjectKey> JobOf(const kube::ObjectMeta& pod) {
  const std::string_view job = pod.Label(kJobNameLabel);
  if (job.empty()) return std::nullopt;
  return kube::ObjectKey{pod.ns, std::string(job)};
}

std::vector<std::string> JobKeysOf(const kube::Object& pod) {
  const std::optional<kube::ObjectKey> job = JobOf(pod.metadata);
  return job ? std::vector{job->ToString()} : std::vector<std::string>();
}

std::string_view GroupNameOf(const kube::Kind& kind, const kube::ObjectMeta& pod) {
  return pod.labels.Get(IsLegacy(kind) ? api::kLegacyPodGroupLabel : api::kPodGroupLabel);
}

std::string GangKey(const kube::Kind& kind, const kube::ObjectKey& group) {
  return (IsLegacy(kind) ? std::string(kind.group) + "/" : std::string()) + group.ToString();
}

std::optional<kube::ObjectKey> GroupOfGang(const kube::Kind& kind, std::string_view gang) {
  if (IsLegacy(kind)) {
    if (!gang.starts_with(kind.group) || gang.size() <= kind.group.size()) return std::nullopt;
    gang.remove_prefix(kind.group.size() + 1);
  }
  const std::size_t slash = gang.find('/');
  if (slash == std::string_view::npos || gang.find('/', slash + 1) != std::string_view::npos) return std::nullopt;
  return kube::ObjectKey{std::string(gang.substr(0, slash)), std::string(gang.substr(slash + 1))};
}

kube::PodSpec WithoutPin(const kube::Pod& pod) {
  kube::PodSpec spec = pod.spec;
  if (!pod.metadata.Annotation(kGangPinnedAnnotation).empty()) spec.node_selector.erase(kHostnameLabel);
  return spec;
}

std::string OwnerOf(const kube::Pod& pod) {
  for (const kube::Kind* kind : {&api::PodGroup::ResourceKind(), &api::LegacyPodGroup::ResourceKind()}) {
    const std::string_view group = GroupNameOf(*kind, pod.metadata);
    if (!group.empty()) return GangKey(*kind, {pod.metadata.ns, std::string(group)});
  }
  const std::optional<kube::ObjectKey> job = JobOf(pod.metadata);
  const std::string_view role = pod.metadata.labels.Get(kRoleLabel);
  if (!job || (role != "worker" && role != "launcher")) return {};
  return role == "worker" ? job->ToString() : LauncherOwner(job->ToString());
}

}  // namespace grus
