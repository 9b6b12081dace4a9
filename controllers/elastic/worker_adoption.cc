// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_adoption.h"

#include <utility>

#include "controllers/cluster/owners.h"
#include "controllers/elastic/elastic_children.h"

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

WorkerAdoption::WorkerAdoption(kube::Informer& pods)
    : pods_(pods), by_job_(pods.AddIndex(JobKeysOf)), by_controller_(pods.AddIndex(JobUidsOf)) {}

Result<bool> WorkerAdoption::TakeBack(const ElasticHorovodJob& job, bool is_gang, ChildWriter& writer) {
  bool is_needed = false;
  const auto take = [&](const kube::ObjectMeta& pod) -> Status {
    const auto ordinal = OrdinalOf(pod.name, WorkersName(job));
    if (!ordinal || pod.is_being_deleted()) return {};
    // Anyone may name this job's UID as the owner of a pod of theirs; owners are of the same namespace.
    if (pod.ns != job.metadata.ns) return {};
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
  for (const auto& pod : pods_.ByIndex<kube::Pod>(by_job_, job.metadata.Key().ToString())) {
    if (!HasOurLabels(pod->metadata, job) || pod->metadata.Controller() != nullptr) continue;
    if (Status taken = take(pod->metadata); !taken) return std::move(taken).error();
  }
  return is_needed;
}

}  // namespace grus
