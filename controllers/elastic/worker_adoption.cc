// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_adoption.h"

#include <utility>

#include "clientlib/model/apps_v1.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/frame/look_for.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::Result;
using kube::Status;

// The UIDs of the jobs that control a pod, for an index.
std::vector<std::string> JobUidsOf(const kube::Object& pod) {
  const kube::OwnerReference* controller = pod.metadata.Controller();
  const bool is_job = controller != nullptr && controller->kind == KindOf<ElasticHorovodJob>().kind;
  return is_job ? std::vector{std::string(controller->uid)} : std::vector<std::string>();
}

bool HasOurLabels(const kube::ObjectMeta& pod, const ElasticHorovodJob& job) {
  return JobOf(pod) == job.metadata.Key() && pod.Label(kRoleLabel) == "worker" &&
         pod.Label(kManagedByLabel) == kManagedBy;
}

}  // namespace

WorkerAdoption::WorkerAdoption(kube::Client& client, kube::Informer& pods)
    : client_(client), pods_(pods), by_job_(pods.AddIndex(JobKeysOf)), by_controller_(pods.AddIndex(JobUidsOf)) {}

Result<bool> WorkerAdoption::TakeBack(const ElasticHorovodJob& job, bool is_gang, ChildWriter& writer,
                                      std::stop_token stop) {
  bool is_needed = false;
  const auto take = [&](const kube::ObjectMeta& pod) -> Status {
    const auto ordinal = OrdinalOf(pod.name, WorkersName(job));
    if (!ordinal || pod.is_being_deleted()) return {};
    // One that is older than the job was left behind by a job of this name, and has that one's key.
    if (pod.creation_timestamp && job.metadata.creation_timestamp &&
        pod.creation_timestamp->value < job.metadata.creation_timestamp->value) {
      return {};
    }
    is_needed = true;
    // Somebody may be deleting the job in order to keep its pods.
    if (Status confirmed = writer.ConfirmOwner(); !confirmed) return confirmed;
    const Json worker = MakeWorker(job, *ordinal, is_gang ? Gang::kUngated : Gang::kNone);
    Json patch;
    for (const char* field : {"labels", "ownerReferences"}) patch["metadata"][field] = *worker.At({"metadata", field});
    Status taken = writer.Merge(KindOf<kube::Pod>(), pod.name, std::string(pod.uid), std::move(patch));
    return taken || taken.error().code() == ErrorCode::kNotFound ? Status() : std::move(taken);
  };
  for (const auto& pod : pods_.ByIndex<kube::Pod>(by_controller_, std::string(job.metadata.uid))) {
    if (HasOurLabels(pod->metadata, job)) continue;
    if (Status taken = take(pod->metadata); !taken) return std::move(taken).error();
  }
  std::string old;  // One whose controller has the name of the StatefulSet that an older grus made.
  for (const auto& pod : pods_.ByIndex<kube::Pod>(by_job_, job.metadata.Key().ToString())) {
    if (!HasOurLabels(pod->metadata, job)) continue;
    const kube::OwnerReference* controller = pod->metadata.Controller();
    if (controller == nullptr && kube::HasGate(*pod, api::kParkGate)) {
      if (pod->metadata.is_being_deleted()) continue;
      is_needed = true;  // An older grus kept its ordinal: nobody would lift that gate.
      Status dropped = writer.Delete(KindOf<kube::Pod>(), pod->metadata);
      if (!dropped && dropped.error().code() != ErrorCode::kNotFound) return std::move(dropped).error();
    } else if (controller == nullptr) {
      if (Status taken = take(pod->metadata); !taken) return std::move(taken).error();
    } else if (controller->kind == "StatefulSet" && controller->name == WorkersName(job) &&
               !pod->metadata.is_being_deleted()) {
      old = pod->metadata.name;
    }
  }
  if (old.empty()) return is_needed;
  Result<bool> is_ending = EndStatefulSet(job, old, writer, stop);
  if (!is_ending) return is_ending;
  return is_needed || *is_ending;
}

Result<bool> WorkerAdoption::EndStatefulSet(const ElasticHorovodJob& job, const std::string& worker,
                                            ChildWriter& writer, std::stop_token stop) {
  const kube::ObjectKey key{job.metadata.ns, WorkersName(job)};
  const auto set = LookFor<kube::StatefulSet>(client_, key, stop);
  if (!set) return set.error();
  if (!*set) {
    // Either our cache is late, or the worker is another's, for the garbage collector to take.
    const auto live = LookFor<kube::Pod>(client_, {job.metadata.ns, worker}, stop);
    if (!live) return live.error();
    if (!*live) return true;
    const kube::OwnerReference* controller = (*live)->metadata.Controller();
    return controller == nullptr || controller->kind != "StatefulSet";
  }
  const kube::ObjectMeta& metadata = (*set)->metadata;
  const kube::OwnerReference* controller = metadata.Controller();
  if (controller == nullptr || controller->uid != job.metadata.uid) return false;
  if (metadata.is_being_deleted()) return true;
  if (Status kept = KeepKey(job, writer, stop); !kept) return std::move(kept).error();
  Status deleted = writer.Delete(KindOf<kube::StatefulSet>(), metadata, {.propagation = "Orphan"});
  return deleted ? Result<bool>(true) : std::move(deleted).error();
}

Status WorkerAdoption::KeepKey(const ElasticHorovodJob& job, ChildWriter& writer, std::stop_token stop) {
  const std::string old_name = job.metadata.name + "-ssh-" + std::string(job.metadata.uid);
  const auto old = LookFor<kube::Secret>(client_, {job.metadata.ns, old_name}, stop);
  if (!old) return old.error();
  if (!*old) return {};  // Its Secret has today's name.
  const std::optional<SshKey> key = KeyIn(**old);
  if (!key) return {};
  return writer.CreateOrTake(
      KindOf<kube::Secret>(), [&](bool) { return MakeSecret(job, *key); }, true);
}

}  // namespace grus
