// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_reconciler.h"

#include <algorithm>

#include "clientlib/runtime/ownership.h"
#include "controllers/cluster/owners.h"
#include "controllers/frame/retry_times.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_scope.h"
#include "controllers/trial/trial_status.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::TrialJob;
using kube::Action;
using kube::ErrorCode;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

constexpr kube::Duration kPodWait = std::chrono::milliseconds(200);  // Pods of a trial change together.
// Not kMinorChangeWait: while trials run there is a pass every kPoll, and each changes the progress.
constexpr kube::Duration kProgressWait = kPoll;

// What was found in the profile, where GPU types have the names of their products: the newest for each configuration.
std::vector<KnownTrial> KnownTrials(const TrialView& view, const KnownSpeeds& found) {
  std::map<std::string, std::string> names;  // Of GPU types here, by what others call them.
  for (const api::GpuType& type : view.job->spec.space.gpu_types) names.emplace(view.ProductOf(type.name), type.name);
  std::map<api::TrialConfig, const api::ProfilePoint*> newest;
  for (const auto& [config, point] : found.points) {
    if (config.nodes != 0) continue;  // The number of nodes of a future trial is not known.
    api::TrialConfig here = config;
    if (const auto name = names.find(config.gpu_type); name != names.end()) here.gpu_type = name->second;
    const api::ProfilePoint*& known = newest[here];
    if (known == nullptr || known->time < point.time) known = &point;
  }
  std::vector<KnownTrial> known;
  for (const auto& [config, point] : newest) {
    known.push_back({config, point->measured, found.unit, point->gpu_seconds});
    known.back().config.nodes = point->config.nodes;
  }
  return known;
}

// What the trials have measured that is not in the status yet; without points: nothing.
NewSpeeds SpeedsToSave(const TrialView& view, const TrialPlan& plan) {
  const api::TrialJob& job = *view.job;
  NewSpeeds speeds{view.identity.fingerprint, view.identity.workload, plan.status.throughput_unit, {}};
  if (job.spec.cache.policy == api::CachePolicy::kOff) return speeds;
  // The workload of a jobRef may have changed meanwhile.
  if (plan.status.fingerprint != view.identity.fingerprint) return speeds;
  for (const api::Trial& trial : plan.status.trials) {
    if (!HasSpeedOfJob(trial) || trial.reason == api::TrialReason::kFromCache) continue;
    const api::Trial* before = FindTrial(job.status, trial.name);
    if (before != nullptr && HasSpeedOfJob(*before)) continue;
    api::TrialConfig config = trial.config;
    config.gpu_type = view.ProductOf(config.gpu_type);
    speeds.points.push_back({.config = std::move(config),
                             .measured = *trial.measured,
                             .gpu_seconds = trial.gpu_seconds,
                             .measured_by = job.metadata.Key().ToString(),
                             .time = view.now});
  }
  return speeds;
}

}  // namespace

TrialReconciler::TrialReconciler(kube::Client& client, TrialCaches caches, const ClusterAccount& account,
                                 ProfileStore& profiles, Prometheus& prometheus, kube::EventRecorder& events,
                                 const kube::Clock& clock, const kube::Log& log)
    : caches_(caches),
      account_(account),
      profiles_(profiles),
      events_(events),
      clock_(clock),
      log_(log),
      trial_jobs_by_workload_(caches.trial_jobs.AddIndex([](const kube::Object& object) -> std::vector<std::string> {
        const auto& workload = static_cast<const TrialJob&>(object).spec.workload;
        if (!workload.job_ref) return {};
        return {ObjectKey{object.metadata.ns, workload.job_ref->name}.ToString()};
      })),
      feed_(writes_, kPodWait),
      statuses_(client, &writes_, clock),
      runs_(client, caches, clock),
      trials_(client, caches.jobs, runs_, writes_),
      sources_(client, prometheus, clock, [this](const ObjectKey& key) { feed_.Add(key); }) {}

