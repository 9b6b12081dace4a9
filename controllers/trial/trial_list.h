// SPDX-License-Identifier: Apache-2.0
// The list of trials in a status: those that ran, those to be run, and those skipped, with the reason. Pure.
#pragma once

#include "controllers/trial/trial_view.h"

namespace grus {

// The configurations of the space, in the order to try them; `trials` are those of the status. Error as ConfigsOf().
kube::Result<std::vector<api::TrialConfig>> ConfigsToTry(const TrialView& view, const std::vector<api::Trial>& trials);

// The status lists this many configurations beyond maxTrials; of the rest it gives only the number.
inline constexpr int kMostOverMax = 16;

// Trials that ran come first, in the order of their start, then those to be run, then those skipped. At most
// kMaxTrials.
void ListTrials(const TrialView& view, const std::vector<api::TrialConfig>& configs, api::TrialJobStatus& status);

}  // namespace grus
