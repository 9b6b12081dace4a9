// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_reconciler.h"

#include <algorithm>

#include "clientlib/model/core_v1.h"
#include "clientlib/runtime/ownership.h"
#include "controllers/cluster/owners.h"
#include "controllers/frame/retry_times.h"
#include "controllers/measure/user_patterns.h"
#include "controllers/policy/resources.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_space.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using api::TrialJob;
using kube::Action;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

constexpr kube::Duration kPodWait = std::chrono::milliseconds(200);  // Pods of a trial change together.
// With a pass every kPoll, at most half a minute passes from the first output to a message about it.
constexpr kube::Duration kPatience = std::chrono::seconds(30) - kPoll;

bool IsDone(const api::TrialJob& job) {
  return job.status.completion_time && job.status.observed_generation == job.metadata.generation;
}

std::vector<SpeedPattern> PatternsOf(const api::TrialMeasure& measure) {
  std::vector<SpeedPattern> patterns;
  for (const api::LogPattern& pattern : measure.patterns) {
    Measure kind = Measure::kStep;
    switch (pattern.kind) {
      case api::SpeedKind::kStep: kind = Measure::kStep; break;
      case api::SpeedKind::kSamplesPerSecond: kind = Measure::kSamplesPerSecond; break;
      case api::SpeedKind::kStepSeconds: kind = Measure::kStepSeconds; break;
      case api::SpeedKind::kEpoch: kind = Measure::kEpoch; break;
    }
    patterns.push_back({pattern.name, pattern.regex, kind});
  }
  // The lines that AddLine() gets.
  if (measure.source != api::MeasureSource::kLogs) {
    patterns = {{"step", R"(^step (.*)$)", Measure::kStep},
                {"samples", R"(^samples per second (.*)$)", Measure::kSamplesPerSecond},
                {"seconds", R"(^seconds of a step (.*)$)", Measure::kStepSeconds},
                {"epoch", R"(^epoch (.*)$)", Measure::kEpoch}};
  }
  return patterns;
}

const kube::Quantity* GpusOf(const kube::Node& node) {
  return kube::FindResource(node.status.allocatable, kGpuResource);
}

bool HasLabels(const kube::ObjectMeta& metadata, const std::map<std::string, std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(),
                     [&](const auto& label) { return metadata.Label(label.first) == label.second; });
}

}  // namespace

TrialReconciler::TrialReconciler(kube::Client& client, TrialCaches caches, const ClusterAccount& account,
                                 ProfileStore& profiles, Prometheus& prometheus, kube::EventRecorder& events,
                                 const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      caches_(caches),
      account_(account),
      events_(events),
      clock_(clock),
      log_(log),
      profiles_(profiles),
      prometheus_(prometheus),
      job_trials_(caches.jobs, caches.pods, caches.nodes),
      pod_trials_(caches.pods, caches.nodes, caches.groups),
      trial_jobs_by_workload_(caches.trial_jobs.AddIndex([](const kube::Object& object) -> std::vector<std::string> {
        const auto& workload = static_cast<const TrialJob&>(object).spec.workload;
        if (!workload.job_ref) return {};
        return {ObjectKey{object.metadata.ns, workload.job_ref->name}.ToString()};
      })),
      feed_(writes_, kPodWait),
      statuses_(client, &writes_, clock),
      measurements_(client, clock, [this](const ObjectKey& key) { feed_.Add(key); }) {}

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
    NoteGone(change);
    for (const ObjectKey& key : kube::ControllerKeys(KindOf<TrialJob>(), change)) feed_.Add(key, News::kSoon);
    const std::optional<ObjectKey> job = JobOf(change.Any().metadata);
    const std::optional<ObjectKey> key = job ? TrialJobOf(*job) : std::nullopt;
    if (key) feed_.Add(*key, News::kSoon);
  });
}

std::optional<ObjectKey> TrialReconciler::TrialJobOf(const ObjectKey& trial) const {
  std::lock_guard lock(mutex_);
  const auto found = trial_jobs_.find(trial);
  return found != trial_jobs_.end() ? std::optional(ObjectKey{trial.ns, found->second}) : std::nullopt;
}

bool TrialReconciler::HasCaughtUp(const TrialJob& job) {
  return writes_.HasCaughtUp(job.metadata, {&caches_.trial_jobs, &caches_.jobs, &caches_.pods, caches_.groups});
}

