// SPDX-License-Identifier: Apache-2.0
// How much of a budget is left for new trials. Pure.
#pragma once

#include <optional>

#include "controllers/trial/trial_view.h"

namespace grus {

inline constexpr std::chrono::seconds kShortestSlice{30};  // Shorter is not worth a start, unless the user asks for it.

// Left for new trials; none: no limit.
struct BudgetState {
  std::optional<std::int64_t> gpu_seconds, wall_seconds;
};

// The budget less what was spent, and less what running trials may still spend.
BudgetState LeftOf(const TrialView& view, const api::TrialJobStatus& status);

// Seconds for one more trial on `gpus` GPUs; none: not worth a start.
std::optional<std::int64_t> SliceFor(const api::TrialBudget& budget, const BudgetState& left, int gpus);

// The most that a trial with this slice spends, including its end.
std::int64_t GpuSecondsOf(std::int64_t slice_seconds, int gpus);

}  // namespace grus
