// SPDX-License-Identifier: Apache-2.0
// How one running trial stands: what phase it is in, what it has cost, whether it ends, and why. Pure.
#pragma once

#include "controllers/trial/trial_plan.h"

namespace grus {

bool IsActive(api::TrialPhase phase);  // Starting, Warming or Measuring.
bool HasEnded(api::TrialPhase phase);  // Succeeded, Failed or Skipped.

// GPU seconds of the trial so far, all tries together.
std::int64_t SpentOn(const api::Trial& trial, const TrialRun& run, kube::Time now);
// It has ended by itself, and will hold nothing.
bool HasFinished(const TrialChild& child);
// Its GPUs are not free yet.
bool HoldsGpus(const TrialRun& run);
// Something of a trial is there that is to go yet.
bool HasLeftovers(const TrialView& view);

// The trial after a look at it. REQUIRES: it is active.
api::Trial Judge(const TrialView& view, const api::Trial& trial, const TrialRun& run, api::ThroughputUnit& unit);

// When it has to be looked at again although nothing happens: its slice ends.
std::optional<kube::Duration> SliceLeft(const TrialRun& run, kube::Time now);

// A failure that every other trial of the workload would have, too. `has_success`: some trial succeeded.
bool IsCommonFailure(const api::Trial& trial, bool has_success);

}  // namespace grus
