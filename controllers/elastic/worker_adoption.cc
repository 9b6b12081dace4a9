// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_adoption.h"

#include <utility>

#include "clientlib/runtime/ownership.h"
#include "controllers/cluster/owners.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/policy/waited.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::Result;
using kube::Status;

// The job that controls a pod, for an index. It is of the pod's namespace: anyone may name the UID of one elsewhere.
std::vector<std::string> ControllerOf(const kube::Object& pod) {
  const auto job = kube::ControllerKey(KindOf<ElasticHorovodJob>(), pod.metadata);
  return job ? std::vector{job->ToString()} : std::vector<std::string>();
}

bool HasOurLabels(const kube::ObjectMeta& pod, const ElasticHorovodJob& job) {
  return JobOf(pod) == job.metadata.Key() && pod.Label(kRoleLabel) == "worker" &&
         pod.Label(kManagedByLabel) == kManagedBy;
}

}  // namespace

WorkerAdoption::WorkerAdoption(kube::Informer& pods)
    : pods_(pods), by_job_(pods.AddIndex(JobKeysOf)), by_controller_(pods.AddIndex(ControllerOf)) {}

Result<bool> WorkerAdoption::TakeBack(const ElasticHorovodJob& job, bool is_gang, const kube::Time& now,
                                      ChildWriter& writer) {
  bool is_needed = false;
  // A job from ahead was made before the clock was set back: its pods may look older than it is.
  const auto made = job.metadata.creation_timestamp;
  const bool can_compare = made && !IsAhead(now, *made);
  const auto take = [&](const kube::ObjectMeta& pod) -> Status {
    const auto ordinal = OrdinalOf(pod.name, WorkersName(job));
    if (!ordinal || pod.is_being_deleted()) return {};
    // One that is older than the job was left behind by a job of this name, and has that one's key.
    if (can_compare && pod.creation_timestamp && pod.creation_timestamp->value < made->value) return {};
    is_needed = true;
    // Somebody may be deleting the job in order to keep its pods.
    if (Status confirmed = writer.ConfirmOwner(); !confirmed) return confirmed;
    const Json worker = MakeWorker(job, *ordinal, is_gang ? Gang::kUngated : Gang::kNone);
    Json patch;
    for (const char* field : {"labels", "ownerReferences"}) patch["metadata"][field] = *worker.At({"metadata", field});
    Status taken = writer.Merge(KindOf<kube::Pod>(), pod.name, std::string(pod.uid), std::move(patch));
    return taken || taken.error().code() == ErrorCode::kNotFound ? Status() : std::move(taken);
  };
  for (const auto& pod : pods_.ByIndex<kube::Pod>(by_controller_, job.metadata.Key().ToString())) {
    if (HasOurLabels(pod->metadata, job) || pod->metadata.Controller()->uid != job.metadata.uid) continue;
    if (Status taken = take(pod->metadata); !taken) return std::move(taken).error();
  }
  for (const auto& pod : pods_.ByIndex<kube::Pod>(by_job_, job.metadata.Key().ToString())) {
    if (!HasOurLabels(pod->metadata, job) || pod->metadata.Controller() != nullptr) continue;
    if (Status taken = take(pod->metadata); !taken) return std::move(taken).error();
  }
  return is_needed;
}

}  // namespace grus
