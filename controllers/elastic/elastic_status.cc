// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_status.h"

#include <algorithm>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/job_deadline.h"
#include "controllers/elastic/scripts.h"
#include "controllers/frame/kstatus.h"
#include "controllers/frame/retry_times.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/pod_trouble.h"
#include "controllers/policy/worker_devices.h"
#include "controllers/policy/yield_words.h"

namespace grus {
namespace {

using Status = api::ElasticHorovodJobStatus;

Kstatus ConditionsOf(Status& status, const View& view) {
  return Kstatus(status.conditions, view.job->metadata.generation, view.now);
}

void Say(Status& status, const View& view, Standing standing, Reason reason, const std::string& message) {
  ConditionsOf(status, view).Say(standing, ToString(reason), message);
}

// " (8 GPUs)"; empty: workers need none.
std::string Gpus(const View& view, int workers) {
  const WorkerDevices devices = DevicesOf(view.job->spec.workers);
  const int count = workers * devices.count;
  if (count <= 0) return {};
  if (IsGpuPart(devices.resource)) return " (" + std::to_string(workers * devices.milli) + " thousandths of GPUs)";
  const bool are_gpus = devices.resource == kGpuResource;
  return " (" + (are_gpus ? Count(count, "GPU") : std::to_string(count) + " " + devices.resource) + ")";
}

// "gives 4 workers (8 GPUs) to team-b/bert, whose queue is below its guarantee"; empty: there is no notice.
std::string YieldMessage(const View& view, std::string_view verb, int workers) {
  if (!view.yield) return {};
  return YieldText(verb, Count(workers, "worker") + Gpus(view, workers), *view.yield);
}

std::string WaitingMessage(const View& view, const Sizes& sizes, const std::optional<api::LastScale>& last) {
  if (view.has_unknown_pods) {
    return "waiting for the API server to say what the workers and the launcher will need" +
           (view.pod_refusal.empty() ? std::string() : ": " + view.pod_refusal);
  }
  if (view.yield) {
    return YieldText("gives", "the GPUs of its workers", *view.yield) +
           "; when these are free, it waits for room again";
  }
  if (view.launcher_lacks == LauncherLacks::kAnyNode) {
    return "cannot fit: no node can hold the launcher; check its resources, node selector and tolerations";
  }
  std::string text = (view.can_never_fit ? "cannot fit: " : "waiting for room for ") +
                     Count(sizes.NeededToStart(), "worker") + Gpus(view, sizes.NeededToStart()) + " and the launcher";
  if (view.launcher_lacks == LauncherLacks::kRoom)
    text += ": the workers fit, but the launcher does not fit beside them";
  if (!view.why_no_room.empty()) text += "; " + view.why_no_room;
  if (!view.pod_changes.empty()) text += "; as the API server makes it, a worker asks for " + view.pod_changes;
  if (!view.pod_refusal.empty()) text += "; the API server would refuse them now: " + view.pod_refusal;
  if (const auto next = NextStart(view, last)) {
    text += "; the last start failed; the next one is at " + kube::ToText(*next);
  }
  return text;
}

std::string QuotaName(const View& view) {
  const QuotaLimit& limit = *view.quota;
  const std::string of_namespace = " of namespace " + view.job->metadata.ns;
  return limit.quota.empty() ? "a quota" + of_namespace : "quota \"" + limit.quota + "\"" + of_namespace;
}

// Why quotas do not admit the minimum.
std::string QuotaMessage(const View& view, const Sizes& sizes) {
  const QuotaLimit& limit = *view.quota;
  if (limit.is_unstated) {
    return QuotaName(view) + " admits only pods that state what it counts (" + limit.why +
           "); waiting does not help: state it in spec." + (limit.is_of_launcher ? "launcherSpec" : "workersSpec") +
           ".template, or give the namespace a LimitRange with defaults";
  }
  std::string text = "waiting: " + QuotaName(view);
  if (limit.is_of_launcher) text += " leaves no room for the launcher";
  else if (limit.workers == 0)
    text += " leaves no room for any of the " + Count(sizes.NeededToStart(), "worker") + " needed";
  else {
    text += " leaves room for " + Count(limit.workers, "more worker") + " of the " +
            std::to_string(sizes.NeededToStart()) + " needed";
  }
  return text + " (" + limit.why + ")";
}

// Quotas admit no more workers: more room would not help.
bool IsAtQuota(const View& view, int granted) { return view.quota && granted >= view.quota->workers; }

// "8 workers cannot start before another controller removes its scheduling gate example.com/admission"
std::string GatedByOthers(const View& view, int workers) {
  const auto first = std::ranges::find_if(
      view.pods, [](const Worker& worker) { return !worker.is_leaving() && !worker.foreign_gate.empty(); });
  return Count(workers, "worker") + " cannot start before another controller removes its scheduling gate " +
         (first == view.pods.end() ? view.foreign_gate : first->foreign_gate);
}

std::string WorkersMessage(const View& view, const Status& status, const Sizes& sizes) {
  const auto& replicas = status.replicas;
  std::string text = std::to_string(replicas.ready) + " of " + Count(replicas.granted, "worker") + " ready";
  if (replicas.unschedulable > 0) text += ", " + std::to_string(replicas.unschedulable) + " unschedulable";
  if (const int gated = view.gated_by_others(); gated > 0) text += "; " + GatedByOthers(view, gated);
  if (view.yield && !MustYieldAll(view, sizes) && view.yield->to < status.replicas.granted) {
    return text + "; " + YieldMessage(view, "gives", status.replicas.granted - view.yield->to);
  }
  if (const int more = status.replicas.granted - sizes.wanted; more > 0) {
    text += "; shrinks to " + Count(sizes.wanted, "worker") + ": " + Count(more, "worker") +
            (more == 1 ? " leaves the training" : " leave the training");
  }
  if (status.replicas.granted < sizes.wanted) {
    text += "; " + std::to_string(sizes.wanted) + " are wanted";
    if (IsAtQuota(view, status.replicas.granted)) {
      // Leave out the used amount: it changes with each pod of the namespace.
      text += ", " + QuotaName(view) + " admits no more";
      if (!view.quota->resource.empty()) text += " (" + view.quota->resource + ")";
    } else if (!view.reserved_for.empty()) {
      text += "; room is kept for " + view.reserved_for + " until it has started";
    } else if (view.room.allowed <= 0) {
      text +=
          view.room.limit == Room::Limit::kWorth ? "; with more it would gain too little" : "; its queue has no more";
    }
  }
  if (const auto silence = LongestSilence(view); silence && silence->lasted >= kSchedulerSilence) {
    text += "; " + SilenceText(silence->pod->silent_scheduler, silence->pod->name);
  }
  const std::optional<std::int64_t> end = LatestEnd(view, status);
  if (end && view.runtime_limit && !view.job->spec.run_policy.active_deadline_seconds) {
    text += "; GpuQueue " + view.runtime_limit->queue + " ends it at " + kube::ToText(AtUnixSeconds(*end)) +
            " (spec.maximumRuntimeSeconds)";
  }
  return text;
}

// A silent job is neither ready nor known to be stuck.
void SetSilent(Status& status, const View& view, const LauncherPod& launcher, const std::string& workers) {
  Say(status, view, Standing::kUnknown, Reason::kNoOutput,
      workers + "; launcher " + launcher.name + " has printed nothing since " + kube::ToText(*launcher.silent_since) +
          ": if its training hangs, delete that pod; spec.runPolicy.progressDeadlineSeconds (" +
          std::to_string(view.job->spec.run_policy.progress_deadline_seconds) + ") sets how long silence may last");
}

std::string TroubleOf(const View& view, const Worker& worker) {
  if (worker.is_ready || worker.is_leaving()) return {};
  if (!worker.trouble.empty()) return worker.trouble;
  if (!worker.silent_since || Waited(view.now, *worker.silent_since) < kSilenceGrace) return {};
  return "its ssh server does not answer on port " + std::to_string(kSshPort);
}

// A Job's status shows soon after its launcher's end whether the Job is complete or has failed. If the Job retries the
// launcher, the next pod may take minutes.
constexpr kube::Duration kEndGrace = std::chrono::seconds(5);

// How much longer a job counts as training after all its launchers have ended; nullopt: it does not, or one launcher
// has not ended.
std::optional<kube::Duration> EndGraceLeft(const View& view) {
  const auto& launchers = view.launcher_pods;
  const bool is_one_left =
      std::any_of(launchers.begin(), launchers.end(), [](const LauncherPod& pod) { return !pod.is_ending; });
  if (view.job->status.phase != kPhaseRunning || launchers.empty() || is_one_left) return std::nullopt;
  const std::optional<kube::Time>& ended = launchers.front().ended;
  const kube::Duration left = ended ? kEndGrace - Waited(view.now, *ended) : kEndGrace;
  return left > kube::Duration::zero() ? std::optional(left) : std::nullopt;
}

// The job gave all its workers back because pods are broken.
bool WaitsForRepair(const Status& status) {
  return status.last_scale && status.last_scale->to == 0 &&
         status.last_scale->reason == ToString(ScaleReason::kPodsBroken);
}

std::string BrokenMessage(const View& view) {
  const std::string trouble = TroubleMessage(view);
  return trouble.empty() ? "workers or launcher could not start" : trouble;
}

void SetWaiting(Status& status, const View& view, const Plan& plan, const Sizes& sizes) {
  status.phase = kPhaseWaiting;
  if (!view.has_workers() && view.quota && view.quota->workers < sizes.NeededToStart()) {
    return Say(status, view, Standing::kReconciling, Reason::kWaitingForQuota, QuotaMessage(view, sizes));
  }
  if (plan.early > 0 && WaitsForOthers(view, sizes)) {
    const int gated = std::max(view.gated_by_others(plan.drop), plan.missing);
    return Say(
        status, view, Standing::kReconciling, Reason::kGatedByOthers,
        GatedByOthers(view, gated) + "; until then no GPUs are kept for the job, which keeps its place in the queue");
  }
  if (view.can_never_fit) {
    return Say(status, view, Standing::kStalled, Reason::kCannotFit, WaitingMessage(view, sizes, status.last_scale));
  }
  if (!WaitsForRepair(status)) {
    return Say(status, view, Standing::kReconciling,
               view.is_refused_by_queue ? Reason::kWaitingForQueue : Reason::kWaitingForRoom,
               WaitingMessage(view, sizes, status.last_scale));
  }
  const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
  // Keep the message of when the workers were given back: the pods that it describes are gone.
  if (!view.has_workers() && ready && ready->reason == ToString(Reason::kPodsBroken)) return;
  Say(status, view, Standing::kStalled, Reason::kPodsBroken,
      BrokenMessage(view) + "; gave all workers back; tries again in 5 minutes or when the spec changes");
}

}  // namespace

std::string TroubleMessage(const View& view) {
  if (view.refused_workers) return view.refused_workers->text;
  std::string first;
  int others = 0;
  for (const Worker& worker : view.pods) {
    const std::string trouble = TroubleOf(view, worker);
    if (trouble.empty()) continue;
    if (first.empty()) first = "worker " + worker.name + ": " + trouble;
    else ++others;
  }
  if (others > 0) first += " (and " + Count(others, "other worker") + ")";
  if (!first.empty()) return first;
  if (view.refused_launcher) return view.refused_launcher->text;
  for (const LauncherPod& pod : view.launcher_pods) {
    if (!pod.is_ending && !pod.is_running && !pod.trouble.empty()) return "launcher " + pod.name + ": " + pod.trouble;
  }
  return {};
}

std::optional<kube::Duration> TimeUntilStatusChanges(const View& view) {
  std::optional<kube::Duration> next = EndGraceLeft(view);
  if (const auto silence = LongestSilence(view); silence && silence->lasted < kSchedulerSilence) {
    LookAgain(next, kSchedulerSilence - silence->lasted);
  }
  for (const Worker& worker : view.pods) {
    if (worker.is_ready || !worker.silent_since) continue;
    const kube::Duration left = kSilenceGrace - Waited(view.now, *worker.silent_since);
    if (left > kube::Duration::zero()) LookAgain(next, left);
  }
  return next;
}

Status BaseStatus(const View& view, const Sizes& sizes) {
  const api::ElasticHorovodJob& job = *view.job;
  Status status = job.status;
  if (status.observed_generation == 0) status.conditions.clear();  // The CRD's default, not ours.
  status.observed_generation = job.metadata.generation;
  status.launcher = "job.batch/" + LauncherName(job);
  status.selector = std::string(kJobNameLabel) + "=" + job.metadata.name + "," + kRoleLabel + "=worker";
  status.workers = "pods -l " + status.selector;
  status.profile = view.profile;
  api::ReplicaStatus& replicas = status.replicas;
  replicas = {};
  replicas.min = sizes.min;
  replicas.max = sizes.max;
  replicas.wanted = sizes.wanted;
  replicas.granted = view.granted();
  CountWorkers(status, view, {});
  return status;
}

void CountWorkers(Status& status, const View& view, const WorkerSet& drop) {
  api::ReplicaStatus& replicas = status.replicas;
  replicas.created = replicas.ready = replicas.unschedulable = 0;
  for (const Worker& worker : view.pods) {
    if (worker.is_leaving() || drop.contains(&worker)) continue;
    ++replicas.created;
    if (worker.is_ready) ++replicas.ready;
    if (!worker.is_bound && worker.unschedulable_since) ++replicas.unschedulable;
  }
  status.available_replicas = replicas.ready;
}

void SetRunningConditions(Status& status, const View& view, const Plan& plan, const Sizes& sizes) {
  if (view.job->spec.run_policy.suspend) {
    status.phase = kPhaseSuspended;
    status.replicas.granted = 0;
    const std::string message = "suspended by spec.runPolicy.suspend";
    return Say(status, view, Standing::kSuspended, Reason::kSuspended, message);
  }
  ConditionsOf(status, view).SayResumed();
  status.replicas.granted = plan.workers ? plan.workers->granted : 0;
  const std::string workers = WorkersMessage(view, status, sizes);
  const auto& launchers = view.launcher_pods;
  const bool is_running =
      std::any_of(launchers.begin(), launchers.end(), [](const LauncherPod& pod) { return pod.trains(); });
  const std::string trouble = TroubleMessage(view);
  const std::string all = workers + (trouble.empty() ? "" : "; " + trouble);
  if (sizes.wanted == 0) {
    status.phase = kPhaseWaiting;
    return Say(status, view, Standing::kNotWanted, Reason::kNoWorkersWanted, "no workers are wanted");
  }
  if (!plan.workers || plan.workers->granted == 0) return SetWaiting(status, view, plan, sizes);
  const bool is_started = is_running || EndGraceLeft(view);
  if (!is_started) status.phase = plan.wants_launcher ? kPhaseStarting : kPhasePending;
  else status.phase = kPhaseRunning;
  if (!plan.deadline.empty()) {
    return Say(status, view, is_started ? Standing::kReady : Standing::kReconciling, Reason::kPreempting,
               YieldMessage(view, "gives", status.replicas.granted) + "; its workers end at " + plan.deadline +
                   ", and it then waits for room again; " + all);
  }
  if (!is_started) {
    if (!trouble.empty()) return Say(status, view, Standing::kStalled, Reason::kPodsBroken, all);
    const Reason reason = plan.wants_launcher ? Reason::kLauncherStarting : Reason::kWorkersStarting;
    const bool are_refused = status.replicas.created == 0 && !view.pod_refusal.empty();
    return Say(status, view, Standing::kReconciling, reason, workers + (are_refused ? "; " + view.pod_refusal : ""));
  }
  if (status.replicas.ready < sizes.NeededToRun()) {
    return Say(status, view, Standing::kReconciling, Reason::kBelowMinimum,
               "trains on fewer workers than the minimum of " + std::to_string(sizes.NeededToRun()) + ": " + all);
  }
  const auto silent = std::find_if(launchers.begin(), launchers.end(),
                                   [](const LauncherPod& pod) { return pod.silent_since.has_value(); });
  if (silent != launchers.end()) return SetSilent(status, view, *silent, workers);
  Say(status, view, Standing::kReady, Reason::kTraining, all);
  if (status.replicas.granted > sizes.wanted)
    ConditionsOf(status, view).Set("Reconciling", true, ToString(Reason::kTraining), workers);
}

void SetStalled(Status& status, const View& view, Reason reason, const std::string& message) {
  if (status.phase.empty()) status.phase = kPhasePending;
  Say(status, view, Standing::kStalled, reason, message);
}

void SetEnd(Status& status, const View& view, Reason reason, const std::string& message) {
  const bool is_success = reason == Reason::kSucceeded;
  status.phase = is_success ? kPhaseSucceeded : kPhaseFailed;
  status.completion_time = view.now;
  Say(status, view, is_success ? Standing::kReady : Standing::kStalled, reason, message);
  ConditionsOf(status, view).Set(is_success ? "Complete" : "Failed", true, ToString(reason), message);
}

std::string ScaleMessage(const View& view, const Sizes& sizes, int from, int to, ScaleReason reason) {
  const std::string change =
      std::string(to > from ? "grown" : "shrunk") + " from " + std::to_string(from) + " to " + Count(to, "worker");
  switch (reason) {
    case ScaleReason::kUnschedulable:
      return change + ": the rest was unschedulable for " +
             std::to_string(std::chrono::duration_cast<std::chrono::seconds>(UnschedulableGrace(view)).count()) + " s" +
             (view.launcher == LauncherState::kAbsent ? "" : "; training goes on");
    case ScaleReason::kBelowMinimum:
      return "gave back all workers: fewer than the minimum of " + std::to_string(sizes.NeededToRun()) + " fit; " +
             WaitingMessage(view, sizes, std::nullopt);
    case ScaleReason::kPodsBroken: return change + ": " + BrokenMessage(view);
    case ScaleReason::kStarted:
      return change + (IsAtQuota(view, to) ? ": " + QuotaName(view) + " admits" : ": there is room for") +
             " no more; " + std::to_string(sizes.wanted) + " are wanted";
    case ScaleReason::kSpecChanged: return change + ": the spec changed";
    case ScaleReason::kRoomAppeared: return change + ": there is room";
    case ScaleReason::kReclaimed: return change + ": " + YieldMessage(view, "gives", from - to);
    case ScaleReason::kPreempted:
      return "stopped the training: " + YieldMessage(view, "gives", from) + "; the job starts again when there is room";
    case ScaleReason::kNone: return change;
  }
  return change;
}

kube::Duration PatienceFor(const api::ElasticHorovodJobStatus& before, const api::ElasticHorovodJobStatus& after) {
  if (before.observed_generation == 0) {
    const auto& replicas = after.replicas;
    const bool is_usual = after.phase == kPhasePending && replicas.granted == replicas.wanted &&
                          replicas.unschedulable == 0 && !kube::IsConditionTrue(after.conditions, "Stalled");
    if (!is_usual) return {};
    return replicas.ready == 0 ? kMinorChangeWait : kSoonWait;
  }
  Status same = after;
  same.replicas.created = before.replicas.created;
  if (same == before) return kMinorChangeWait;
  same.replicas.ready = before.replicas.ready;
  for (kube::Condition& condition : same.conditions) {
    const kube::Condition* was = kube::FindCondition(before.conditions, condition.type);
    if (was != nullptr) condition.message = was->message;
  }
  if (!(same == before)) return {};
  const kube::Condition* ready = kube::FindCondition(same.conditions, "Ready");
  const bool waits =
      ready && (ready->reason == ToString(Reason::kWaitingForRoom) || ready->reason == ToString(Reason::kCannotFit) ||
                ready->reason == ToString(Reason::kWaitingForQueue));
  return waits && after.replicas.ready == before.replicas.ready ? kSentenceWait : kSoonWait;
}

}  // namespace grus
