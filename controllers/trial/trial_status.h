// SPDX-License-Identifier: Apache-2.0
// What a user reads of a TrialJob: phase, conditions, progress, and sentences with numbers. Pure.
#pragma once

#include <string>

#include "controllers/frame/kstatus.h"
#include "controllers/trial/trial_view.h"

namespace grus {

// The status as it was, without what the CRD put there before we looked.
api::TrialJobStatus BaseTrialStatus(const TrialView& view);

bool WasSuspended(const api::TrialJobStatus& status);

// "PodGroup \"tune-g8-x\""
std::string TakenName(const std::string& trial, const TrialChild& child);

// Phase, and the conditions Ready, Reconciling and Stalled, and Suspended where it ever was. `is_end` adds Complete
// or Failed.
void SetStanding(api::TrialJobStatus& status, const TrialView& view, api::TrialJobPhase phase, Standing standing,
                 api::TrialJobReason reason, const std::string& message, bool is_end = false);

// "trial 3 of 8: 4 A100 GPUs, measuring: 812 samples/s +- 7 %"
std::string RunningMessage(const api::TrialJobStatus& status);
// Sets "5/8".
void SetProgress(api::TrialJobStatus& status);

// A change of numbers and sentences alone, which may wait for company.
bool IsMinorTrialChange(const api::TrialJobStatus& before, const api::TrialJobStatus& after);

}  // namespace grus
