// SPDX-License-Identifier: Apache-2.0
// Whether a running job is as fast as its WorkloadProfile says: a bad driver, a bad library or a slow node shows here
// first. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "crds/types/workload_profile.h"

namespace grus {

// Long runs vary more than trials: with the data, with neighbours on the node, with checkpoints.
inline constexpr int kDriftPercent = 20;

// The mean and its 90 % interval.
struct Interval {
  double mean = 0, low = 0, high = 0;
};

// None: the measurement has no throughput. A missing end of the interval is the mean.
std::optional<Interval> ThroughputOf(const api::Measurement& measured);

std::string_view UnitText(api::ThroughputUnit unit);  // "samples/s"

// A job's speed at one configuration, as it was last seen, in the unit of its profile.
struct ObservedSpeed {
  std::string job;  // NAMESPACE/NAME
  api::TrialConfig config;
  api::Measurement measured;
  kube::Time time;
};

// The newest point at `config`; null: none. A number of nodes that is not known matches any: a trial may not tell how
// many it ran on.
const api::ProfilePoint* FindPoint(const api::WorkloadProfileSpec& profile, const api::TrialConfig& config);

// Whether the 90 % intervals of both throughputs overlap when each upper end is raised by `percent`. None: one of them
// has no throughput.
std::optional<bool> DoAgree(const api::Measurement& a, const api::Measurement& b, int percent = kDriftPercent);

// Drift if the point of that configuration and the job do not agree. None if the profile has no such point, if either
// throughput is none, or if the point was measured after the job was seen.
std::optional<api::ProfileDrift> FindDrift(const api::WorkloadProfileSpec& profile, const ObservedSpeed& seen,
                                           int percent = kDriftPercent);

bool IsSlower(const api::ProfileDrift& drift);

// As it may be tried: the number of nodes is told only afterwards.
api::TrialConfig WithoutNodes(api::TrialConfig config);

// "8 A100 GPUs on 2 nodes with batch size 32", as far as it is known.
std::string ToText(const api::TrialConfig& config);

}  // namespace grus
