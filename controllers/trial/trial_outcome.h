// SPDX-License-Identifier: Apache-2.0
// Judges one running trial: its phase, what it has cost, whether it ends, and why. Pure.
#pragma once

#include "controllers/trial/trial_plan.h"

namespace grus {

bool IsActive(api::TrialPhase phase);  // Starting, Warming or Measuring.
bool HasEnded(api::TrialPhase phase);  // Succeeded, Failed or Skipped.

// GPU seconds of the trial so far, all tries together.
std::int64_t SpentOn(const api::Trial& trial, const TrialRun& run, kube::Time now);
// The child has ended by itself, and will hold no GPUs.
bool HasFinished(const TrialChild& child);
// The GPUs of the trial are not free yet.
bool HoldsGpus(const TrialRun& run);
// Some object of a trial has not been deleted yet.
bool HasLeftovers(const TrialView& view);

// Returns the updated trial. REQUIRES: `trial` is active.
api::Trial Judge(const TrialView& view, const api::Trial& trial, const TrialRun& run, api::ThroughputUnit& unit);

// Time until the end of the trial's slice, when it needs a pass even without a change.
std::optional<kube::Duration> SliceLeft(const TrialRun& run, kube::Time now);

// Whether every other trial of the workload would fail in the same way. `has_success`: some trial succeeded.
bool IsCommonFailure(const api::Trial& trial, bool has_success);

}  // namespace grus
