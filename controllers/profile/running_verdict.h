// SPDX-License-Identifier: Apache-2.0
// What the speed of a running job means for its WorkloadProfile.
//
// A speed that agrees with the profile changes nothing, but refreshes a value that is older than kRefreshAfter. A speed
// on a configuration without a point is added. A speed that does not agree is a drift: it is written to the status, and
// replaces the value only once it is confirmed. A drift belongs to the job that it names. While it stands, no other job
// replaces or ends it.
//
// All this is about jobs that have their GPUs for themselves; beside others, their speed is a co-run (co_runs.h), or
// says nothing.
//
// Pure functions.
#pragma once

#include <optional>

#include "controllers/measure/speed_reader.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/profile/profile_store.h"

namespace grus {

inline constexpr std::chrono::hours kRefreshAfter{24 * 7};
inline constexpr double kUsablePrecision = 0.1;  // Half of the 90 % interval, relative to the mean.

enum class SpeedVerdict {
  kNotComparable,
  kNew,  // The profile has no such configuration.
  kAgrees,
  kDrifts,
  kReplaces,  // Replaces the profile's value, which drifted.
};

// What else is known when a speed is judged.
struct DriftContext {
  // The job drifted to the same speed before, and no other job agrees with the profile.
  bool is_confirmed = false;
  // The drift in the status is of another job, which still runs at that speed.
  bool does_other_stand = false;
  // All GPUs of the cluster are of one type, so points without one are about it.
  bool may_be_untyped = false;
};

struct JudgedSpeed {
  SpeedVerdict verdict = SpeedVerdict::kNotComparable;
  ProfileEdit edit;                        // The change of the profile; nothing is written if there is none.
  std::optional<api::ProfileDrift> drift;  // Between the job and the profile.
};

// The speed in the log of a job that runs on `config`, in the unit of the profile. None: it cannot be compared. Where
// the log does not say how many samples a step has, the profile's point of that configuration does.
std::optional<api::Measurement> MeasurementOfRunning(SpeedObservation seen, const api::TrialConfig& config,
                                                     const api::WorkloadProfileSpec& profile);

// The point that a speed on `config` is compared with; null: none. `may_be_untyped`: see DriftContext.
const api::ProfilePoint* PointFor(const api::WorkloadProfileSpec& profile, const api::TrialConfig& config,
                                  bool may_be_untyped);

// `unit` is that of `seen`.
JudgedSpeed JudgeSpeed(const api::WorkloadProfile& profile, ObservedSpeed seen, api::ThroughputUnit unit,
                       const DriftContext& context);

}  // namespace grus
