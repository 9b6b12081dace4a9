// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_plan.h"

#include <algorithm>
#include <chrono>

namespace grus {
namespace {

using kube::Duration;
using std::chrono::seconds;

// The pods of the StatefulSet, sorted by what the plan may do with them.
struct Census {
  std::vector<const Worker*> bound;    // On a node that exists.
  std::vector<const Worker*> waiting;  // Not bound, not gated: the scheduler's turn, within the grace.
  std::vector<const Worker*> expired;  // Unschedulable for longer than the grace.
  std::vector<const Worker*> gated;
  std::optional<Duration> next_expiry;
};

Census Count(const View& view, int replicas, Duration grace) {
  Census census;
  for (const Worker& worker : view.pods) {
    if (worker.is_ending || worker.has_lost_node || worker.ordinal >= replicas) continue;
    if (worker.is_bound) {
      census.bound.push_back(&worker);
    } else if (worker.is_gated) {
      census.gated.push_back(&worker);
    } else if (worker.unschedulable_since && Waited(view.now, *worker.unschedulable_since) >= grace) {
      census.expired.push_back(&worker);
    } else {
      census.waiting.push_back(&worker);
      if (worker.unschedulable_since) {
        const Duration left = grace - Waited(view.now, *worker.unschedulable_since);
        census.next_expiry = std::min(census.next_expiry.value_or(left), left);
      }
    }
  }
  return census;
}

void LookAgain(WorkerPlan& plan, Duration delay) {
  plan.look_again = std::min(plan.look_again.value_or(delay), delay);
}

// Time left of the cool-down after the last change of size; zero or less if it is over.
Duration CooldownLeft(const View& view) {
  const auto& last = view.job->status.last_scale;
  if (!last) return Duration::zero();
  return seconds(view.job->spec.elastic.cooldown_seconds) - Waited(view.now, last->time);
}

bool LastReasonIs(const View& view, ScaleReason reason) {
  const auto& last = view.job->status.last_scale;
  return last && last->reason == ToString(reason);
}

WorkerPlan PlanStart(const View& view, const Sizes& sizes) {
  WorkerPlan plan;
  if (sizes.wanted == 0) return plan;
  if (const Duration left = StartDelay(view); left > Duration::zero()) {
    plan.is_waiting = true;
    LookAgain(plan, left);
    return plan;
  }
  const int start = std::min(sizes.wanted, view.room.copies);
  if (!view.may_start || start < sizes.NeededToRun()) {
    plan.is_waiting = true;
    return plan;
  }
  // Only what fits is created at first. The rest is asked for when these are bound, so that the ordinals that do
  // not fit are the highest and can be scaled away again.
  plan.size = {start, start, false, false};
  plan.reason = ScaleReason::kStarted;
  return plan;
}

// Keeps the workers in `keep`, which are all that may run, and frees every other ordinal: above the highest kept
// one by scaling, in between by parking.
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

void GrowTo(WorkerPlan& plan, const WorkersState& now, int granted, ScaleReason reason) {
  plan.size = now;
  plan.size.granted = granted;
  plan.size.replicas = std::max(now.replicas, granted);
  plan.size.is_gated = plan.size.replicas > granted;
  plan.reason = reason;
}

// The user wants fewer: the highest ordinals go, after they left host discovery.
void PlanUserShrink(WorkerPlan& plan, const Census& census, const Sizes& sizes) {
  std::vector<const Worker*> keep = census.bound;
  keep.insert(keep.end(), census.waiting.begin(), census.waiting.end());
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

// What growth there is to have now: asked for blindly when the user just chose, else as far as there is room.
void PlanGrowth(WorkerPlan& plan, const View& view, const Sizes& sizes, const Census& census) {
  const WorkersState& now = *view.workers;
  const api::ElasticHorovodJob& job = *view.job;
  const bool are_all_bound = static_cast<int>(census.bound.size()) >= now.granted;
  if (LastReasonIs(view, ScaleReason::kStarted)) {
    // Asked of the scheduler once, whatever our own count of free GPUs says.
    if (are_all_bound) GrowTo(plan, now, sizes.wanted, ScaleReason::kRequested);
    return;
  }
  const bool did_user_choose = job.status.observed_generation != job.metadata.generation &&
                               job.spec.workers.target_replicas.has_value();
  if (did_user_choose && now.granted == now.replicas) {
    GrowTo(plan, now, sizes.wanted, ScaleReason::kSpecChanged);
    return;
  }
  if (!job.spec.elastic.scale_up || view.room.copies == 0) return;
  if (const Duration left = CooldownLeft(view); left > Duration::zero()) {
    LookAgain(plan, left);
    return;
  }
  GrowTo(plan, now, std::min(sizes.wanted, now.granted + view.room.copies), ScaleReason::kRoomAppeared);
}

// The user raised the minimum above what runs: as many more as it takes, at once, or none.
void PlanRaisedMinimum(WorkerPlan& plan, const View& view, const Sizes& sizes) {
  const int granted = std::min(sizes.wanted, view.workers->granted + view.room.copies);
  if (granted >= sizes.NeededToRun()) return GrowTo(plan, *view.workers, granted, ScaleReason::kSpecChanged);
  plan.size = {0, 0, false, false};
  plan.reason = ScaleReason::kBelowMinimum;
  plan.is_waiting = true;
}

}  // namespace

Duration StartDelay(const View& view) {
  if (!LastReasonIs(view, ScaleReason::kBelowMinimum)) return Duration::zero();
  return std::max(CooldownLeft(view), Duration::zero());
}

std::string_view ToString(ScaleReason reason) {
  switch (reason) {
    case ScaleReason::kNone: return "";
    case ScaleReason::kStarted: return "Started";
    case ScaleReason::kRequested: return "Requested";
    case ScaleReason::kSpecChanged: return "SpecChanged";
    case ScaleReason::kUnschedulable: return "Unschedulable";
    case ScaleReason::kRoomAppeared: return "RoomAppeared";
    case ScaleReason::kBelowMinimum: return "BelowMinimum";
  }
  return "";
}

WorkerPlan PlanWorkers(const View& view, const Sizes& sizes) {
  if (!view.workers || view.workers->replicas == 0) return PlanStart(view, sizes);

  const WorkersState& now = *view.workers;
  const Census census = Count(view, now.replicas, seconds(view.job->spec.elastic.unschedulable_grace_seconds));
  const int bound = static_cast<int>(census.bound.size());
  WorkerPlan plan;
  plan.size = now;
  plan.size.is_gated = now.replicas > now.granted;  // Also after somebody scaled the StatefulSet by hand.
  if (census.next_expiry) LookAgain(plan, *census.next_expiry);
  if (const int owed = std::min(now.promised, sizes.wanted); now.replicas < owed) {
    // Scaled down by hand: what was granted comes back.
    plan.size = {owed, owed, false, false};
    return plan;
  }

  if (!census.expired.empty()) {
    // Pods that do not exist yet, or are being replaced, still have their chance.
    const int known = static_cast<int>(census.bound.size() + census.waiting.size() + census.expired.size());
    const int missing = std::max(0, now.granted - known);
    std::vector<const Worker*> keep = census.bound;
    keep.insert(keep.end(), census.waiting.begin(), census.waiting.end());
    const int kept = static_cast<int>(keep.size()) + missing;
    if (kept < sizes.NeededToRun()) {
      plan.size = {0, 0, false, false};
      plan.reason = ScaleReason::kBelowMinimum;
      plan.is_waiting = true;
      return plan;
    }
    if (kept < now.granted) {
      ShrinkTo(plan, std::move(keep), missing, census, ScaleReason::kUnschedulable);
    } else if (now.is_gated && now.is_observed) {
      // Shrunk already: what is still unschedulable in between is parked.
      plan.park = census.expired;
    }
  } else if (sizes.wanted < std::max(now.granted, bound)) {
    PlanUserShrink(plan, census, sizes);
  } else if (bound > now.granted) {
    // One that was to be parked found a place first.
    GrowTo(plan, now, bound, ScaleReason::kRoomAppeared);
  } else if (now.granted < sizes.NeededToRun()) {
    PlanRaisedMinimum(plan, view, sizes);
  } else if (sizes.wanted > now.granted) {
    PlanGrowth(plan, view, sizes, census);
  }
  // Deleting before the StatefulSet's controller has seen the gate would bring the pods back without it.
  if (!now.is_gated || !now.is_observed || !plan.size.is_gated) plan.park.clear();
  PlanLifts(plan, census);
  return plan;
}

}  // namespace grus
