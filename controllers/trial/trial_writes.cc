// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/patch.h"
#include "clientlib/model/json_writer.h"
#include "controllers/frame/child_writer.h"
#include "controllers/frame/retry_times.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_reconciler.h"
#include "controllers/trial/trial_status.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::TrialJob;
using kube::Action;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

// Not kMinorChangeWait: while trials run there is a pass every kPoll, and each changes the progress.
constexpr kube::Duration kProgressWait = kPoll;

// A change of times alone is not worth a write.
bool IsSame(const api::TrialJobStatus& before, const api::TrialJobStatus& after) {
  if (before.spent.wall_seconds == after.spent.wall_seconds) return before == after;
  api::TrialJobStatus still = after;
  still.spent.wall_seconds = before.spent.wall_seconds;
  return before == still;
}

}  // namespace

Status TrialReconciler::Execute(const TrialView& view, const TrialPlan& plan, std::optional<kube::Duration>& deferred,
                                std::stop_token stop) {
  if (plan.apply_replicas) {
    if (Status applied = Apply(view, *plan.apply_replicas, stop); !applied) return applied;
  }
  if (Status saved = SaveToProfile(view, plan, stop); !saved) return saved;
  if (Status written = WriteStatus(view, plan, deferred, stop); !written) return written;
  if (!deferred) ForgetFreed(view);
  ChildWriter writer(client_, writes_, nullptr, KindOf<TrialJob>(), view.job->metadata, stop);
  if (Status stopped = StopTrials(view, plan, writer); !stopped) return stopped;
  if (Status made = MakeGroups(view, plan, writer); !made) return made;
  for (const TrialStart& start : plan.start) {
    if (Status started = StartTrial(view, start, writer); !started) return started;
  }
  return {};
}

Status TrialReconciler::Apply(const TrialView& view, std::int32_t replicas, std::stop_token stop) {
  const ObjectKey key{view.job->metadata.ns, view.job->spec.workload.job_ref->name};
  const auto job = caches_.jobs.Get<ElasticHorovodJob>(key);
  if (!job || job->spec.workers.target_replicas == replicas) return {};
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = job->metadata.uid;
  patch["spec"]["workersSpec"]["targetReplicas"] = replicas;
  const auto patched = client_.Patch(KindOf<ElasticHorovodJob>(), key, kube::PatchType::kMerge, patch, {}, stop);
  if (patched || patched.error().code() == ErrorCode::kNotFound) return {};
  return kube::Error(patched.error()).with("apply the knee to ElasticHorovodJob " + key.ToString());
}

Status TrialReconciler::SaveToProfile(const TrialView& view, const TrialPlan& plan, std::stop_token stop) {
  const TrialJob& job = *view.job;
  if (job.spec.cache.policy == api::CachePolicy::kOff) return {};
  // The workload of a jobRef may have changed meanwhile.
  if (plan.status.fingerprint != view.identity.fingerprint) return {};
  NewSpeeds speeds{view.identity.fingerprint, view.identity.workload, plan.status.throughput_unit, {}};
  for (const api::Trial& trial : plan.status.trials) {
    const bool is_measured = trial.phase == api::TrialPhase::kSucceeded && trial.measured;
    if (!is_measured || trial.reason == api::TrialReason::kFromCache) continue;
    const auto before = std::find_if(job.status.trials.begin(), job.status.trials.end(),
                                     [&](const api::Trial& other) { return other.name == trial.name; });
    if (before != job.status.trials.end() && before->phase == api::TrialPhase::kSucceeded) continue;
    api::TrialConfig config = trial.config;
    config.gpu_type = view.ProductOf(config.gpu_type);
    speeds.points.push_back({.config = std::move(config),
                             .measured = *trial.measured,
                             .gpu_seconds = trial.gpu_seconds,
                             .measured_by = job.metadata.Key().ToString(),
                             .time = view.now});
  }
  if (speeds.points.empty()) return {};
  const Status saved = profiles_.Save(speeds, stop);
  if (saved) return {};
  const ErrorCode code = saved.error().code();
  const bool is_final =
      code == ErrorCode::kForbidden || code == ErrorCode::kInvalid || code == ErrorCode::kInvalidArgument;
  if (!is_final) return saved.error();
  log_.Warn("measurements could not be saved",
            {{"trial_job", job.metadata.Key().ToString()}, {"error", saved.error().message()}});
  events_.Record(kube::EventType::kWarning, KindOf<TrialJob>(), job.metadata, "ProfileNotSaved", "SaveProfile",
                 saved.error().message());
  return {};
}

