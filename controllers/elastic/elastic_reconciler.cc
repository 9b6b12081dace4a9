// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_reconciler.h"

#include <algorithm>

#include "clientlib/runtime/ownership.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_news.h"
#include "controllers/elastic/elastic_status.h"
#include "controllers/frame/look_for.h"
#include "controllers/frame/refusals.h"
#include "controllers/frame/retry_times.h"
#include "controllers/policy/workload_fingerprint.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Action;
using kube::Error;
using kube::ErrorCode;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

// Nodes that pods are bound to, for one pass. The cache of nodes may be older than that of pods: ask before a worker
// that might run is replaced, or deleted by force.
class KnownNodes {
 public:
  KnownNodes(kube::Client& client, const ClusterAccount& account, std::stop_token stop)
      : client_(client), account_(account), stop_(std::move(stop)) {}
  // Empty: the pod has none yet.
  Result<bool> Has(const std::string& name) {
    if (name.empty() || account_.HasNode(name)) return true;
    const auto known = asked_.find(name);
    if (known != asked_.end()) return known->second;
    // A list, for which grus has the right anyway.
    const kube::ListOptions options{.field_selector = "metadata.name=" + name};
    const auto live = client_.List(KindOf<kube::Node>(), "", options, stop_);
    if (!live) return kube::Error(live.error()).with("look for Node " + name);
    return asked_[name] = !live->items.empty();
  }

 private:
  kube::Client& client_;
  const ClusterAccount& account_;
  std::stop_token stop_;
  std::map<std::string, bool> asked_;
};

// What a user must hear of a failed write, because a retry alone cannot help; nullopt: it may.
std::optional<Reason> ReasonOf(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kAlreadyExists: return Reason::kNameTaken;
    case ErrorCode::kInvalid:
    case ErrorCode::kInvalidArgument: return Reason::kTemplateRefused;
    case ErrorCode::kForbidden: return IsNotPermitted(error) ? Reason::kNotPermitted : Reason::kTemplateRefused;
    default: return std::nullopt;
  }
}

int ResizesOf(const api::ElasticHorovodJobStatus& status) { return status.usage ? status.usage->resizes : 0; }

// After a refusal, what is timed goes on, but no pass follows another without a pause.
constexpr kube::Duration kSoonest = std::chrono::seconds(1);

}  // namespace