void TrialReconciler::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  feed_.AddObjectsOf(caches_.trial_jobs);
  caches_.jobs.AddHandler([this](const kube::Change& change, bool) {
    for (const ObjectKey& key : kube::ControllerKeys(KindOf<TrialJob>(), change)) feed_.Add(key);
    const bool is_new_spec =
        !change.before || !change.after || change.before->metadata.generation != change.after->metadata.generation;
    if (!is_new_spec) return;
    const std::string workload = change.Any().metadata.Key().ToString();
    for (const auto& job : caches_.trial_jobs.ByIndex<TrialJob>(trial_jobs_by_workload_, workload)) {
      feed_.Add(job->metadata.Key());
    }
  });
  caches_.pods.AddHandler([this](const kube::Change& change, bool) {
    runs_.NoteGone(change);
    if (const auto trial = runs_.TrialOf(change.Any().metadata)) feed_.Add(trial->first, News::kSoon);
  });
}

TrialView TrialReconciler::Observe(const Job& job, std::stop_token stop) {
  const api::TrialJobSpec& spec = job->spec;
  TrialView view;
  view.job = job;
  view.now = kube::Time{clock_.WallNow()};
  ReadWorkload(view);
  // Once it is done, no more trials are started, and the curve stays.
  if (view.workload && !view.is_done()) {
    view.nodes = NodesByType(spec.space, *view.workload, caches_.nodes.List<kube::Node>());
  }
  if (view.workload && spec.cache.policy == api::CachePolicy::kUse) {
    const std::chrono::seconds max_age(spec.cache.max_age_seconds);
    view.known = KnownTrials(view, profiles_.Find(view.identity.fingerprint, max_age, view.now));
  }
  view.others_wait = spec.idle_only && account_.IsAnyoneWaiting([this](const std::string& gang) {
    const auto is_trial = [](const auto& object) { return object && TrialJobOf(object->metadata); };
    const auto key = GroupOfGang(KindOf<api::PodGroup>(), gang);  // It has the name of its job, or of the trial's pod.
    return !key || (!is_trial(caches_.jobs.store().Get(*key)) && !is_trial(caches_.pods.store().Get(*key)));
  });
  view.runs = runs_.Read(*job, sources_, stop);
  sources_.Read(view, std::move(stop));
  return view;
}

void TrialReconciler::ReadWorkload(TrialView& view) const {
  const TrialJob& job = *view.job;
  const api::TrialWorkload& given = job.spec.workload;
  const bool is_pod = !given.pod_template.is_null();
  if ((given.job_ref ? 1 : 0) + (given.job_template ? 1 : 0) + (is_pod ? 1 : 0) != 1) {
    view.workload_error = "workload needs exactly one of jobRef, template and podTemplate";
  } else if (is_pod) {
    auto workload = PodWorkload(given.pod_template, job.spec.space);
    if (!workload) {
      view.workload_error = workload.error().message();
      return;
    }
    view.workload = *std::move(workload);
    view.identity = IdentityOfPod(given.pod_template, job.metadata, profiles_.trust());
  } else if (given.job_template) {
    view.workload = JobWorkload(given.job_template->spec);
    view.identity = IdentityOf(given.job_template->spec, job.metadata, profiles_.trust());
  } else if (const auto source = caches_.jobs.Get<ElasticHorovodJob>({job.metadata.ns, given.job_ref->name})) {
    view.workload = JobWorkload(source->spec);
    view.identity = IdentityOf(source->spec, source->metadata, profiles_.trust());
  }
}

void TrialReconciler::Forget(const ObjectKey& key) {
  writes_.Forget(key);
  statuses_.Forget(key);
  sources_.Forget(key);
  runs_.Forget(key);
}

