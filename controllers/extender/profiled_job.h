// SPDX-License-Identifier: Apache-2.0
// WorkloadProfiles as jobs that share GPUs: what each does when it is alone, and how fast it was beside others. Pure.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "controllers/interference/shared_job.h"
#include "crds/types/workload_profile.h"

namespace grus {

// The workload of a profile on GPUs of this type; what was not measured there is not known.
SharedJob SharedJobOf(const api::WorkloadProfile& profile, const std::string& gpu_type);

// All co-runs of these profiles, but those that no measurement can say. A partner without a profile among them is known
// by its name alone.
std::vector<CoRunSample> CoRunSamplesOf(std::span<const std::shared_ptr<const api::WorkloadProfile>> profiles);

}  // namespace grus
