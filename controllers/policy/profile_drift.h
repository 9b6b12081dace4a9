// SPDX-License-Identifier: Apache-2.0
// Whether a running job is as fast as its WorkloadProfile says: a driver, a library or a slow node shows here
// first. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "crds/types/workload_profile.h"

namespace grus {

// Steps of long runs vary more than those of a trial: with the data, with neighbours on the node, with
// checkpoints.
inline constexpr int kDriftPercent = 20;

// A job's step time at one configuration, as it was last seen.
struct ObservedStep {
  std::string job;  // NAMESPACE/NAME
  api::TrialConfig config;
  double milliseconds = 0;
  kube::Time time;
};

// Drift if the step time is over the upper end of the 90 % interval of the point of that configuration, or
// the lower end over the step time, by more than `percent`. None if the profile has no such point, if either time is none, or if
// the point was measured after the job was seen.
std::optional<api::ProfileDrift> FindDrift(const api::WorkloadProfileSpec& profile, const ObservedStep& seen,
                                           int percent = kDriftPercent);

// "team-a/bert takes 130 ms a step on 8 A100 GPUs, 30 % more than the 100 ms that were measured"
std::string DriftMessage(const api::ProfileDrift& drift);

// "8 A100 GPUs on 2 nodes with batch size 32", as far as it is known.
std::string ToText(const api::TrialConfig& config);

}  // namespace grus
