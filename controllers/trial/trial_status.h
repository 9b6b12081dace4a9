// SPDX-License-Identifier: Apache-2.0
// The part of a TrialJob's status that users read: phase, conditions, progress, and sentences with numbers. Pure.
#pragma once

#include <string>

#include "controllers/frame/kstatus.h"
#include "controllers/trial/trial_view.h"

namespace grus {

// The status as it was, without the CRD's defaults.
api::TrialJobStatus BaseTrialStatus(const TrialView& view);

// Null: it is not there.
const api::Trial* FindTrial(const api::TrialJobStatus& status, const std::string& name);

bool WasSuspended(const api::TrialJobStatus& status);

// Its child belongs to somebody else.
StartRefusal TakenName(const std::string& trial, const TrialChild& child);

// What a user must hear of a write that is forbidden: to grus by its rights, or to anybody by an admission check.
api::TrialJobReason ReasonOfForbidden(const kube::Error& error);

// Phase, and the conditions Ready, Reconciling and Stalled, and Suspended if it was ever set. `is_end` adds Complete or
// Failed.
void SetStanding(api::TrialJobStatus& status, const TrialView& view, api::TrialJobPhase phase, Standing standing,
                 api::TrialJobReason reason, const std::string& message, bool is_end = false);

// "trial 3 of 8: 4 A100 GPUs, measuring: 812 samples/s +- 7 %"
std::string RunningMessage(const api::TrialJobStatus& status);
// Sets "5/8".
void SetProgress(api::TrialJobStatus& status);

// Whether only numbers and sentences differ, so that the write may be deferred.
bool IsMinorTrialChange(const api::TrialJobStatus& before, const api::TrialJobStatus& after);

}  // namespace grus
