// SPDX-License-Identifier: Apache-2.0
// The status of a WorkloadProfile, computed from its points: a model and a knee for each GPU type, and a sentence.
//
// The knee of a GPU type is that of the batch size with the most points (of equals, the largest), among the sizes
// measured and the doublings between them. It is missing if the model's interval is too wide, or if it would be the
// largest size measured and twice as many GPUs might be faster: status.knee says "8+" then.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "crds/types/workload_profile.h"

namespace grus {

inline constexpr std::size_t kMaxProfileGpuTypes = 16;  // The limit of the CRD.

// Reasons of the condition Drifted.
inline constexpr char kReasonSlower[] = "SlowerThanMeasured", kReasonFaster[] = "FasterThanMeasured",
                      kReasonAgrees[] = "AgreesAgain", kReasonMeasuredAgain[] = "MeasuredAgain";

// "expected 800 samples/s +- 3 % on 4 A100 GPUs, team-a/bert runs at 500"
std::string DriftMessage(const api::ProfileDrift& drift, api::ThroughputUnit unit);

// `profile.status`, updated from `profile.spec`. A drift stays until its configuration is measured again; the condition
// then says how it ended.
api::WorkloadProfileStatus ProfileStatusOf(const api::WorkloadProfile& profile, kube::WallTime now);

}  // namespace grus