Status TrialReconciler::WriteStatus(const TrialView& view, const TrialPlan& plan,
                                    std::optional<kube::Duration>& deferred, std::stop_token stop) {
  const TrialJob& job = *view.job;
  const bool has_freed = std::any_of(view.runs.begin(), view.runs.end(), [](const auto& named) {
    return named.second.held_since.has_value() && !HoldsGpus(named.second);
  });
  if (IsSame(job.status, plan.status)) return {};
  const kube::Duration patience = plan.is_urgent || has_freed ? kube::Duration::zero() : kProgressWait;
  auto written = statuses_.Write(job, plan.status, patience, stop);
  if (!written) {
    if (written.error().code() == ErrorCode::kNotFound) return kube::Error(ErrorCode::kGone, "the TrialJob is deleted");
    return std::move(written).error();
  }
  deferred = written->deferred;
  return {};
}

void TrialReconciler::ForgetFreed(const TrialView& view) {
  memory_.With(view.job->metadata, [&](Memory& kept) {
    for (const auto& [name, run] : view.runs) {
      // Workers of a running job may be created again, and what they held before still counts.
      const bool is_over = !run.child || run.child->is_ending || run.child->is_suspended || HasFinished(*run.child);
      if (run.held_since && !HoldsGpus(run) && is_over) kept.held.Forget(name);
    }
  });
}

Status TrialReconciler::StopTrials(const TrialView& view, const TrialPlan& plan, ChildWriter& writer) {
  const TrialObjects& objects = ObjectsOf(*view.job);
  for (const std::string& trial : plan.end) {
    kube::ObjectMeta child;
    child.name = trial;
    child.uid = view.runs.at(trial).child->uid;
    Status deleted = writer.Delete(objects.kind(), child);
    // A conflict: another object of that name, which is not ours to delete.
    if (!deleted && deleted.error().code() != ErrorCode::kConflict) return deleted;
  }
  for (const std::string& trial : plan.suspend) {
    Status stopped = writer.Merge(objects.kind(), trial, view.runs.at(trial).child->uid, objects.Suspension());
    if (!stopped && stopped.error().code() != ErrorCode::kNotFound) return stopped;
  }
  return {};
}

Status TrialReconciler::MakeGroups(const TrialView& view, const TrialPlan& plan, ChildWriter& writer) {
  for (const std::string& trial : plan.lacks_group) {
    const std::optional<Json> group = ObjectsOf(*view.job).MakeGroup({view.job->metadata.ns, trial});
    if (!group) continue;
    Status made = writer.Create(KindOf<api::PodGroup>(), *group);
    // The PodGroup of the last try is being deleted; wait for its end.
    if (!made && made.error().code() != ErrorCode::kAlreadyExists) return made;
  }
  return {};
}

Status TrialReconciler::StartTrial(const TrialView& view, const TrialStart& start, ChildWriter& writer) {
  const TrialJob& job = *view.job;
  {
    std::lock_guard lock(mutex_);
    trial_jobs_[{job.metadata.ns, start.name}] = job.metadata.name;
  }
  memory_.With(job.metadata, [&](Memory& kept) { kept.made[start.name] = clock_.Now(); });
  const TrialObjects& objects = ObjectsOf(job);
  // For a trial that was not in the status, the name has not been checked yet; the next pass does it.
  TrialRun there;
  objects.Read(job, start.name, nullptr, there);
  if (there.child || there.pods.all > 0) return {};
  Status made = writer.Create(objects.kind(), objects.Make(job, *view.workload, start));
  if (made) return {};
  switch (made.error().code()) {
    case ErrorCode::kAlreadyExists: return {};  // The next pass sees whose it is.
    case ErrorCode::kInvalid:
    case ErrorCode::kInvalidArgument:
      spec_memory_.With(job.metadata, [&](SpecMemory& kept) {
        Refusal& refusal = kept.refusals[start.name];
        ++refusal.times;
        refusal.message = made.error().message();
      });
      return {};
    default: return made;
  }
}

Result<Action> TrialReconciler::Refused(const TrialView& view, kube::Error error, std::stop_token stop) {
  if (error.code() == ErrorCode::kGone) return Action::AwaitChange();  // The TrialJob is gone; its event will come.
  if (error.code() != ErrorCode::kForbidden) return error;
  log_.Warn("trials cannot be carried out",
            {{"trial_job", view.job->metadata.Key().ToString()}, {"error", error.message()}});
  TrialPlan plan;
  plan.status = view.job->status;
  plan.is_urgent = true;
  // A used-up quota has the same code; its message says so.
  SetStanding(plan.status, view, view.job->status.phase, Standing::kStalled, api::TrialJobReason::kNotPermitted,
              error.message());
  std::optional<kube::Duration> deferred;
  if (Status written = WriteStatus(view, plan, deferred, stop); !written) return error;
  return Action::After(kRefusedRetry);
}

}  // namespace grus
