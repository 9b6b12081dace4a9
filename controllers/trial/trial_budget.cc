// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_budget.h"

#include <algorithm>

#include "controllers/trial/trial_children.h"
#include "controllers/trial/trial_outcome.h"

namespace grus {
namespace {

// What ending a trial takes of the budget: the grace of its pods, and a second for rounding.
constexpr std::int64_t kEndSeconds = kTrialGraceSeconds + 1;

}  // namespace

std::int64_t GpuSecondsOf(std::int64_t slice_seconds, int gpus) { return (slice_seconds + kEndSeconds) * gpus; }

BudgetState LeftOf(const TrialView& view, const api::TrialJobStatus& status) {
  BudgetState left;
  const api::TrialBudget& budget = view.job->spec.budget;
  if (budget.wall_seconds) left.wall_seconds = *budget.wall_seconds - status.spent.wall_seconds;
  if (!budget.gpu_seconds) return left;
  left.gpu_seconds = *budget.gpu_seconds - status.spent.gpu_seconds;
  for (const api::Trial& trial : status.trials) {
    const auto run = view.runs.find(trial.name);
    if (!IsActive(trial.phase) || run == view.runs.end() || !run->second.child) continue;
    const TrialChild& child = *run->second.child;
    const std::int64_t has_spent = trial.gpu_seconds - child.spent_before;
    *left.gpu_seconds -= std::max<std::int64_t>(0, GpuSecondsOf(child.slice_seconds, trial.config.gpus) - has_spent);
  }
  return left;
}

std::optional<std::int64_t> SliceFor(const api::TrialBudget& budget, const BudgetState& left, int gpus) {
  std::int64_t slice = budget.per_trial_seconds;
  if (left.wall_seconds) slice = std::min(slice, *left.wall_seconds);
  if (left.gpu_seconds) slice = std::min(slice, *left.gpu_seconds / gpus - kEndSeconds);
  const std::int64_t least = std::min<std::int64_t>(budget.per_trial_seconds, kShortestSlice.count());
  if (slice < std::max<std::int64_t>(1, least)) return std::nullopt;
  return slice;
}

}  // namespace grus
