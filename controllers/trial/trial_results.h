// SPDX-License-Identifier: Apache-2.0
// The curve of throughput over GPUs, the model behind it and what it recommends, from the trials that succeeded.
//
// One model for each GPU type, of all its batch sizes; one curve for each GPU type and batch size. Sizes are those of
// the space, and doublings up to spec.extrapolate.maxGpus. A size is assumed to use as few nodes as can hold it. Pure;
// a few milliseconds per model, so only done when a trial ended.
#pragma once

#include "controllers/trial/trial_view.h"

namespace grus {

inline constexpr char kStraggler[] = "; a straggler: ";
inline constexpr std::size_t kLongestMessage = 1000;  // Of a trial or a recommendation.

// Recomputes curve, model and recommendation if the measurements in status.trials changed or the spec is new.
// `configs`: of the space.
// The message of a straggler says so, by kStraggler, and its speed is not part of the curve.
void UpdateResults(const TrialView& view, const std::vector<api::TrialConfig>& configs, api::TrialJobStatus& status);

}  // namespace grus
