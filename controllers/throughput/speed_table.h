// SPDX-License-Identifier: Apache-2.0
// The speed curve of a job as the allocator reads it, from the WorkloadProfile of its workload.
//
// Pure function.
#pragma once

#include <string>
#include <vector>

#include "controllers/policy/allocation.h"
#include "crds/types/workload_profile.h"

namespace grus {

// The sizes that were measured, and those between them that double from one worker, as far as the model answers
// them. All are whole workers. A size that was measured is on the nodes that it was measured on, others are on as few
// as can hold their workers. The unit of speed is that of the profile; the batch size is the one that the knee is about
// (see profile_measurements.h). Speeds and bands are positive and finite.
//
// `gpu_type` may be empty, for not known: a profile of one type is about that one.
//
// Empty: that type has not been measured at two sizes, no size has an answer, or one of the numbers is less than 1.
std::vector<SpeedPoint> SpeedTableOf(const api::WorkloadProfileSpec& profile, const std::string& gpu_type,
                                     int gpus_per_worker, int most_workers, int gpus_per_node);

}  // namespace grus
