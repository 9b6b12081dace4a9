// SPDX-License-Identifier: Apache-2.0
// The list of trials in a status: what was run, what is to be run, and what is not and why. Pure.
#pragma once

#include "controllers/trial/trial_view.h"

namespace grus {

// Of so many configurations beyond maxTrials the status tells; the rest is a number.
inline constexpr int kMostOverMax = 16;

// Those that ran come first, in the order of their start, then those to be run, then those that are not. Never more
// than kMaxTrials in all.
void ListTrials(const TrialView& view, const std::vector<api::TrialConfig>& configs, api::TrialJobStatus& status);

}  // namespace grus
