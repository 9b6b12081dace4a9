// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_plan.h"

#include <algorithm>
#include <chrono>

#include "controllers/elastic/elastic_status.h"
#include "controllers/elastic/host_plan.h"
#include "controllers/elastic/job_deadline.h"
#include "controllers/frame/retry_times.h"
#include "controllers/policy/yield_words.h"

namespace grus {
namespace {

using std::chrono::seconds;

// Once the minimum is ready, the launcher waits for more workers until the last one has been ready for this long: each
// worker that joins later costs the training a reset.
constexpr kube::Duration kSettle = seconds(3);
constexpr kube::Duration kSecretCheck = seconds(20);
constexpr kube::Duration kShortLife = seconds(10);  // As the kubelet's first back-off of a container that ends at once.

// A deletion that failed, or never came: grus may have died right after it had noted the restart.
void DropLeftOvers(Plan& plan, const View& view) {
  for (const Worker& worker : view.pods) {
    if (worker.is_left_over && !worker.is_ending) plan.drop.insert(&worker);
  }
}

// Those of a lost node, too: it may come back, and they with it.
void DropAll(Plan& plan, const View& view) {
  for (const Worker& worker : view.pods) {
    if (worker.has_lost_node) plan.bury.push_back(worker.name);
    else if (!worker.is_leaving() || worker.has_ended || worker.is_left_over) plan.drop.insert(&worker);
  }
}

// A job that has ended only needs cleaning up. One that missed its deadline holds no GPUs, whatever is to be kept.
void PlanAfterEnd(Plan& plan, const View& view) {
  const api::RunPolicy& policy = view.job->spec.run_policy;
  const kube::Condition* failed = kube::FindCondition(plan.status.conditions, "Failed");
  const bool is_overdue = failed && failed->is_true() && failed->reason == ToString(Reason::kDeadlineExceeded);
  // A launcher that missed the deadline still runs.
  const bool must_stop_launcher =
      policy.clean_pod_policy == api::CleanPodPolicy::kAll || view.launcher == LauncherState::kActive;
  plan.wants_launcher = !must_stop_launcher && view.launcher != LauncherState::kAbsent;
  plan.restart_launcher = must_stop_launcher && view.launcher != LauncherState::kAbsent;
  if (policy.clean_pod_policy == api::CleanPodPolicy::kNone && !is_overdue) {
    plan.workers = WorkersState{view.alive(), view.workers.gang};
    plan.hosts = view.hosts;
  } else {
    DropAll(plan, view);
  }
  plan.status.replicas.granted = plan.workers ? plan.workers->granted : 0;
  CountWorkers(plan.status, view, plan.drop);
  if (policy.ttl_seconds_after_finished && plan.status.completion_time) {
    const kube::Duration left =
        seconds(*policy.ttl_seconds_after_finished) - (view.now.value - plan.status.completion_time->value);
    if (left <= kube::Duration::zero()) plan.delete_job = true;
    else LookAgain(plan.look_again, left);
  }
}

void End(Plan& plan, const View& view, Reason reason, const std::string& message) {
  SetEnd(plan.status, view, reason, message);
  const bool is_success = reason == Reason::kSucceeded;
  plan.events.push_back({is_success ? kube::EventType::kNormal : kube::EventType::kWarning,
                         std::string(ToString(reason)), "EndJob", message});
  PlanAfterEnd(plan, view);
}

// Decide when workers start, and keep the decision while there are any: members of a gang are alike.
Gang GangOf(const View& view, const WorkerPlan& planned) {
  if (planned.granted + planned.early == 0 || view.alive() > 0) return view.workers.gang;
  if (!view.makes_gangs) return Gang::kNone;
  // Once another controller lets them go, they must not take room out of turn.
  if (!view.foreign_gate.empty() && !IsUngated(*view.job)) return Gang::kGated;
  return view.must_protect_places ? Gang::kGated : Gang::kUngated;
}

void CountRestart(api::ElasticHorovodJobStatus& status) {
  if (!status.usage) status.usage.emplace();
  ++status.usage->restarts;
}

void PlanSuspended(Plan& plan, const View& view) {
  plan.workers = WorkersState{};
  DropAll(plan, view);
  CountWorkers(plan.status, view, plan.drop);
  plan.hosts = std::nullopt;
  plan.restart_launcher = view.launcher != LauncherState::kAbsent;
  plan.status.start_time.reset();
  plan.status.usage = UsageUntil(view, view.now, 0);
  if (view.has_workers()) CountRestart(plan.status);
  plan.status.last_scale.reset();
  if (view.job->status.phase != kPhaseSuspended) {
    plan.events.push_back({kube::EventType::kNormal, "Suspended", "SuspendJob",
                           "suspended by spec.runPolicy.suspend; workers and launcher are stopped"});
  }
}

// A worker that is bound but does not start may lack its key: somebody may have deleted the Secret.
void PlanSecretCheck(Plan& plan, const View& view) {
  for (const Worker& worker : view.pods) {
    if (!worker.is_bound || worker.is_ready || worker.is_ending || !worker.bound_since) continue;
    const kube::Duration left = kSecretCheck - Waited(view.now, *worker.bound_since);
    plan.check_secret |= left <= kube::Duration::zero();
    LookAgain(plan.look_again, left <= kube::Duration::zero() ? kSecretCheck : left);
  }
}

bool MayStartLauncher(Plan& plan, const View& view, const Sizes& sizes) {
  int ready = 0;
  std::optional<kube::Time> last_ready;
  for (const Worker& worker : view.pods) {
    if (!worker.is_usable() || plan.drop.contains(&worker)) continue;
    ++ready;
    if (worker.ready_since) last_ready = std::max(last_ready.value_or(*worker.ready_since), *worker.ready_since);
  }
  if (ready < std::min(sizes.NeededToStart(), plan.workers->granted)) return false;
  if (ready >= plan.workers->granted || !last_ready) return true;
  const kube::Duration left = kSettle - Waited(view.now, *last_ready);
  if (left <= kube::Duration::zero()) return true;
  LookAgain(plan.look_again, left);
  return false;
}

// The event for a worker that leaves the host list although it was to stay.
PlannedEvent LossOf(const View& view, const std::string& pod, std::size_t left) {
  const auto worker = std::find_if(view.pods.begin(), view.pods.end(), [&](const Worker& w) { return w.name == pod; });
  std::string why = "its pod is gone";
  bool is_leaving = false;
  const bool trains = std::any_of(view.launcher_pods.begin(), view.launcher_pods.end(),
                                  [](const LauncherPod& launcher) { return launcher.is_running; });
  if (worker != view.pods.end() && !worker->is_usable()) {
    is_leaving = worker->is_ending && worker->end.empty();
    if (worker->has_lost_node) why = "its node is gone";
    else if (!worker->end.empty()) why = worker->end;
    else if (is_leaving) why = "its pod is being deleted";
    else if (!worker->trouble.empty()) why = worker->trouble;
    else why = "its pod is not ready";
    if (!worker->node.empty() && !is_leaving) why += ", on node " + worker->node;
  } else if (worker != view.pods.end()) {
    why = "it was restarted and has another address";
  }
  return {is_leaving ? kube::EventType::kNormal : kube::EventType::kWarning, is_leaving ? "WorkerLeaves" : "WorkerLost",
          "UpdateHosts",
          "worker " + pod + (is_leaving ? " leaves the training: " : " was lost: ") + why + "; " +
              Count(static_cast<std::int64_t>(left), "worker") +
              (trains ? (left == 1 ? " goes on" : " go on") : " left")};
}

void PlanLauncher(Plan& plan, const View& view, const Sizes& sizes) {
  if (view.is_launcher_ending) return;  // Its name is free again when it is gone.
  if (view.is_launcher_left_over) {
    plan.restart_launcher = true;
    return;
  }
  if (view.launcher == LauncherState::kAbsent) {
    if (!MayStartLauncher(plan, view, sizes)) return;
    plan.hosts = FirstHosts(view, sizes, plan.drop);
    // Keep an equal list: a launcher that the API server refuses is planned again in each pass.
    if (view.hosts && view.hosts->hosts == plan.hosts->hosts && view.hosts->slots == plan.hosts->slots) {
      plan.hosts = view.hosts;
    }
    plan.wants_launcher = true;
    const int workers = static_cast<int>(plan.hosts->hosts.size());
    if (workers == sizes.wanted) return;  // The usual start needs no event.
    plan.events.push_back({kube::EventType::kNormal, "LauncherStarted", "StartLauncher",
                           "started the launcher with " + Count(workers, "worker") + " of the " +
                               std::to_string(sizes.wanted) + " that are wanted (minimum " + std::to_string(sizes.min) +
                               ")"});
    return;
  }
  plan.wants_launcher = true;
  if (!view.hosts) {
    plan.hosts = FirstHosts(view, sizes, plan.drop);  // Deleted by hand.
    return;
  }
  HostPlan hosts = PlanHosts(view, sizes, plan.drop);
  for (const std::string& pod : hosts.lost) plan.events.push_back(LossOf(view, pod, hosts.list.hosts.size()));
  plan.hosts = std::move(hosts.list);
  LookAgain(plan.look_again, hosts.look_again);
  for (const LauncherPod& pod : view.launcher_pods) {
    if (pod.is_running && !pod.is_ending && plan.hosts->revision > std::max<std::int64_t>(1, pod.hosts_revision)) {
      plan.push_hosts_to.push_back(&pod);
    }
  }
}

// The training may save its state before the job gives its workers back.
void PlanDeadline(Plan& plan, const View& view, const Sizes& sizes) {
  if (MustYieldAll(view, sizes)) plan.deadline = kube::ToText(DeadlineOf(*view.yield));
  for (const LauncherPod& pod : view.launcher_pods) {
    if (!pod.is_ending && pod.told_deadline != plan.deadline) plan.tell_deadline_to.push_back(&pod);
  }
}

// Keeps the workers that are to go until they have been off the host list for the shrink grace.
void KeepUntilDrained(Plan& plan, const View& view, const WorkerPlan& workers) {
  // A launcher trains on while its Job has lost the labels that we see it by.
  const bool may_train = view.launcher == LauncherState::kActive || view.has_stray_launcher;
  if (!workers.must_drain || !may_train) return;
  // A launcher whose list we do not see goes by the one that it had.
  const bool is_listed =
      !view.hosts || std::any_of(workers.drop.begin(), workers.drop.end(),
                                 [&](const Worker* worker) { return view.hosts->Has(worker->name); });
  const kube::Duration grace = seconds(view.job->spec.elastic.shrink_grace_seconds);
  const kube::Duration left = is_listed ? grace : grace - Waited(view.now, view.hosts->published);
  if (!is_listed && left <= kube::Duration::zero()) return;
  plan.workers->granted = view.granted();
  plan.drop.clear();
  LookAgain(plan.look_again, std::max<kube::Duration>(left, seconds(1)));
}

void NoteScale(Plan& plan, const View& view, const WorkerPlan& workers, const Sizes& sizes) {
  const int from = view.granted();
  const int to = plan.workers ? plan.workers->granted : 0;
  if (from == to) {
    // The status of the start was deferred or failed, or grus died before it wrote it: this one must report the start.
    const auto& last = plan.status.last_scale;
    if (to > 0 && (!last || last->to == 0))
      plan.status.last_scale = api::LastScale{0, to, std::string(ToString(ScaleReason::kStarted)), view.now};
    return;
  }
  plan.status.usage = UsageUntil(view, view.now, to);
  if (to == 0) CountRestart(plan.status);
  plan.status.last_scale = api::LastScale{from, to, std::string(ToString(workers.reason)), view.now};
  if (workers.reason == ScaleReason::kStarted && to == sizes.wanted) return;  // The usual start needs no event.
  const bool is_bad = workers.reason == ScaleReason::kUnschedulable || workers.reason == ScaleReason::kBelowMinimum ||
                      workers.reason == ScaleReason::kPodsBroken || workers.reason == ScaleReason::kPreempted;
  plan.events.push_back({is_bad ? kube::EventType::kWarning : kube::EventType::kNormal,
                         std::string(to > from ? "WorkersGrown" : "WorkersShrunk"), "ScaleWorkers",
                         ScaleMessage(view, sizes, from, to, workers.reason)});
}

// When a node is gone, the pod garbage collector ends its pods only after a minute or so, and until then neither the
// pods free what they hold nor the Job replaces its own.
void PlanBurials(Plan& plan, const View& view) {
  for (const Worker& worker : view.pods) {
    if (worker.has_lost_node) plan.bury.push_back(worker.name);
  }
  for (const LauncherPod& pod : view.launcher_pods) {
    if (pod.has_lost_node && (!pod.is_ending || pod.end.empty())) plan.bury.push_back(pod.name);
  }
}

// What a worker whose pod has ended leaves to do. The pod goes once the training has left it: until then the event of
// its loss needs how it ended. One that ends as soon as it starts is replaced only after a while.
void PlanReplacements(Plan& plan, const View& view, const WorkerPlan& workers) {
  bool may_make = view.may_make_workers;
  for (const Worker& worker : view.pods) {
    if (!worker.has_ended) continue;
    const kube::Duration left =
        worker.created ? kShortLife - Waited(view.now, *worker.created) : kube::Duration::zero();
    if (left > kube::Duration::zero()) {
      may_make = false;
      LookAgain(plan.look_again, left);
    } else if (!plan.hosts || !plan.hosts->Has(worker.name)) {
      plan.drop.insert(&worker);
    }
  }
  const int kept = view.alive() - static_cast<int>(workers.drop.size());
  if (may_make) plan.missing = std::max(0, std::max(workers.granted, workers.early) - kept);
}

void PlanRunning(Plan& plan, const View& view, const Sizes& sizes) {
  WorkerPlan workers = PlanWorkers(view, sizes);
  LookAgain(plan.look_again, workers.look_again);
  if (view.quota) LookAgain(plan.look_again, view.quota->look_again);
  LookAgain(plan.look_again, TimeUntilStatusChanges(view));
  if (workers.granted == 0) LookAgain(plan.look_again, view.queue_looks_again);
  LookAgain(plan.look_again, view.pods_look_again);
  plan.workers = WorkersState{workers.granted, GangOf(view, workers)};
  plan.early = workers.early;
  plan.drop = workers.drop;
  if (!plan.status.start_time) plan.status.start_time = view.now;
  PlanSecretCheck(plan, view);

  if (workers.is_waiting || sizes.wanted == 0) {
    plan.restart_launcher = view.launcher != LauncherState::kAbsent;
  } else {
    PlanLauncher(plan, view, sizes);
    PlanDeadline(plan, view, sizes);
    KeepUntilDrained(plan, view, workers);
  }
  CountWorkers(plan.status, view, plan.drop);
  PlanReplacements(plan, view, workers);
  DropLeftOvers(plan, view);
  NoteScale(plan, view, workers, sizes);
}

// Records one event when the job gets a reason that a user should hear of.
void PlanReasonEvent(Plan& plan, const View& view) {
  const kube::Condition* before = view.ready();
  const kube::Condition* after = kube::FindCondition(plan.status.conditions, "Ready");
  if (before && before->reason == after->reason) return;
  const std::optional<ReasonEvent> event = EventOf(after->reason);
  // A job that gave its workers back has said why it waits.
  if (!event || (event->type == kube::EventType::kNormal && !plan.events.empty())) return;
  plan.events.push_back({event->type, after->reason, event->action, after->message});
}

// Report the refusal before anything is made.
void PlanRefusal(Plan& plan, const View& view) {
  SetStalled(plan.status, view, Reason::kTemplateRefused, view.refusal);
  const kube::Condition* before = view.ready();
  if (before && before->message == view.refusal) return;
  plan.events.push_back(
      {kube::EventType::kWarning, std::string(ToString(Reason::kTemplateRefused)), "WriteChildren", view.refusal});
}

}  // namespace

bool IsOurs(const api::ElasticHorovodJob& job) {
  const std::string& manager = job.spec.run_policy.managed_by;
  return !job.metadata.is_being_deleted() && (manager.empty() || manager == "ai.centauruscloud.io/grus");
}

Plan PlanElasticJob(const View& view) {
  const api::ElasticHorovodJob& job = *view.job;
  Plan plan;
  const Sizes sizes = SizesOf(job.spec);
  plan.status = BaseStatus(view, sizes);

  if (HasEnded(job.status)) {
    PlanAfterEnd(plan, view);
    return plan;
  }
  if (view.launcher == LauncherState::kSucceeded) {
    End(plan, view, Reason::kSucceeded, "the launcher succeeded");
    return plan;
  }
  if (view.launcher == LauncherState::kFailed) {
    End(plan, view, Reason::kLauncherFailed, view.launcher_message);
    return plan;
  }
  if (job.spec.run_policy.suspend) {
    PlanSuspended(plan, view);
    SetRunningConditions(plan.status, view, plan, sizes);
    return plan;
  }
  if (const auto left = TimeUntilDeadline(view)) {
    if (*left <= kube::Duration::zero()) {
      End(plan, view, Reason::kDeadlineExceeded, DeadlineMessage(view));
      return plan;
    }
    if (view.has_workers() || job.spec.run_policy.active_deadline_seconds) LookAgain(plan.look_again, *left);
  }
  PlanBurials(plan, view);
  PlanRunning(plan, view, sizes);
  if (!view.refusal.empty()) {
    PlanRefusal(plan, view);
    return plan;
  }
  SetRunningConditions(plan.status, view, plan, sizes);
  PlanReasonEvent(plan, view);
  return plan;
}

api::ElasticHorovodJobStatus RefusedStatus(const View& view, Reason reason, const std::string& message) {
  api::ElasticHorovodJobStatus status = BaseStatus(view, SizesOf(view.job->spec));
  SetStalled(status, view, reason, message);
  return status;
}

}  // namespace grus
