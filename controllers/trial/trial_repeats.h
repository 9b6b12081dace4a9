// SPDX-License-Identifier: Apache-2.0
// Which trials are run once more. Pure.
#pragma once

#include "controllers/trial/trial_view.h"

namespace grus {

// When all others have ended, makes a straggler pending again, each once, if the budget is enough: a sick node or a
// busy network is not there for every trial.
void RepeatStragglers(const TrialView& view, api::TrialJobStatus& status);

}  // namespace grus