const TrialObjects& TrialReconciler::ObjectsOf(const TrialJob& job) const {
  if (job.spec.workload.pod_template.is_null()) return job_trials_;
  return pod_trials_;
}

std::map<std::string, TypeNodes> TrialReconciler::NodesFor(const TrialJob& job, const Workload& workload) const {
  const int per_worker = std::max(1, workload.gpus_per_worker);
  std::vector<std::string> types;
  for (const api::GpuType& type : job.spec.space.gpu_types) types.push_back(type.name);
  if (types.empty()) types.emplace_back();
  std::map<std::string, TypeNodes> found;
  std::map<std::string, std::set<std::string>> products;
  const auto nodes = caches_.nodes.List<kube::Node>();
  for (const std::string& type : types) {
    std::map<std::string, std::string> labels = workload.node_selector;
    for (const auto& [key, value] : NodesOf(job.spec.space, type)) labels[key] = value;
    TypeNodes& all = found[type];
    for (const auto& node : nodes) {
      const kube::Quantity* gpus = GpusOf(*node);
      if (gpus == nullptr || !HasLabels(node->metadata, labels)) continue;
      products[type].emplace(node->metadata.Label(kGpuProductLabel));
      const int count = static_cast<int>(std::min<std::int64_t>(gpus->Value(), 1 << 20));
      all.gpus_per_node = std::max(all.gpus_per_node, count);
      const int most = count / per_worker * per_worker;
      all.most_gpus = workload.is_on_one_node ? std::max(all.most_gpus, most) : all.most_gpus + most;
    }
    if (products[type].size() == 1) all.product = *products[type].begin();
  }
  return found;
}

bool TrialReconciler::DoOthersWait() const {
  return account_.IsAnyoneWaiting([this](const std::string& gang) {
    const auto key = GroupOfGang(KindOf<api::PodGroup>(), gang);  // It has the name of its job, or of the trial's pod.
    return !key || (!job_trials_.IsTrial(*key) && !pod_trials_.IsTrial(*key));
  });
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
    view.identity = IdentityOfPod(given.pod_template, job.metadata.annotations);
  } else if (given.job_template) {
    view.workload = JobWorkload(given.job_template->spec);
    view.identity = IdentityOf(given.job_template->spec, job.metadata.annotations);
  } else if (const auto source = caches_.jobs.Get<ElasticHorovodJob>({job.metadata.ns, given.job_ref->name})) {
    view.workload = JobWorkload(source->spec);
    view.identity = IdentityOf(source->spec, source->metadata.annotations);
  }
}

std::vector<KnownTrial> TrialReconciler::KnownFor(const TrialView& view) const {
  const api::TrialJobSpec& spec = view.job->spec;
  const KnownSpeeds found =
      profiles_.Find(view.identity.fingerprint, std::chrono::seconds(spec.cache.max_age_seconds), view.now);
  std::map<std::string, std::string> names;  // Of GPU types here, by what others call them.
  for (const api::GpuType& type : spec.space.gpu_types) names.emplace(view.ProductOf(type.name), type.name);
  std::map<api::TrialConfig, const api::ProfilePoint*> newest;
  for (const auto& [config, point] : found.points) {
    if (config.nodes != 0) continue;  // The number of nodes of a future trial is not known.
    api::TrialConfig here = config;
    if (const auto name = names.find(config.gpu_type); name != names.end()) here.gpu_type = name->second;
    const api::ProfilePoint*& known = newest[here];
    if (known == nullptr || known->time < point.time) known = &point;
  }
  std::vector<KnownTrial> known;
  for (auto& [config, point] : newest) {
    api::TrialConfig here = config;
    here.nodes = point->config.nodes;
    known.push_back({std::move(here), point->measured, found.unit, point->gpu_seconds});
  }
  return known;
}

