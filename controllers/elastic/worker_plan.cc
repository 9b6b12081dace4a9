// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_plan.h"

#include <algorithm>
#include <chrono>

#include "controllers/frame/retry_times.h"

namespace grus {
namespace {

using kube::Duration;
using std::chrono::seconds;

// The pods of the StatefulSet, sorted by what the plan may do with them.
struct Census {
  std::vector<const Worker*> bound;    // On a node that exists.
  std::vector<const Worker*> waiting;  // Not bound, not gated: the scheduler's turn, within the grace.
  std::vector<const Worker*> expired;  // Unschedulable, or bound and broken, for longer than the grace.
  std::vector<const Worker*> gated;
  bool has_broken = false;  // Among `expired`.
  std::optional<Duration> next_expiry;

  std::vector<const Worker*> BoundAndWaiting() const {
    std::vector<const Worker*> both = bound;
    both.insert(both.end(), waiting.begin(), waiting.end());
    return both;
  }
};

// How long pods that cannot start may hold their GPUs: time for the kubelet to try three times.
constexpr Duration kBrokenGrace = seconds(60);
// No event tells that an image can be pulled again, and each try holds the GPUs for kBrokenGrace.
constexpr Duration kBrokenRetry = std::chrono::minutes(5);
constexpr int kMostUnseenGrowth = 8;
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
  const auto& last = view.job->status.last_scale;
  if (view.lacks_places && last) return IsOver(view, last->time, grace, next);
  if (worker.unschedulable_since) return IsOver(view, *worker.unschedulable_since, grace, next);
  return worker.asked_since && IsOver(view, *worker.asked_since, std::max(grace, kLongestDecision), next);
}

Census Count(const View& view, int replicas, Duration grace) {
  Census census;
  for (const Worker& worker : view.pods) {
    if (worker.is_leaving() || worker.ordinal >= replicas) continue;
    if (worker.is_bound) {
      const bool is_broken = !worker.is_ready && !worker.trouble.empty() && worker.unready_since &&
                             IsOver(view, *worker.unready_since, kBrokenGrace, census.next_expiry);
      (is_broken ? census.expired : census.bound).push_back(&worker);
      census.has_broken |= is_broken;
    } else if (worker.is_gated) {
      census.gated.push_back(&worker);
    } else if (HasNoNodeForTooLong(view, worker, grace, census.next_expiry)) {
      census.expired.push_back(&worker);
    } else {
      census.waiting.push_back(&worker);
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

// Zero or less: the cooldown is over.
Duration CooldownLeft(const View& view) {
  const auto& last = view.job->status.last_scale;
  return last ? CooldownAfter(view, *last) - Waited(view.now, last->time) : Duration::zero();
}

// Without a launcher, the workers still look for their first nodes.
bool IsStarting(const View& view) { return view.launcher == LauncherState::kAbsent; }

// The workers are made whether there is room for them or not.
bool IsUngated(const api::ElasticHorovodJob& job) {
  return job.spec.run_policy.scheduling_policy.when_unschedulable == api::WhenUnschedulable::kUngate;
}

WorkerPlan GiveBack(ScaleReason reason) {
  WorkerPlan plan;
  plan.reason = reason;
  plan.is_waiting = true;
  return plan;
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

WorkerPlan PlanStart(const View& view, const Sizes& sizes) {
  WorkerPlan plan;
  if (sizes.wanted == 0) return plan;
  if (const Duration left = StartDelay(view); left > Duration::zero()) {
    plan.is_waiting = true;
    plan.look_again = left;
    return plan;
  }
  const int admitted = Admitted(view, sizes).wanted;
  int start = std::min(admitted, view.room.copies);
  if (!view.may_start || start < sizes.NeededToStart()) {
    const bool may_be_made = view.refusal.empty() && !view.has_unknown_pods && admitted >= sizes.NeededToStart();
    plan.is_waiting = !may_be_made || !IsUngated(*view.job);
    if (plan.is_waiting) return plan;
    start = sizes.NeededToStart();  // A cluster autoscaler must see them.
  }
  // Create only what fits at first, and ask for the rest when these are bound: ordinals that do not fit are then the
  // highest, and scaling down removes them.
  plan.size = {start, start, false, false};
  plan.reason = ScaleReason::kStarted;
  return plan;
}

// Keeps the workers in `keep` and `missing_kept` whose pods do not exist yet, and frees every other ordinal: above the
// highest kept one by scaling, below it by parking.
void ShrinkTo(WorkerPlan& plan, std::vector<const Worker*> keep, int missing_kept, const Census& census,
              ScaleReason reason) {
  int replicas = 0;
  for (const Worker* worker : keep) replicas = std::max(replicas, worker->ordinal + 1);
  plan.size.granted = static_cast<int>(keep.size()) + missing_kept;
  plan.size.replicas = std::max(replicas, plan.size.granted);
  plan.size.is_gated = plan.size.replicas > plan.size.granted;
  plan.reason = reason;
  for (const auto* group : {&census.expired, &census.waiting}) {
    for (const Worker* worker : *group) {
      const bool is_kept = std::find(keep.begin(), keep.end(), worker) != keep.end();
      if (!is_kept && worker->ordinal < plan.size.replicas) plan.park.push_back(worker);
    }
  }
}

// REQUIRES: plan.size is as the StatefulSet has it.
void GrowTo(WorkerPlan& plan, int granted, ScaleReason reason) {
  plan.size.granted = granted;
  plan.size.replicas = std::max(plan.size.replicas, granted);
  plan.size.is_gated = plan.size.replicas > granted;
  plan.reason = reason;
}

// The user wants fewer: workers without a node go first, then the highest ordinals, after they left the host list.
void PlanUserShrink(WorkerPlan& plan, const Census& census, const Sizes& sizes) {
  std::vector<const Worker*> keep = census.BoundAndWaiting();
  if (keep.size() > static_cast<std::size_t>(sizes.wanted)) keep.resize(static_cast<std::size_t>(sizes.wanted));
  const int missing = sizes.wanted - static_cast<int>(keep.size());
  ShrinkTo(plan, std::move(keep), missing, census, ScaleReason::kSpecChanged);
  plan.must_drain = true;
}

// Lifts gates until as many pods may run as are granted, lowest ordinals first.
void PlanLifts(WorkerPlan& plan, const Census& census) {
  const std::size_t free_to_run = census.bound.size() + census.waiting.size() + census.expired.size() -
                                  std::min(plan.park.size(), census.waiting.size() + census.expired.size());
  const auto granted = static_cast<std::size_t>(plan.size.granted);
  for (const Worker* worker : census.gated) {
    if (free_to_run + plan.lift.size() >= granted) break;
    if (worker->ordinal < plan.size.replicas) plan.lift.push_back(worker);
  }
}

// Right after a start, or after the user chose a target, ask the scheduler for all wanted workers (up to a cap), unless
// they could take places of the launcher or of others; else grow as far as there is room. The scheduler chooses the
// nodes, so do not grow while others wait for room that the new workers could take.
void PlanGrowth(WorkerPlan& plan, const View& view, const Sizes& sizes, const Census& census) {
  const WorkersState& now = *view.workers;
  const api::ElasticHorovodJob& job = *view.job;
  if (!view.reserved_for.empty()) return;
  const bool are_all_bound = static_cast<int>(census.bound.size()) >= now.granted;
  const bool is_room_kept = view.do_others_have_places || !view.has_bound_launcher();
  // Cap it: a target far beyond the cluster must not create thousands of pods.
  const int capped = std::min(sizes.wanted, now.granted + view.room.copies + std::max(kMostUnseenGrowth, now.granted));
  if (LastReason(view) == ToString(ScaleReason::kStarted)) {
    // Ask the scheduler once for more than our own count of free GPUs allows, unless room is kept.
    const int most = is_room_kept ? std::min(sizes.wanted, now.granted + view.room.copies) : capped;
    if (are_all_bound && most > now.granted) GrowTo(plan, most, ScaleReason::kRequested);
    return;
  }
  const bool did_user_choose =
      job.status.observed_generation != job.metadata.generation && job.spec.workers.target_replicas.has_value();
  if (did_user_choose && now.granted == now.replicas && !is_room_kept) {
    GrowTo(plan, capped, ScaleReason::kSpecChanged);
    return;
  }
  if (!job.spec.elastic.scale_up || view.room.copies == 0) return;
  if (const Duration left = CooldownLeft(view); left > Duration::zero()) {
    LookAgain(plan.look_again, left);
    return;
  }
  GrowTo(plan, std::min(sizes.wanted, now.granted + view.room.copies), ScaleReason::kRoomAppeared);
}

// The user raised the minimum above what is granted: grow into the free room at once, or give everything back if the
// minimum does not fit.
void PlanRaisedMinimum(WorkerPlan& plan, const View& view, const Sizes& sizes) {
  const int granted = std::min(sizes.wanted, view.workers->granted + view.room.copies);
  if (granted >= sizes.NeededToRun()) return GrowTo(plan, granted, ScaleReason::kSpecChanged);
  plan = GiveBack(ScaleReason::kBelowMinimum);
}

}  // namespace

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

Sizes Admitted(const View& view, Sizes sizes) {
  if (view.quota) sizes.wanted = std::min(sizes.wanted, std::max(view.quota->workers, view.granted()));
  return sizes;
}

std::string_view ToString(ScaleReason reason) {
  static constexpr std::string_view kNames[] = {
      "", "Started", "Requested", "SpecChanged", "Unschedulable", "RoomAppeared", kBelowMinimumReason, "PodsBroken"};
  return kNames[static_cast<std::size_t>(reason)];
}

WorkerPlan PlanWorkers(const View& view, const Sizes& sizes) {
  if (!view.has_workers()) return PlanStart(view, sizes);

  const WorkersState& now = *view.workers;
  const Census census = Count(view, now.replicas, UnschedulableGrace(view));
  const int bound = static_cast<int>(census.bound.size());
  std::optional<Duration> next;
  if (const ScaleReason reason = ReasonToGiveBack(view, sizes, next); reason != ScaleReason::kNone) {
    return GiveBack(reason);
  }
  WorkerPlan plan;
  LookAgain(plan.look_again, next);
  plan.size = now;
  plan.size.is_gated = now.replicas > now.granted;  // Also after somebody scaled the StatefulSet by hand.
  LookAgain(plan.look_again, census.next_expiry);
  if (const int owed = std::min(now.promised, sizes.wanted); now.replicas < owed) {
    // Somebody scaled the StatefulSet down by hand: restore what was granted.
    plan.size = {owed, owed, false, false};
    return plan;
  }

  const bool are_refused =
      view.refused_workers && IsOver(view, view.refused_workers->since, kBrokenGrace, plan.look_again);
  if (!census.expired.empty() || are_refused) {
    // Keep the workers whose pods do not exist yet or are being replaced, unless such pods are refused.
    const int known = static_cast<int>(census.bound.size() + census.waiting.size() + census.expired.size());
    const int missing = are_refused ? 0 : std::max(0, now.granted - known);
    const ScaleReason why = census.has_broken || are_refused ? ScaleReason::kPodsBroken : ScaleReason::kUnschedulable;
    std::vector<const Worker*> keep = census.BoundAndWaiting();
    const int kept = static_cast<int>(keep.size()) + missing;
    if (kept < (IsStarting(view) ? sizes.NeededToStart() : sizes.NeededToRun())) {
      return GiveBack(why == ScaleReason::kPodsBroken ? why : ScaleReason::kBelowMinimum);
    }
    if (kept < now.granted) {
      ShrinkTo(plan, std::move(keep), missing, census, why);
    } else if (now.is_gated && now.is_observed) {
      // Already shrunk: park the pods that are still unschedulable.
      plan.park = census.expired;
    }
  } else if (sizes.wanted < std::max(now.granted, bound)) {
    PlanUserShrink(plan, census, sizes);
  } else if (bound > now.granted && bound >= sizes.NeededToRun()) {
    // A worker that was to be parked was bound first.
    GrowTo(plan, bound, ScaleReason::kRoomAppeared);
  } else if (now.granted < sizes.NeededToRun()) {
    PlanRaisedMinimum(plan, view, Admitted(view, sizes));
  } else if (Admitted(view, sizes).wanted > now.granted) {
    PlanGrowth(plan, view, Admitted(view, sizes), census);
  }
  // Pods deleted before the StatefulSet's controller has seen the gate would come back without it.
  if (!now.is_gated || !now.is_observed || !plan.size.is_gated) plan.park.clear();
  PlanLifts(plan, census);
  return plan;
}

}  // namespace grus
