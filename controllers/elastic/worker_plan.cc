// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_plan.h"

#include <algorithm>
#include <chrono>

#include "controllers/frame/retry_times.h"
#include "controllers/policy/worker_devices.h"
#include "controllers/policy/yield_words.h"

namespace grus {
namespace {

using kube::Duration;
using std::chrono::seconds;

// The workers that are not leaving, sorted by what the plan may do with them.
struct Census {
  std::vector<const Worker*> bound;    // On a node that exists.
  std::vector<const Worker*> waiting;  // Not bound: its gang's or the scheduler's turn, within the grace.
  std::vector<const Worker*> expired;  // Unschedulable, or bound and broken, for longer than the grace.
  bool has_broken = false;             // Among `expired`.
  std::optional<Duration> next_expiry;

  std::vector<const Worker*> BoundAndWaiting() const {
    std::vector<const Worker*> both = bound;
    both.insert(both.end(), waiting.begin(), waiting.end());
    return both;
  }
};

// How long pods that cannot start may hold their GPUs: time for the kubelet to try three times.
constexpr Duration kBrokenGrace = seconds(60);
constexpr Duration kLeavingCheck = seconds(10);  // No event tells that a worker is late to leave.
// No event tells that an image can be pulled again, and each try holds the GPUs for kBrokenGrace.
constexpr Duration kBrokenRetry = std::chrono::minutes(5);
constexpr Duration kLongestCooldown = std::chrono::minutes(10);
// How long a training may run on fewer workers than the minimum: Horovod's own limit.
constexpr Duration kBelowMinimumGrace = std::chrono::minutes(10);

// Whether `grace` has passed since `since`. If not, brings `next` forward to when it will have.
bool IsOver(const View& view, const kube::Time& since, Duration grace, std::optional<Duration>& next) {
  const Duration left = grace - Waited(view.now, since);
  if (left > Duration::zero()) LookAgain(next, left);
  return left <= Duration::zero();
}

// For a worker without a node. If its gang waits because a member has no place, the time runs from the grant.
bool HasNoNodeForTooLong(const View& view, const Worker& worker, Duration grace, std::optional<Duration>& next) {
  if (!worker.foreign_gate.empty()) return false;  // It holds nothing.
  const auto& last = view.job->status.last_scale;
  if (view.lacks_places && last) {
    return IsOver(view, std::max(last->time, worker.created.value_or(last->time)), grace, next);
  }
  if (worker.unschedulable_since) return IsOver(view, *worker.unschedulable_since, grace, next);
  return worker.asked_since && IsOver(view, *worker.asked_since, std::max(grace, kLongestDecision), next);
}

Census Count(const View& view, const WorkerSet& surplus, Duration grace) {
  Census census;
  int holding_on = view.HoldingOn();
  for (const Worker& worker : view.pods) {
    if (worker.is_leaving() || surplus.contains(&worker)) continue;
    if (worker.is_bound) {
      const bool is_broken = !worker.is_ready && !worker.trouble.empty() && worker.unready_since &&
                             IsOver(view, *worker.unready_since, kBrokenGrace, census.next_expiry);
      (is_broken ? census.expired : census.bound).push_back(&worker);
      census.has_broken |= is_broken;
    } else if (!HasNoNodeForTooLong(view, worker, grace, census.next_expiry)) {
      census.waiting.push_back(&worker);
    } else if (holding_on > 0) {
      --holding_on;  // It waits for what a worker that leaves still has.
      LookAgain(census.next_expiry, kLeavingCheck);
      census.waiting.push_back(&worker);
    } else {
      census.expired.push_back(&worker);
    }
  }
  return census;
}

// Why the size changed last; empty: it never did.
std::string_view LastReason(const View& view) {
  const auto& last = view.job->status.last_scale;
  return last ? std::string_view(last->reason) : "";
}

bool IsForWantOfNodes(const api::LastScale& scale) {
  return scale.reason == ToString(ScaleReason::kUnschedulable) || scale.reason == ToString(ScaleReason::kBelowMinimum);
}

// The cooldown after a change of size. It doubles with each failed try in a row from the second on: room that the
// scheduler does not find exists only on paper.
Duration CooldownAfter(const View& view, const api::LastScale& last) {
  if (last.reason == ToString(ScaleReason::kPodsBroken)) return kBrokenRetry;
  const Duration cooldown = seconds(view.job->spec.elastic.cooldown_seconds);
  const int tries = view.failed_tries + (IsFailedTry(view.job->status.last_scale, last) ? 1 : 0);
  if (!IsForWantOfNodes(last) || tries < 2) return cooldown;
  const Duration longer = std::max<Duration>(cooldown, seconds(1)) * (1 << std::min(tries - 1, 10));
  return std::max(cooldown, std::min(kLongestCooldown, longer));
}

// Without a launcher, the workers still look for their first nodes.
bool IsStarting(const View& view) { return view.launcher == LauncherState::kAbsent; }

WorkerPlan GiveBack(const View& view, ScaleReason reason) {
  WorkerPlan plan;
  plan.drop = AllOf(view);
  plan.reason = reason;
  plan.is_waiting = true;
  return plan;
}

void KeepOnly(WorkerPlan& plan, const View& view, const std::vector<const Worker*>& keep) {
  plan.drop = AllOf(view);
  for (const Worker* worker : keep) plan.drop.erase(worker);
}

// Why the job must give everything back, whatever the state of its workers; kNone: it may go on.
ScaleReason ReasonToGiveBack(const View& view, const Sizes& sizes, std::optional<Duration>& next) {
  if (view.refused_launcher && IsOver(view, view.refused_launcher->since, kBrokenGrace, next)) {
    return ScaleReason::kPodsBroken;
  }
  for (const LauncherPod& pod : view.launcher_pods) {
    if (pod.is_ending || pod.is_running || !pod.created || (pod.trouble.empty() && pod.is_bound)) continue;
    const Duration grace = pod.trouble.empty() ? kLongestDecision : kBrokenGrace;  // Empty: no scheduler has judged it.
    if (IsOver(view, *pod.created, grace, next)) return ScaleReason::kPodsBroken;
  }
  const auto ready = std::count_if(view.pods.begin(), view.pods.end(), [](const Worker& w) { return w.is_usable(); });
  const kube::Condition* below = view.ready();
  if (ready < sizes.NeededToRun() && below && below->reason == kBelowMinimumReason &&
      IsOver(view, below->last_transition_time, kBelowMinimumGrace, next)) {
    return ScaleReason::kBelowMinimum;
  }
  return ScaleReason::kNone;
}

// The gated workers that are more than `keep`: first those that others keep from starting, then the highest ordinals.
WorkerSet SurplusOf(const View& view, int keep) {
  std::vector<const Worker*> gated;
  for (const Worker& worker : view.pods) {
    if (!worker.is_leaving() && !worker.is_let_go()) gated.push_back(&worker);
  }
  std::stable_partition(gated.begin(), gated.end(), [](const Worker* worker) { return worker->foreign_gate.empty(); });
  WorkerSet surplus;
  for (int more = view.alive() - keep; more > 0 && !gated.empty(); --more) {
    surplus.insert(gated.back());
    gated.pop_back();
  }
  return surplus;
}

// Workers with a gate of another controller, if the API server would make them without one.
WorkerSet WithOldGates(const View& view) {
  WorkerSet workers;
  if (!view.foreign_gate.empty() || view.has_unknown_pods || !view.pod_refusal.empty()) return workers;
  for (const Worker& worker : view.pods) {
    if (!worker.is_leaving() && !worker.foreign_gate.empty()) workers.insert(&worker);
  }
  return workers;
}

WorkerPlan PlanStart(const View& view, const Sizes& sizes) {
  WorkerPlan plan;
  plan.drop = SurplusOf(view, sizes.wanted);
  if (sizes.wanted == 0) return plan;
  plan.is_waiting = true;
  plan.early = view.alive() - static_cast<int>(plan.drop.size());
  // Nobody may ever remove a gate that the template or a webhook has no more. They hold nothing: make them anew.
  if (const WorkerSet outdated = WithOldGates(view); !outdated.empty()) {
    plan.drop.insert(outdated.begin(), outdated.end());
    plan.early = view.alive() - static_cast<int>(plan.drop.size());
    return plan;
  }
  // A job must not take the GPUs again that it gives to others. The end of the notice wakes it.
  if (view.has_left_overs() || view.yield) return plan;
  if (const Duration left = StartDelay(view); left > Duration::zero()) {
    plan.look_again = left;
    return plan;
  }
  const int admitted = Admitted(view, sizes).wanted;
  const bool may_be_made =
      view.refusal.empty() && !view.has_unknown_pods && !view.is_refused_by_queue && admitted >= sizes.NeededToStart();
  if (WaitsForOthers(view, sizes)) {
    if (may_be_made) plan.early = admitted;
    return plan;
  }
  int start = std::min(admitted, view.room.copies);
  if (!view.may_start || start < sizes.NeededToStart()) {
    if (!may_be_made || !IsUngated(*view.job)) return plan;
    start = sizes.NeededToStart();  // A cluster autoscaler must see them.
  }
  plan = {};
  plan.granted = start;
  plan.reason = ScaleReason::kStarted;
  plan.drop = SurplusOf(view, start);
  return plan;
}

// Workers that wait behind their gate are kept for it: others would be made in their stead, and the gang may lift the
// gates before these are gone.
void GrowTo(WorkerPlan& plan, const View& view, int granted, ScaleReason reason) {
  plan.granted = granted;
  plan.reason = reason;
  plan.drop = SurplusOf(view, granted);
}

// There are to be `to`: workers without a node go first, all after they left the host list.
void ShrinkTo(WorkerPlan& plan, const View& view, const Census& census, int to, ScaleReason reason) {
  std::vector<const Worker*> keep = census.BoundAndWaiting();
  SortByWorth(keep);
  if (keep.size() > static_cast<std::size_t>(to)) keep.resize(static_cast<std::size_t>(to));
  KeepOnly(plan, view, keep);
  plan.granted = to;
  plan.reason = reason;
  plan.must_drain = true;
}

// Into free room alone, and after the cooldown, unless the user has just chosen the target. The scheduler chooses the
// nodes, so do not grow while others wait for room that the new workers could take.
void PlanGrowth(WorkerPlan& plan, const View& view, const Sizes& sizes) {
  const api::ElasticHorovodJob& job = *view.job;
  if (!view.reserved_for.empty() || view.room.copies == 0) return;
  const int to = std::min(sizes.wanted, view.granted() + view.room.copies);
  if (view.workers.is_start_untold) return GrowTo(plan, view, to, ScaleReason::kStarted);
  const bool did_user_choose =
      job.status.observed_generation != job.metadata.generation && job.spec.workers.target_replicas.has_value();
  if (did_user_choose) return GrowTo(plan, view, to, ScaleReason::kSpecChanged);
  if (!job.spec.elastic.scale_up) return;
  if (const Duration left = CooldownLeft(view); left > Duration::zero()) return LookAgain(plan.look_again, left);
  GrowTo(plan, view, to, ScaleReason::kRoomAppeared);
}

// The user raised the minimum above what is granted: grow into the free room at once, or give everything back if the
// minimum does not fit.
void PlanRaisedMinimum(WorkerPlan& plan, const View& view, const Sizes& sizes) {
  const int granted = std::min(sizes.wanted, view.granted() + view.room.copies);
  if (granted >= sizes.NeededToRun()) return GrowTo(plan, view, granted, ScaleReason::kSpecChanged);
  plan = GiveBack(view, ScaleReason::kBelowMinimum);
}

}  // namespace

bool IsUngated(const api::ElasticHorovodJob& job) {
  return job.spec.run_policy.scheduling_policy.when_unschedulable == api::WhenUnschedulable::kUngate;
}

bool WaitsForOthers(const View& view, const Sizes& sizes) {
  const int gated = view.gated_by_others();
  if (view.has_workers() || (gated == 0 && view.foreign_gate.empty())) return false;
  const int to_make = view.foreign_gate.empty() ? std::max(0, sizes.wanted - view.alive()) : 0;
  return view.alive() - gated + to_make < sizes.NeededToStart();
}

Duration CooldownLeft(const View& view) {
  const auto& last = view.job->status.last_scale;
  return last ? CooldownAfter(view, *last) - Waited(view.now, last->time) : Duration::zero();
}

WorkerSet AllOf(const View& view) {
  WorkerSet all;
  for (const Worker& worker : view.pods) {
    if (!worker.is_leaving()) all.insert(&worker);
  }
  return all;
}

Duration UnschedulableGrace(const View& view) {
  const api::SchedulingPolicy& policy = view.job->spec.run_policy.scheduling_policy;
  if (IsStarting(view)) {
    if (policy.schedule_timeout_seconds) return seconds(*policy.schedule_timeout_seconds);
    if (IsUngated(*view.job)) return std::chrono::minutes(10);  // Cluster autoscalers take minutes.
  }
  return seconds(view.job->spec.elastic.unschedulable_grace_seconds);
}

Duration StartDelay(const View& view) {
  const bool is_edited = view.job->status.observed_generation != view.job->metadata.generation;
  const std::string_view last = LastReason(view);
  const bool waits =
      last == ToString(ScaleReason::kBelowMinimum) || (last == ToString(ScaleReason::kPodsBroken) && !is_edited);
  return waits ? std::max(CooldownLeft(view), Duration::zero()) : Duration::zero();
}

std::optional<kube::Time> NextStart(const View& view, const std::optional<api::LastScale>& last) {
  if (!last || last->reason != ToString(ScaleReason::kBelowMinimum)) return std::nullopt;
  const Duration cooldown = CooldownAfter(view, *last);
  if (cooldown <= Waited(view.now, last->time)) return std::nullopt;
  return kube::Time{last->time.value + cooldown};
}

bool IsFailedTry(const std::optional<api::LastScale>& before, const std::optional<api::LastScale>& after) {
  return after && !(before == after) && IsForWantOfNodes(*after);
}

bool DidLastTrySucceed(const View& view) {
  const auto& last = view.job->status.last_scale;
  if (last && IsForWantOfNodes(*last)) return false;
  return view.granted() > 0 && view.bound() >= view.granted() && view.has_bound_launcher();
}

bool MustYieldAll(const View& view, const Sizes& sizes) {
  return view.yield && view.has_workers() && view.yield->to < sizes.NeededToRun();
}

std::optional<api::JobUsage> UsageUntil(const View& view, const kube::Time& time, int to) {
  std::optional<api::JobUsage> usage = view.job->status.usage;
  const auto& last = view.job->status.last_scale;
  if (!last || last->to == 0) return usage;
  if (!usage) usage.emplace();
  // Set back, a clock would take away what the job has had.
  const auto since = std::max<Duration>(Duration::zero(), time.value - last->time.value);
  const std::int64_t more = std::chrono::duration_cast<seconds>(since).count();
  usage->gpu_seconds += more * last->to * DevicesOf(view.job->spec.workers).milli / 1000;
  usage->run_seconds += more;
  if (to > 0 && to != last->to) ++usage->resizes;
  return usage;
}

Sizes Admitted(const View& view, Sizes sizes) {
  if (view.quota) sizes.wanted = std::min(sizes.wanted, std::max(view.quota->workers, view.granted()));
  return sizes;
}

std::string_view ToString(ScaleReason reason) {
  static constexpr std::string_view kNames[] = {
      "",           "Started",   "SpecChanged", "Unschedulable", "RoomAppeared", kBelowMinimumReason,
      "PodsBroken", "Reclaimed", "Preempted"};
  return kNames[static_cast<std::size_t>(reason)];
}

WorkerPlan PlanWorkers(const View& view, const Sizes& sizes) {
  if (!view.has_workers()) return PlanStart(view, sizes);

  const int granted = view.granted();
  const WorkerSet surplus = SurplusOf(view, granted);
  const Census census = Count(view, surplus, UnschedulableGrace(view));
  std::optional<Duration> next;
  if (const ScaleReason reason = ReasonToGiveBack(view, sizes, next); reason != ScaleReason::kNone) {
    return GiveBack(view, reason);
  }
  const bool must_yield_all = MustYieldAll(view, sizes);
  if (must_yield_all) {
    const Duration left = TimeLeft(*view.yield, view.now);
    if (left <= Duration::zero()) return GiveBack(view, ScaleReason::kPreempted);
    LookAgain(next, left);
  }
  const int most = view.yield && !must_yield_all ? std::min(view.yield->to, sizes.wanted) : sizes.wanted;
  WorkerPlan plan;
  plan.granted = granted;
  plan.drop = surplus;
  LookAgain(plan.look_again, next);
  LookAgain(plan.look_again, census.next_expiry);

  const bool are_refused =
      view.refused_workers && IsOver(view, view.refused_workers->since, kBrokenGrace, plan.look_again);
  if (!census.expired.empty() || are_refused) {
    // Keep what is owed, unless such pods are refused.
    const int owed = are_refused ? 0 : std::max(0, granted - view.alive());
    const ScaleReason why = census.has_broken || are_refused ? ScaleReason::kPodsBroken : ScaleReason::kUnschedulable;
    const std::vector<const Worker*> keep = census.BoundAndWaiting();
    const int kept = static_cast<int>(keep.size()) + owed;
    if (kept < (IsStarting(view) ? sizes.NeededToStart() : sizes.NeededToRun())) {
      return GiveBack(view, why == ScaleReason::kPodsBroken ? why : ScaleReason::kBelowMinimum);
    }
    KeepOnly(plan, view, keep);
    plan.granted = kept;
    plan.reason = why;
  } else if (most < granted) {
    ShrinkTo(plan, view, census, most, most < sizes.wanted ? ScaleReason::kReclaimed : ScaleReason::kSpecChanged);
  } else if (view.yield) {
    return plan;  // While the notice stands, the job does not grow.
  } else if (granted < sizes.NeededToRun()) {
    PlanRaisedMinimum(plan, view, Admitted(view, sizes));
  } else if (Admitted(view, sizes).wanted > granted) {
    PlanGrowth(plan, view, Admitted(view, sizes));
  }
  return plan;
}

std::vector<std::string> NodesForMissing(const View& view, const WorkersState& workers,
                                         const std::vector<Place>& places) {
  std::vector<std::string> nodes;
  if (workers.gang == Gang::kGated || DevicesOf(view.job->spec.workers).count == 0) return nodes;
  // Some are for the workers that were made before and have no node yet: as they were told the first ones.
  int others = view.alive() - view.bound();
  for (const Place& place : places) {
    if (--others < 0) nodes.push_back(place.node);
  }
  return nodes;
}

}  // namespace grus
