// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_repeats.h"

#include <algorithm>

#include "controllers/trial/trial_budget.h"
#include "controllers/trial/trial_outcome.h"
#include "controllers/trial/trial_results.h"

namespace grus {

void RepeatStragglers(const TrialView& view, api::TrialJobStatus& status) {
  const bool has_others = std::ranges::any_of(status.trials, [](const api::Trial& trial) {
    return trial.phase == api::TrialPhase::kPending || IsActive(trial.phase);
  });
  if (has_others) return;
  for (api::Trial& trial : status.trials) {
    const bool is_straggler =
        trial.phase == api::TrialPhase::kSucceeded && trial.message.view().find(kStraggler) != std::string::npos;
    if (!is_straggler || trial.is_repeat) continue;
    if (!SliceFor(view.job->spec.budget, LeftOf(view, status), trial.config.gpus)) continue;
    trial.is_repeat = true;
    trial.phase = api::TrialPhase::kPending;
    trial.reason = api::TrialReason::kNone;
    trial.measured.reset();
    const std::string message = "to be measured again; it was " + trial.message;
    trial.message = std::string_view(message).substr(0, kLongestMessage);
  }
}

}  // namespace grus