TrialView TrialReconciler::Observe(const Job& job, std::stop_token stop) {
  TrialView view;
  view.job = job;
  view.now = kube::Time{clock_.WallNow()};
  ReadWorkload(view);
  // No more trials are started, and the curve stays.
  if (view.workload && !IsDone(*job)) view.nodes = NodesFor(*job, *view.workload);
  if (view.workload && job->spec.cache.policy == api::CachePolicy::kUse) view.known = KnownFor(view);
  if (job->spec.idle_only) view.others_wait = DoOthersWait();

  std::set<std::string> names;
  for (const api::Trial& trial : job->status.trials) names.insert(trial.name);
  for (std::string& name : ObjectsOf(*job).NamesOf(*job)) names.insert(std::move(name));
  view.pattern_error = spec_memory_.With(job->metadata, [&](SpecMemory& kept) {
    if (!kept.pattern_error) {
      const auto patterns = UserPatterns::Make(PatternsOf(job->spec.measure));
      kept.pattern_error = patterns ? "" : patterns.error().message();
    }
    return *kept.pattern_error;
  });
  {
    std::lock_guard lock(mutex_);
    for (const std::string& name : names) trial_jobs_[{job->metadata.ns, name}] = job->metadata.name;
  }
  memory_.With(job->metadata, [&](Memory& kept) {
    for (const std::string& name : names) view.runs[name] = RunOf(*job, name, kept);
  });
  LookAtDoubtful(view, stop);
  if (job->spec.measure.source == api::MeasureSource::kPush) {
    for (const auto& [name, run] : view.runs) ReadPushed(*job, name, run);
  }
  if (job->spec.measure.source == api::MeasureSource::kPrometheus) AskPrometheus(view, std::move(stop));
  if (job->spec.measure.source == api::MeasureSource::kLogs) {
    for (auto& [name, run] : view.runs) {
      run.is_log_awaited = run.pods.launcher_started && measurements_.IsLogAwaited(job->metadata.Key(), name);
    }
  }
  for (auto& [name, seen] : measurements_.Look(job->metadata.Key())) {
    if (const auto run = view.runs.find(name); run != view.runs.end()) run->second.speed = std::move(seen);
  }
  return view;
}

std::vector<MeasureTarget> TrialReconciler::TargetsOf(const TrialView& view, const TrialPlan& plan) const {
  std::vector<MeasureTarget> targets;
  const api::TrialMeasure& measure = view.job->spec.measure;
  for (const std::string& name : plan.measure) {
    const TrialPods& pods = view.runs.at(name).pods;
    if (!pods.launcher_started) continue;
    MeasureTarget target;
    target.trial = name;
    target.pod = {view.job->metadata.ns, pods.launcher};
    target.pod_uid = pods.launcher_uid;
    target.container = pods.launcher_container;
    target.follows_log = measure.source == api::MeasureSource::kLogs;
    target.options.patterns = PatternsOf(measure);
    target.options.started = pods.launcher_started->value;
    target.options.precision = measure.precision_percent / 100.0;
    target.options.slice = std::chrono::hours(24 * 365);  // The slice is the plan's, from the first bound pod on.
    target.options.patience = kPatience;
    target.options.warm_up = std::chrono::seconds(measure.warmup_seconds.value_or(0));
    targets.push_back(std::move(target));
  }
  return targets;
}

void TrialReconciler::Forget(const ObjectKey& key) {
  writes_.Forget(key);
  statuses_.Forget(key);
  measurements_.Measure(key, {});
  memory_.Forget(key);
  spec_memory_.Forget(key);
  std::lock_guard lock(mutex_);
  std::erase_if(trial_jobs_, [&](const auto& entry) { return entry.first.ns == key.ns && entry.second == key.name; });
}

Result<Action> TrialReconciler::Reconcile(const ObjectKey& key, std::stop_token stop) {
  const Job job = caches_.trial_jobs.Get<TrialJob>(key);
  if (!job) {
    Forget(key);
    return Action::AwaitChange();
  }
  if (!HasCaughtUp(*job)) return Action::After(kCacheLag);
  const TrialView view = Observe(job, stop);
  const TrialPlan plan = PlanTrials(view);
  if (plan.is_ignored) {
    measurements_.Measure(key, {});
    return Action::AwaitChange();
  }
  std::optional<kube::Duration> deferred;
  if (Status done = Execute(view, plan, deferred, stop); !done) return Refused(view, std::move(done).error(), stop);
  measurements_.Measure(key, TargetsOf(view, plan));
  Tell(plan.events, events_, log_, KindOf<TrialJob>(), job->metadata, "trial_job");
  return Action::After(
      std::min({plan.look_again.value_or(kSafetyResync), deferred.value_or(kSafetyResync), kSafetyResync}));
}

}  // namespace grus