Result<Action> TrialReconciler::Reconcile(const ObjectKey& key, std::stop_token stop) {
  const Job job = caches_.trial_jobs.Get<TrialJob>(key);
  if (!job) {
    Forget(key);
    return Action::AwaitChange();
  }
  if (!writes_.HasCaughtUp(job->metadata, {&caches_.trial_jobs, &caches_.jobs, &caches_.pods, caches_.groups})) {
    return Action::After(kCacheLag);
  }
  const TrialView view = Observe(job, stop);
  const TrialPlan plan = PlanTrials(view);
  if (plan.is_ignored) {
    sources_.Measure(view, plan);
    return Action::AwaitChange();
  }
  Result<Deferred> done = Execute(view, plan, stop);
  if (!done) return Refused(view, std::move(done).error(), stop);
  sources_.Measure(view, plan);
  Tell(plan.events, events_, log_, KindOf<TrialJob>(), job->metadata, "trial_job");
  return Action::After(
      std::min({plan.look_again.value_or(kSafetyResync), done->value_or(kSafetyResync), kSafetyResync}));
}

Result<Deferred> TrialReconciler::Execute(const TrialView& view, const TrialPlan& plan, std::stop_token stop) {
  if (Status applied = trials_.ApplyKnee(view, plan, stop); !applied) return std::move(applied).error();
  if (Status saved = SaveToProfile(view, plan, stop); !saved) return std::move(saved).error();
  Result<Deferred> written = WriteStatus(view, plan.status, plan.is_urgent, stop);
  if (!written) return written;
  if (!*written) runs_.ForgetFreed(view);
  if (Status done = trials_.WriteChildren(view, plan, stop); !done) return std::move(done).error();
  return written;
}

Status TrialReconciler::SaveToProfile(const TrialView& view, const TrialPlan& plan, std::stop_token stop) {
  const NewSpeeds speeds = SpeedsToSave(view, plan);
  if (speeds.points.empty()) return {};
  Status saved = profiles_.Save(speeds, stop);
  if (saved) return saved;
  const ErrorCode code = saved.error().code();
  const bool is_final =
      code == ErrorCode::kForbidden || code == ErrorCode::kInvalid || code == ErrorCode::kInvalidArgument;
  if (!is_final) return saved;
  const kube::ObjectMeta& job = view.job->metadata;
  log_.Warn("measurements could not be saved",
            {{"trial_job", job.Key().ToString()}, {"error", saved.error().message()}});
  events_.Record(kube::EventType::kWarning, KindOf<TrialJob>(), job, "ProfileNotSaved", "SaveProfile",
                 saved.error().message());
  return {};
}

Result<Deferred> TrialReconciler::WriteStatus(const TrialView& view, const api::TrialJobStatus& status, bool is_urgent,
                                              std::stop_token stop) {
  const bool has_freed = std::any_of(view.runs.begin(), view.runs.end(), [](const auto& named) {
    return named.second.held_since.has_value() && !HoldsGpus(named.second);
  });
  const kube::Duration patience = is_urgent || has_freed ? kube::Duration::zero() : kProgressWait;
  auto written = statuses_.Write(*view.job, status, patience, stop);
  if (written) return written->deferred;
  if (written.error().code() == ErrorCode::kNotFound) return kube::Error(ErrorCode::kGone, "the TrialJob is deleted");
  return std::move(written).error();
}

Result<Action> TrialReconciler::Refused(const TrialView& view, kube::Error error, std::stop_token stop) {
  if (error.code() == ErrorCode::kGone) return Action::AwaitChange();  // The TrialJob is gone; its event will come.
  if (error.code() != ErrorCode::kForbidden) return error;
  log_.Warn("trials cannot be carried out",
            {{"trial_job", view.job->metadata.Key().ToString()}, {"error", error.message()}});
  api::TrialJobStatus status = view.job->status;
  status.eta = status.eta_latest = std::nullopt;
  SetStanding(status, view, status.phase, Standing::kStalled, ReasonOfForbidden(error), error.message());
  if (!WriteStatus(view, status, true, stop)) return error;
  return Action::After(kRefusedRetry);
}

}  // namespace grus