ElasticReconciler::ElasticReconciler(kube::Client& client, ElasticCaches caches, ClusterAccount& account,
                                     kube::EventRecorder& events, const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      caches_(caches),
      account_(account),
      events_(events),
      clock_(clock),
      log_(log),
      pods_by_job_(caches.pods.AddIndex(JobKeysOf)),
      // The echo of an own write deserves a pass soon: the API server may have stored something else than we sent.
      feed_(writes_, kMinorChangeWait, News::kSoon),
      statuses_(client, &writes_, clock),
      planning_(client, caches, account, feed_, clock),
      missing_pods_(client, clock),
      training_output_(client, clock),
      children_(client, caches),
      adoption_(caches.pods) {
  if (caches_.profiles == nullptr) return;
  const ProfileTrust trust = caches_.trust;
  jobs_by_profile_ = caches_.jobs.AddIndex([trust](const kube::Object& job) -> std::vector<std::string> {
    const auto name = ProfileNameOf(static_cast<const ElasticHorovodJob&>(job), trust);
    return name ? std::vector<std::string>{*name} : std::vector<std::string>{};
  });
}

void ElasticReconciler::FeedQueue(kube::WorkQueue& queue) {
  feed_.Open(queue);
  caches_.jobs.AddHandler([this](const kube::Change& change, bool) {
    const bool is_new = !change.before;  // Changes of jobs that run go first.
    const News news = NewsOfJob(static_cast<const ElasticHorovodJob*>(change.before.get()),
                                static_cast<const ElasticHorovodJob*>(change.after.get()));
    feed_.AddChanged(change.Any().metadata.Key(), KindOf<ElasticHorovodJob>(), change, news, is_new);
  });
  account_.OnStanding([this](const std::string& owner, bool is_urgent) {
    const auto key = GroupOfGang(KindOf<api::PodGroup>(), owner);
    if (key && caches_.jobs.store().Get(*key)) feed_.Add(*key, is_urgent ? News::kNow : News::kSoon);
  });
  account_.OnYield([this](const std::string& owner) {
    const auto key = GroupOfGang(KindOf<api::PodGroup>(), owner);
    if (key && caches_.jobs.store().Get(*key)) feed_.Add(*key);
  });
  if (caches_.profiles != nullptr) {
    caches_.profiles->AddHandler([this](const kube::Change& change, bool) {
      for (const auto& job : caches_.jobs.ByIndex<ElasticHorovodJob>(jobs_by_profile_, change.Any().metadata.name)) {
        feed_.Add(job->metadata.Key(), News::kNow, true);
      }
    });
  }
  for (kube::Informer* children : {&caches_.services, &caches_.config_maps, &caches_.launchers, caches_.groups}) {
    if (children == nullptr) continue;
    children->AddHandler([this, &kind = children->kind()](const kube::Change& change, bool is_initial) {
      if (change.before && change.after && LooksSameToPlan(kind, *change.before, *change.after)) return;
      for (const ObjectKey& key : kube::ControllerKeys(KindOf<ElasticHorovodJob>(), change)) {
        feed_.AddChanged(key, kind, change, News::kNow, is_initial);
      }
    });
  }
  caches_.pods.AddHandler([this](const kube::Change& change, bool is_initial) {
    const std::optional<ObjectKey> key = JobOf(change.Any().metadata);
    const std::optional<ObjectKey> old_key = change.before ? JobOf(change.before->metadata) : key;
    if (old_key && old_key != key) feed_.Add(*old_key);  // Somebody took our label off.
    if (!key) return;
    News news = NewsOfJobPod(static_cast<const kube::Pod*>(change.before.get()),
                             static_cast<const kube::Pod*>(change.after.get()));
    if (news == News::kSoon && planning_.IsHungry(*key)) news = News::kNow;
    feed_.Add(*key, news, is_initial);
  });
  caches_.nodes.AddHandler([this](const kube::Change& change, bool) {
    if (change.after) return;
    // A node is gone: look at all jobs, since only a pass finds out whether it lost workers.
    for (const auto& job : caches_.jobs.List<ElasticHorovodJob>()) feed_.Add(job->metadata.Key());
  });
}

Result<View> ElasticReconciler::Observe(const Job& job, const Children& children, std::stop_token stop) {
  View view;
  view.job = job;
  view.now = kube::Time{clock_.WallNow()};
  if (children.hosts) view.hosts = ReadHostList(*children.hosts);
  if (Status read = ReadProfile(view, stop); !read) return std::move(read).error();
  if (Status read = ReadPods(children, view, std::move(stop)); !read) return std::move(read).error();
  view.had_launcher = kept_.With(
      job->metadata, [&](Kept& kept) { return kept.had_launcher = kept.had_launcher || children.launcher != nullptr; });
  if (children.launcher) {
    const kube::JobStatus& status = children.launcher->status;
    view.is_launcher_ending = children.launcher->metadata.is_being_deleted();
    view.is_launcher_left_over = IsLeftOver(children.launcher->metadata, *job);
    view.launcher = status.is_complete() ? LauncherState::kSucceeded
                    : status.is_failed() ? LauncherState::kFailed
                                         : LauncherState::kActive;
    if (status.is_failed()) {
      const auto* failed = kube::FindCondition(status.conditions, "Failed");
      view.launcher_message = "the launcher failed: " + std::string(failed->message);
      const auto& pods = view.launcher_pods;
      const auto last = std::find_if(pods.begin(), pods.end(), [](const LauncherPod& pod) { return !pod.end.empty(); });
      if (last != pods.end()) view.launcher_message += "; last pod " + last->name + ": " + last->end;
    }
  }
  return view;
}

Status ElasticReconciler::ReadProfile(View& view, std::stop_token stop) {
  if (caches_.profiles == nullptr) return {};
  const ElasticHorovodJob& job = *view.job;
  const bool is_named = NamesItsProfile(job);
  if (!is_named && caches_.profiles->store().size() == 0) return {};  // Saves the fingerprint.
  const auto name = ProfileNameOf(job, caches_.trust);
  if (!name) return {};
  view.measured = caches_.profiles->Get<api::WorkloadProfile>({"", *name});
  if (is_named && !view.measured) {
    auto ahead = kept_.Get(job.metadata).profile_ahead;
    if (!ahead) {
      auto live = LookFor<api::WorkloadProfile>(client_, {"", *name}, std::move(stop));
      if (!live) return std::move(live).error();
      ahead = *std::move(live);
      kept_.With(job.metadata, [&](Kept& kept) { kept.profile_ahead = ahead; });
    }
    view.measured = *std::move(ahead);
  } else if (is_named) {
    kept_.With(job.metadata, [](Kept& kept) { kept.profile_ahead = nullptr; });
  }
  if (view.measured && !IsFor(*view.measured, job.metadata.ns)) view.measured = nullptr;
  if (view.measured) view.profile = JobProfileOf(*view.measured, job);
  return {};
}

Status ElasticReconciler::ReadPods(const Children& children, View& view, std::stop_token stop) {
  const std::string workers_name = WorkersName(*view.job);
  KnownNodes nodes(client_, account_, std::move(stop));
  const auto pods = caches_.pods.ByIndex<kube::Pod>(pods_by_job_, view.job->metadata.Key().ToString());
  account_.CatchUpWith(pods);
  for (const auto& pod : pods) {
    const bool is_of_launcher = IsControlledBy(*pod, children.launcher.get());
    if (pod->metadata.Label(kRoleLabel) == "launcher" && pod->metadata.Label(kManagedByLabel) == kManagedBy &&
        !HasEnded(*pod) && !is_of_launcher) {
      view.has_stray_launcher = true;
    }
    const auto ordinal = OrdinalOf(pod->metadata.name, workers_name);
    const bool is_worker = ordinal && IsControlledBy(*pod, view.job.get());
    if (!is_worker && !is_of_launcher) continue;
    const Result<bool> has_node = nodes.Has(std::string(pod->spec.node_name.view()));
    if (!has_node) return has_node.error();
    if (is_worker) {
      view.pods.push_back(ReadWorker(*pod, *ordinal, *has_node));
      view.pods.back().is_left_over = IsLeftOver(pod->metadata, *view.job);
      view.fills_pod_security |= view.pods.back().has_filled_security;
    } else {
      view.launcher_pods.push_back(ReadLauncherPod(*pod, *has_node));
    }
  }
  std::sort(view.pods.begin(), view.pods.end(), [](const Worker& a, const Worker& b) { return a.ordinal < b.ordinal; });
  children_.MarkDropped(view);
  NoteGatesOfOthers(view);
  view.workers = ReadWorkersState(view);
  return {};
}

void ElasticReconciler::NoteGatesOfOthers(View& view) {
  kept_.With(view.job->metadata, [&](Kept& kept) {
    std::map<std::string, std::optional<kube::Time>> seen;
    for (Worker& worker : view.pods) {
      if (!worker.foreign_gate.empty()) {
        seen[worker.uid] = std::nullopt;
      } else if (const auto before = kept.gated_by_others.find(worker.uid); before != kept.gated_by_others.end()) {
        const kube::Time since = before->second.value_or(view.now);
        seen[worker.uid] = since;
        for (auto* time : {&worker.asked_since, &worker.unschedulable_since}) {
          if (*time) *time = std::max(**time, since);
        }
      }
    }
    kept.gated_by_others = std::move(seen);
  });
}

void ElasticReconciler::Forget(const ObjectKey& key) {
  writes_.Forget(key);
  statuses_.Forget(key);
  planning_.Forget(key);
  missing_pods_.Forget(key);
  training_output_.Forget(key);
  children_.Forget(key);
  kept_.Forget(key);
}

Result<Action> ElasticReconciler::Reconcile(const ObjectKey& key, std::stop_token stop) {
  const Job job = caches_.jobs.Get<ElasticHorovodJob>(key);
  if (!job || !IsOurs(*job)) {
    Forget(key);  // If it was deleted, the garbage collector takes the children with it.
    return Action::AwaitChange();
  }
  if (kept_.Get(job->metadata).is_namespace_ending) return Action::AwaitChange();
  if (!writes_.HasCaughtUp(job->metadata, {&caches_.jobs, &caches_.services, &caches_.config_maps, &caches_.launchers,
                                           &caches_.pods, caches_.groups})) {
    return Action::After(kCacheLag);
  }

  const Children children = children_.Find(*job);
  ChildWriter writer = children_.WriterFor(*job, writes_, stop);
  const Result<bool> is_taking_back = adoption_.TakeBack(*job, children.group != nullptr, {clock_.WallNow()}, writer);
  if (!is_taking_back) return is_taking_back.error();
  if (*is_taking_back) return Action::After(kCacheLag);
  Result<View> observed = Observe(job, children, stop);
  if (!observed) return std::move(observed).error();
  View& view = *observed;
  const auto missing = missing_pods_.Explain(view, children.launcher.get(), stop);
  const auto silence = training_output_.Look(view, stop);
  view.failed_tries = kept_.Get(job->metadata).failed_tries;
  const Plan plan = planning_.MakePlan(view, stop);
  if (plan.delete_job) {
    Status deleted = client_.Delete(KindOf<ElasticHorovodJob>(), key, {.uid = job->metadata.uid}, stop);
    if (deleted) return Action::AwaitChange();
    return std::move(deleted).error().with("delete ElasticHorovodJob " + key.ToString());
  }

  const Result<std::optional<kube::Duration>> again = Execute({view, plan, children, writer, stop});
  if (!again) {
    Result<Action> refused = Refused(view, plan, again.error(), stop);
    if (!refused || !refused->delay() || !plan.look_again) return refused;
    return Action::After(std::min(*refused->delay(), std::max<kube::Duration>(*plan.look_again, kSoonest)));
  }
  Tell(plan.events, events_, log_, KindOf<ElasticHorovodJob>(), job->metadata, "job");
  return Action::After(std::min({plan.look_again.value_or(kSafetyResync), again->value_or(kSafetyResync),
                                 missing.value_or(kSafetyResync), silence.value_or(kSafetyResync), kSafetyResync}));
}

Result<std::optional<kube::Duration>> ElasticReconciler::Execute(const JobPass& pass) {
  std::optional<kube::Duration> look_again;
  bool are_all_made = true;
  const auto write_status = [&]() -> Status {
    // Workers that could not be made are owed: only the status says so.
    const kube::Duration patience =
        are_all_made ? PatienceFor(pass.view.job->status, pass.plan.status) : kube::Duration::zero();
    Result<Deferred> written = WriteStatus(pass.view, pass.plan.status, patience, pass.stop);
    if (!written) return std::move(written).error();
    NoteTry(pass.view, pass.plan);
    const api::ElasticHorovodJob& job = *pass.view.job;
    if (!*written && ResizesOf(pass.plan.status) > ResizesOf(job.status)) {
      account_.NoteResize(job.metadata.Key().ToString(), pass.view.granted(), pass.plan.workers->granted);
    }
    LookAgain(look_again, *written);
    return {};
  };
  if (Status done = children_.WriteWorkers(pass); !done) return std::move(done).error();
  Status made = children_.MakeWorkers(pass);
  are_all_made = made.ok();
  if (!made && (made.error().code() == ErrorCode::kGone || IsOfEndingNamespace(made.error()))) {
    return std::move(made).error();
  }
  if (pass.plan.missing > 0 && (made || IsByAdmission(made.error()))) {
    const std::optional<Error> refusal = made ? std::nullopt : std::optional(std::move(made).error());
    LookAgain(look_again, missing_pods_.NoteCreates(pass.view, refusal));
    made = {};
  }
  // The rest does not wait for pods that cannot be made: Horovod must hear at once of workers that it has lost. Write
  // the status before the launcher's objects, on which it does not depend: users wait for it. But after a refusal write
  // it last: otherwise each pass would first clear the refusal, and then be refused again.
  const bool is_stalled = kube::IsConditionTrue(pass.view.job->status.conditions, "Stalled");
  const bool is_status_first = !is_stalled || !pass.plan.drop.empty();
  // Workers that will never be made were not granted: Refused() says why.
  const bool will_be_made = made || !ReasonOf(made.error());
  const bool is_granted = will_be_made || pass.plan.workers->granted <= pass.view.granted();
  if (is_status_first && is_granted) {
    Status written = write_status();
    if (!written) return kube::FirstFailure(std::move(written), std::move(made)).error();
  }
  Status dropped = children_.DropWorkers(pass);
  Status done = kube::FirstFailure(children_.WriteLauncher(pass), std::move(dropped));
  done = kube::FirstFailure(std::move(done), std::move(made));
  if (!done) return std::move(done).error();
  if (!is_status_first) {
    if (Status written = write_status(); !written) return std::move(written).error();
  }
  return look_again;
}

void ElasticReconciler::NoteTry(const View& view, const Plan& plan) {
  const bool has_failed = IsFailedTry(view.job->status.last_scale, plan.status.last_scale);
  if (has_failed) planning_.LearnPods(view);
  if (!has_failed && (view.failed_tries == 0 || !DidLastTrySucceed(view))) return;
  kept_.With(view.job->metadata, [&](Kept& kept) { kept.failed_tries = has_failed ? view.failed_tries + 1 : 0; });
}

Result<Action> ElasticReconciler::Refused(const View& view, const Plan& plan, Error error, std::stop_token stop) {
  if (error.code() == ErrorCode::kGone) return Action::AwaitChange();  // The job is gone; our cache will hear of it.
  if (IsOfEndingNamespace(error)) {
    // The namespace takes the job with it: there is nothing to repair, and nothing to tell the user.
    planning_.ReleaseUnmade(view);
    kept_.With(view.job->metadata, [](Kept& kept) { kept.is_namespace_ending = true; });
    return Action::AwaitChange();
  }
  const std::string message = RefusalText(error, *view.job);
  const std::optional<Reason> reason = ReasonOf(error);
  if (!reason) return error;
  planning_.ReleaseUnmade(view);
  log_.Warn("job cannot be carried out", {{"job", view.job->metadata.Key().ToString()}, {"error", message}});
  // A failure of the clean-up must not overwrite how the job ended.
  if (HasEnded(plan.status)) return Action::After(kRefusedAgainRetry);
  const api::ElasticHorovodJobStatus status = RefusedStatus(view, *reason, message);
  const bool is_new = !(status == view.job->status);
  Result<Deferred> written = WriteStatus(view, status, PatienceFor(view.job->status, status), stop);
  if (!written) return std::move(written).error();
  if (*written) return Action::After(std::min(**written, kRefusedRetry));
  if (is_new) {
    events_.Record(kube::EventType::kWarning, KindOf<ElasticHorovodJob>(), view.job->metadata, ToString(*reason),
                   "WriteChildren", message);
  }
  const bool costs_little = *reason == Reason::kNameTaken || error.code() == ErrorCode::kForbidden;
  return Action::After(is_new || costs_little ? kRefusedRetry : kRefusedAgainRetry);
}

Result<Deferred> ElasticReconciler::WriteStatus(const View& view, const api::ElasticHorovodJobStatus& status,
                                                kube::Duration patience, std::stop_token stop) {
  auto written = statuses_.Write(*view.job, status, patience, stop);
  if (written) return written->deferred;
  if (written.error().code() == ErrorCode::kNotFound) return Deferred();  // Deleted meanwhile.
  return std::move(written).error();
}

}  // namespace grus
