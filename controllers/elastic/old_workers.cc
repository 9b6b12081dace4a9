// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/old_workers.h"

#include "clientlib/model/apps_v1.h"
#include "clientlib/runtime/ownership.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {

using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::Status;

bool IsOfOldGrus(const kube::Pod& pod, const api::ElasticHorovodJob& job) {
  const kube::ObjectMeta& metadata = pod.metadata;
  // Only the controller of StatefulSets sets this label.
  const bool is_of_set = !metadata.Label("statefulset.kubernetes.io/pod-name").empty();
  if (!is_of_set || metadata.is_being_deleted() || metadata.Label(kManagedByLabel) != kManagedBy ||
      metadata.Label(kRoleLabel) != "worker") {
    return false;
  }
  const kube::OwnerReference* controller = metadata.Controller();
  if (controller == nullptr) return true;
  return controller->kind == "StatefulSet" && controller->name == WorkersName(job);
}

Status OldWorkers::KeepKey(const api::ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop) {
  const std::string old_name = job.metadata.name + "-ssh-" + std::string(job.metadata.uid);
  const auto old = client_.Get<kube::Secret>({job.metadata.ns, old_name}, stop);
  if (!old && old.error().code() == ErrorCode::kNotFound) return {};  // Its Secret has today's name.
  if (!old) return kube::Error(old.error()).with("look for Secret " + job.metadata.ns + "/" + old_name);
  const std::optional<SshKey> key = KeyIn(**old);
  if (!key) return {};
  return writer.CreateOrTake(
      KindOf<kube::Secret>(), [&](bool) { return MakeSecret(job, *key); }, true);
}

Status OldWorkers::Adopt(const api::ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop) {
  const std::string& ns = job.metadata.ns;
  const auto set = client_.Get<kube::StatefulSet>({ns, WorkersName(job)}, stop);
  if (!set && set.error().code() != ErrorCode::kNotFound) {
    return kube::Error(set.error()).with("look for StatefulSet " + ns + "/" + WorkersName(job));
  }
  if (set) {
    const kube::ObjectMeta& metadata = (*set)->metadata;
    const kube::OwnerReference* controller = metadata.Controller();
    const bool is_ours = controller != nullptr && controller->uid == job.metadata.uid;
    if (!is_ours || metadata.is_being_deleted()) return {};  // The pods follow, or go with it.
    if (Status kept = KeepKey(job, writer, stop); !kept) return kept;
    return writer.Delete(KindOf<kube::StatefulSet>(), metadata, {.propagation = "Orphan"});
  }
  for (const auto& pod : pods_.ByIndex<kube::Pod>(by_job_, job.metadata.Key().ToString())) {
    const bool is_free = pod->metadata.Controller() == nullptr;  // The garbage collector has taken the StatefulSet off.
    if (!is_free || !IsOfOldGrus(*pod, job)) continue;
    Json patch = Json::MakeObject({{"metadata", Json::MakeObject({{"namespace", ns}})}});
    Status owned = kube::SetControllerReference(api::ElasticHorovodJob::ResourceKind(), job.metadata, patch);
    if (!owned) return owned;
    patch["metadata"].Erase("namespace");
    Status adopted = writer.Merge(KindOf<kube::Pod>(), pod->metadata.name, std::string(pod->metadata.uid), std::move(patch));
    if (!adopted && adopted.error().code() != ErrorCode::kNotFound) return adopted;
  }
  return {};
}

}  // namespace grus
