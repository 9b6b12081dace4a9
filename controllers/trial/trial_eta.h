// SPDX-License-Identifier: Apache-2.0
// When a TrialJob is done: by the trials that are left, how long others took that succeeded, and what limits them.
// Pure.
#pragma once

#include <optional>

#include "controllers/trial/trial_view.h"

namespace grus {

struct TrialEnd {
  std::optional<kube::Time> expected;  // None: no trial has succeeded yet, so nobody knows how long they take.
  kube::Time latest;                   // If each takes its whole slice, as far as the budget lasts.
};

// Neither counts how long trials wait for room, nor trials that are added: repeats, or a smaller batch.
// REQUIRES: trials run, or the GPUs of the last one are being given back.
TrialEnd EndOfTrials(const TrialView& view, const api::TrialJobStatus& status);

// Sets eta and etaLatest; missing unless the phase is Running. What a reader would not notice stays as it was.
void SetEta(const TrialView& view, api::TrialJobStatus& status);

// Takes eta and etaLatest back if nothing else has changed: they are not worth a write of their own.
void KeepEtaUnlessOthersChange(const api::TrialJobStatus& before, api::TrialJobStatus& status);

}  // namespace grus
