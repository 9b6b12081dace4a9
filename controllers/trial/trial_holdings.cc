// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_holdings.h"

#include <algorithm>

#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_status.h"

namespace grus {
namespace {

constexpr kube::Duration kWhole = std::chrono::seconds(1);  // Times of pods have no fractions of it.
constexpr kube::Duration kJump = std::chrono::seconds(2);

// The later, and the earlier, of those that there are.
std::optional<kube::Time> Latest(std::optional<kube::Time> a, std::optional<kube::Time> b) { return std::max(a, b); }
std::optional<kube::Time> Earliest(std::optional<kube::Time> a, std::optional<kube::Time> b) {
  return a && b ? std::min(a, b) : std::max(a, b);
}

// How long this try has held by the status, at least.
kube::Duration Counted(const api::Trial* written, const TrialChild& child) {
  if (written == nullptr || written->config.gpus < 1) return kube::Duration::zero();
  const std::int64_t gpu_seconds = std::max<std::int64_t>(0, written->gpu_seconds - child.spent_before);
  return std::chrono::seconds(gpu_seconds / written->config.gpus);
}

// How long this try has held, to a process that finds it.
kube::Duration HeldSoFar(const api::TrialJobStatus& status, const api::Trial* written, const TrialChild& child,
                         kube::Time bound, kube::WallTime wall) {
  const kube::Duration by_pods = wall - bound.value, counted = Counted(written, child);
  if (counted == kube::Duration::zero() || !status.spent.time) return std::max(by_pods, counted);
  const kube::Duration by_count = counted + std::max<kube::Duration>(wall - status.spent.time->value, {});
  const bool has_jumped = by_pods < counted || by_pods > by_count;
  return has_jumped ? by_count : by_pods;
}

}  // namespace

void TrialHoldings::NoteGone(const std::string& trial, const kube::Pod& worker) {
  Gone& gone = trials_[trial].gone;
  const std::optional<kube::Time> ended = EndedAt(worker);
  gone.first_bound = Earliest(gone.first_bound, BoundAt(worker));
  gone.last_end = Latest(gone.last_end, ended);
  gone.has_unknown_end = gone.has_unknown_end || !ended;
}

void TrialHoldings::DropEmpty() {
  std::erase_if(trials_, [](const auto& trial) {
    const auto& [held, gone] = trial.second;
    return !held && !gone.first_bound && !gone.last_end && !gone.has_unknown_end;
  });
}

void TrialHoldings::SetHeld(const std::string& trial, const api::TrialJobStatus& status,
                            std::optional<kube::TimePoint> made, const kube::Clock& clock, TrialRun& run) {
  const api::Trial* written = FindTrial(status, trial);
  const kube::TimePoint now = clock.Now();
  const kube::WallTime wall = clock.WallNow();
  auto& [held, gone] = trials_[trial];
  const bool is_ours = run.child && run.child->is_ours;
  if (is_ours && held && held->child_uid != run.child->uid) held.reset();
  if (is_ours && gone.first_bound < run.child->created) gone = {};  // Of an earlier try.
  const std::optional<kube::Time> bound = Earliest(run.pods.first_bound, gone.first_bound);
  const std::optional<kube::Time> end = Latest(run.pods.last_end, gone.last_end);
  const bool is_end_known = end && !run.pods.has_unknown_end && !gone.has_unknown_end;
  // A pod that ended before it was seen running held its GPUs all the same.
  const bool has_held = run.pods.holding > 0 || (written != nullptr && IsActive(written->phase) && is_end_known);
  if (!held && is_ours && bound && has_held) {
    const bool is_behind = !made && wall < bound->value;
    kube::Duration so_far = HeldSoFar(status, written, *run.child, *bound, wall);
    if (made) so_far = std::min(so_far, now - *made);
    held = Held{run.child->uid, now - so_far, *bound, run.child->spent_before, now, wall, is_behind};
  }
  if (!held) return;
  const Held& it = *held;
  run.held_since = kube::Time{wall - std::chrono::duration_cast<kube::WallTime::duration>(now - it.since)};
  run.held_spent_before = it.spent_before;
  const kube::Duration jumped = (wall - it.seen_wall) - (now - it.seen);
  if (run.pods.holding > 0 || !is_end_known || *end < it.bound || jumped > kJump || jumped < -kJump) return;
  run.held_for = end->value - it.bound.value + kWhole;
  if (!it.is_behind) run.held_for = std::min<kube::Duration>(*run.held_for, now - it.since);
}

}  // namespace grus
