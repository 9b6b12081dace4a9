// SPDX-License-Identifier: Apache-2.0
// What of a budget is left for new trials. Pure.
#pragma once

#include <optional>

#include "controllers/trial/trial_view.h"

namespace grus {

inline constexpr std::chrono::seconds kShortestSlice{30};  // Shorter is not worth a start, unless the user asks for it.

// Left for new trials; none: no limit.
struct BudgetState {
  std::optional<std::int64_t> gpu_seconds, wall_seconds;
};

// Less what was spent, and less what the trials that run may still spend.
BudgetState LeftOf(const TrialView& view, const api::TrialJobStatus& status);

// Seconds for one more trial on so many GPUs; none: not worth a start.
std::optional<std::int64_t> SliceFor(const api::TrialBudget& budget, const BudgetState& left, int gpus);

// Of a slice that is begun, with the end of the trial.
std::int64_t GpuSecondsOf(std::int64_t slice_seconds, int gpus);

}  // namespace grus
