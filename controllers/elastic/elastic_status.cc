// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_status.h"

#include <algorithm>

namespace grus {
namespace {

using Status = api::ElasticHorovodJobStatus;

void Set(Status& status, const View& view, std::string_view type, bool is_true, std::string_view reason,
         const std::string& message) {
  kube::Condition condition;
  condition.type = std::string(type);
  condition.status = is_true ? "True" : "False";
  condition.reason = std::string(reason);
  condition.message = message;
  condition.observed_generation = view.job->metadata.generation;
  kube::SetCondition(status.conditions, std::move(condition), view.now.value);
}

// The three of kstatus together: exactly one of "fine", "under way", "stuck" is said.
void SetKstatus(Status& status, const View& view, bool is_ready, bool is_reconciling, bool is_stalled, Reason reason,
                const std::string& message) {
  const std::string_view name = ToString(reason);
  Set(status, view, "Ready", is_ready, name, message);
  Set(status, view, "Reconciling", is_reconciling, name, is_reconciling ? message : "");
  Set(status, view, "Stalled", is_stalled, name, is_stalled ? message : "");
}

std::string Gpus(const View& view, int workers) {
  const int gpus = workers * view.job->spec.workers.gpus_per_worker;
  return gpus > 0 ? " (" + Count(gpus, "GPU") + ")" : "";
}

// What there is, for a job whose minimum does not fit.
std::string RoomMessage(const View& view) {
  const Room& room = view.room;
  if (room.nodes == 0) return "no node can hold such a worker: see its resources, node selector and tolerations";
  std::string text = "there is room for " + std::to_string(room.copies) + " on " + Count(room.nodes, "node");
  if (view.job->spec.workers.gpus_per_worker > 0) {
    text += ", where " + std::to_string(room.gpus_free) + " of " + std::to_string(room.gpus_total) + " GPUs are free";
  }
  return text;
}

std::string WaitingMessage(const View& view, const Sizes& sizes) {
  return "waiting for room for " + Count(sizes.NeededToRun(), "worker") + Gpus(view, sizes.NeededToRun()) + ": " +
         RoomMessage(view);
}

std::string WorkersMessage(const Status& status, const Sizes& sizes) {
  const auto& replicas = status.replicas;
  std::string text = std::to_string(replicas.ready) + " of " + Count(replicas.granted, "worker") + " ready";
  if (replicas.unschedulable > 0) text += ", " + std::to_string(replicas.unschedulable) + " unschedulable";
  if (status.replicas.granted < sizes.wanted) text += "; " + std::to_string(sizes.wanted) + " are wanted";
  return text;
}

}  // namespace

Status BaseStatus(const View& view, const Sizes& sizes) {
  const api::ElasticHorovodJob& job = *view.job;
  Status status = job.status;
  if (status.observed_generation == 0) status.conditions.clear();  // The CRD's default, not ours.
  status.observed_generation = job.metadata.generation;
  status.launcher = "job.batch/" + LauncherName(job);
  status.workers = "statefulset.apps/" + WorkersName(job);
  status.profile = view.profile;
  status.selector = std::string(kJobNameLabel) + "=" + job.metadata.name + "," + kRoleLabel + "=worker";
  api::ReplicaStatus& replicas = status.replicas;
  replicas = {};
  replicas.min = sizes.min;
  replicas.max = sizes.max;
  replicas.wanted = sizes.wanted;
  replicas.granted = view.workers ? view.workers->granted : 0;
  for (const Worker& worker : view.pods) {
    if (worker.is_ending || worker.has_lost_node || worker.is_gated) continue;
    ++replicas.created;
    if (worker.is_ready) ++replicas.ready;
    if (!worker.is_bound && worker.unschedulable_since) ++replicas.unschedulable;
  }
  status.available_replicas = replicas.ready;
  return status;
}

void SetRunningConditions(Status& status, const View& view, const Plan& plan, const Sizes& sizes) {
  if (view.job->spec.run_policy.suspend) {
    status.phase = kPhaseSuspended;
    status.replicas.granted = 0;
    const std::string message = "suspended by spec.runPolicy.suspend";
    SetKstatus(status, view, false, false, false, Reason::kSuspended, message);
    Set(status, view, "Suspended", true, ToString(Reason::kSuspended), message);
    return;
  }
  if (kube::FindCondition(status.conditions, "Suspended")) {
    Set(status, view, "Suspended", false, "Resumed", "");
  }
  status.replicas.granted = plan.workers ? plan.workers->granted : 0;
  const std::string workers = WorkersMessage(status, sizes);
  const bool is_running = std::any_of(view.launcher_pods.begin(), view.launcher_pods.end(), [](const LauncherPod& pod) {
    return pod.is_running && !pod.is_ending;
  });
  if (sizes.wanted == 0) {
    status.phase = kPhaseWaiting;
    SetKstatus(status, view, false, false, false, Reason::kWaitingForRoom, "no workers are wanted");
  } else if (!plan.workers || plan.workers->replicas == 0) {
    status.phase = kPhaseWaiting;
    SetKstatus(status, view, false, true, false, Reason::kWaitingForRoom, WaitingMessage(view, sizes));
  } else if (!plan.wants_launcher) {
    status.phase = kPhasePending;
    SetKstatus(status, view, false, true, false, Reason::kWorkersStarting, workers);
  } else if (!is_running) {
    status.phase = kPhaseStarting;
    SetKstatus(status, view, false, true, false, Reason::kLauncherStarting, workers);
  } else {
    status.phase = kPhaseRunning;
    const bool is_settled = status.replicas.ready >= status.replicas.granted;
    SetKstatus(status, view, true, !is_settled, false, Reason::kTraining, workers);
  }
}

void SetStalled(Status& status, const View& view, Reason reason, const std::string& message) {
  if (status.phase.empty()) status.phase = kPhasePending;
  SetKstatus(status, view, false, false, true, reason, message);
}

void SetEnd(Status& status, const View& view, Reason reason, const std::string& message) {
  const bool is_success = reason == Reason::kSucceeded;
  status.phase = is_success ? kPhaseSucceeded : kPhaseFailed;
  status.completion_time = view.now;
  SetKstatus(status, view, is_success, false, !is_success, reason, message);
  Set(status, view, is_success ? "Complete" : "Failed", true, ToString(reason), message);
}

std::string ScaleMessage(const View& view, const Sizes& sizes, int from, int to, ScaleReason reason) {
  const std::string change = std::string(to > from ? "grown" : "shrunk") + " from " + std::to_string(from) + " to " +
                             Count(to, "worker");
  switch (reason) {
    case ScaleReason::kUnschedulable:
      return change + ": the rest was unschedulable for " +
             std::to_string(view.job->spec.elastic.unschedulable_grace_seconds) + " s; training goes on";
    case ScaleReason::kBelowMinimum:
      return "gave back all workers: fewer than the minimum of " + std::to_string(sizes.NeededToRun()) + " fit; " +
             WaitingMessage(view, sizes);
    case ScaleReason::kStarted:
      return change + ": what there is room for; " + std::to_string(sizes.wanted) + " are wanted";
    case ScaleReason::kRequested: return change + ": the rest of what is wanted";
    case ScaleReason::kSpecChanged: return change + ": the spec changed";
    case ScaleReason::kRoomAppeared: return change + ": there is room";
    case ScaleReason::kNone: return change;
  }
  return change;
}

bool IsMinorChange(const api::ElasticHorovodJobStatus& before, api::ElasticHorovodJobStatus after) {
  if (before.observed_generation == 0) {
    const auto& replicas = after.replicas;
    return after.phase == kPhasePending && replicas.granted == replicas.wanted && replicas.ready == 0 &&
           replicas.unschedulable == 0 && !kube::IsConditionTrue(after.conditions, "Stalled");
  }
  after.replicas.created = before.replicas.created;
  return after == before;
}

}  // namespace grus
