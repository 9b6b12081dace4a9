// SPDX-License-Identifier: Apache-2.0
// The job of a trial: an ElasticHorovodJob of fixed size, made from the workload. Pure.
#pragma once

#include <string>

#include "clientlib/model/json.h"
#include "controllers/trial/trial_view.h"

namespace grus {

// Beside its slice: far more than pulling an image takes, and than a clock that is set forward. A net below the slice,
// which is kept by whoever watches the trial.
inline constexpr std::int64_t kStartAllowanceSeconds = 4 * 3600;
// A trial has nothing to save when it is ended; its GPUs count until then.
inline constexpr std::int64_t kTrialGraceSeconds = 2;

struct TrialStart {
  std::string name;
  api::TrialConfig config;
  std::int64_t slice_seconds = 0;
  std::int64_t spent_before = 0;  // GPU seconds of earlier tries of the same trial.
};

// REQUIRES: config.gpus is a multiple of the workload's gpusPerWorker.
kube::Json MakeTrial(const api::TrialJob& job, const api::ElasticHorovodJobSpec& workload, const TrialStart& trial);

}  // namespace grus
