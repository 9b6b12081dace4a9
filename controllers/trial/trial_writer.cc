// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_writer.h"

#include "controllers/policy/pod_security.h"
#include "controllers/trial/trial_status.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::TrialJob;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;
using kube::Status;

// Creates it; a pod that leaves open what the namespace demands gets it filled in.
Status CreateAllowed(ChildWriter& writer, const kube::Kind& kind, Json object, std::string* uid = nullptr) {
  Status made = writer.Create(kind, object, uid);
  if (!made && FillIfRefused(made.error(), object)) made = writer.Create(kind, object, uid);
  return made;
}

}  // namespace

Status TrialWriter::ApplyKnee(const TrialView& view, const TrialPlan& plan, std::stop_token stop) {
  if (!plan.apply_replicas) return {};
  const ObjectKey key{view.job->metadata.ns, view.job->spec.workload.job_ref->name};
  const auto job = jobs_.Get<ElasticHorovodJob>(key);
  if (!job || job->spec.workers.target_replicas == *plan.apply_replicas) return {};
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = job->metadata.uid;
  patch["spec"]["workersSpec"]["targetReplicas"] = *plan.apply_replicas;
  const auto patched = client_.Patch(KindOf<ElasticHorovodJob>(), key, kube::PatchType::kMerge, patch, {}, stop);
  if (patched || patched.error().code() == ErrorCode::kNotFound) return {};
  return kube::Error(patched.error()).with("apply the knee to ElasticHorovodJob " + key.ToString());
}

Status TrialWriter::WriteChildren(const TrialView& view, const TrialPlan& plan, std::stop_token stop) {
  ChildWriter writer(client_, writes_, nullptr, KindOf<TrialJob>(), view.job->metadata, std::move(stop));
  if (Status ended = End(view, plan, writer); !ended) return ended;
  for (const std::string& trial : plan.lacks_group) {
    const std::optional<Json> group = runs_.ObjectsOf(*view.job).MakeGroup({view.job->metadata.ns, trial});
    if (!group) continue;
    Status made = writer.Create(KindOf<api::PodGroup>(), *group);
    // The PodGroup of the last try is being deleted; wait for its end.
    if (!made && made.error().code() != ErrorCode::kAlreadyExists) return made;
  }
  for (const TrialStart& start : plan.start) {
    if (Status started = Start(view, start, writer); !started) return started;
  }
  return {};
}

Status TrialWriter::End(const TrialView& view, const TrialPlan& plan, ChildWriter& writer) {
  const TrialObjects& objects = runs_.ObjectsOf(*view.job);
  for (const std::string& trial : plan.end) {
    kube::ObjectMeta child;
    child.name = trial;
    child.uid = view.runs.at(trial).child->uid;
    Status deleted = writer.Delete(objects.kind(), child);
    // A conflict: another object of that name, which is not ours to delete.
    if (!deleted && deleted.error().code() != ErrorCode::kConflict) return deleted;
  }
  for (const std::string& trial : plan.suspend) {
    const TrialChild& child = *view.runs.at(trial).child;
    std::vector<std::pair<std::string, std::string>> all(child.peers.begin(), child.peers.end());
    all.emplace_back(trial, child.uid);  // Last: it says that the trial is suspended.
    for (const auto& [name, uid] : all) {
      Status stopped = writer.Merge(objects.kind(), name, uid, objects.Suspension());
      if (!stopped && stopped.error().code() != ErrorCode::kNotFound) return stopped;
    }
  }
  return {};
}

Status TrialWriter::Start(const TrialView& view, const TrialStart& start, ChildWriter& writer) {
  const TrialJob& job = *view.job;
  runs_.NoteStart(job, start.name);
  const TrialObjects& objects = runs_.ObjectsOf(job);
  // For a trial that was not in the status, the name has not been checked yet; the next pass does it.
  TrialRun there;
  objects.Read(job, start.name, nullptr, there);
  if (there.child || there.pods.all > 0) return {};
  std::string uid;
  Status made = CreateAllowed(writer, objects.kind(), objects.Make(job, *view.workload, start), &uid);
  if (made) {
    for (const TrialPart& part : objects.MakeRest(job, *view.workload, start, uid)) {
      made = CreateAllowed(writer, part.kind, part.object);
      if (made) continue;
      // The next pass deletes the child, which cannot start without it; without a pause that would go on for ever.
      const bool is_taken = made.error().code() == ErrorCode::kAlreadyExists;
      if (!is_taken && made.error().code() != ErrorCode::kForbidden) return made;
      const std::string name =
          std::string(part.kind.kind) + " \"" + *part.object.At({"metadata", "name"})->AsString() + "\"";
      const std::string taken = name +
                                " exists and belongs to somebody else, or to the last try; delete it, or give the "
                                "TrialJob another name";
      runs_.NoteStartRefused(job, start.name,
                             {is_taken ? api::TrialJobReason::kNameTaken : ReasonOfForbidden(made.error()),
                              is_taken ? taken : made.error().message()});
      return {};
    }
    return {};
  }
  switch (made.error().code()) {
    case ErrorCode::kAlreadyExists: return {};  // The next pass sees whose it is.
    case ErrorCode::kForbidden:
      runs_.NoteStartRefused(job, start.name, {ReasonOfForbidden(made.error()), made.error().message()});
      return {};
    case ErrorCode::kInvalid:
    case ErrorCode::kInvalidArgument: runs_.NoteRefusal(job, start.name, made.error().message()); return {};
    default: return made;
  }
}

}  // namespace grus
