// SPDX-License-Identifier: Apache-2.0
// How fast a workload is beside one other on its GPUs, as its WorkloadProfile keeps it. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "crds/types/workload_profile.h"

namespace grus {

// "FINGERPRINT@A100": another for each partner and GPU type, of 127 bytes at most, as both are limited.
std::string CoRunName(std::string_view partner, std::string_view gpu_type);

// One sample: the speed `beside` the partner as a share of that `alone`, in the same unit. The errors of both are taken
// as independent. Errors: kInvalidArgument: nobody can have measured such a speed.
kube::Result<api::CoRun> CoRunOf(const api::Measurement& beside, const api::Measurement& alone,
                                 const std::string& partner, const std::string& gpu_type, kube::Time time);

// `known` with `added` among them: of each partner and GPU type one, with the mean of all samples. Its interval is that
// of a mean of as many: it has in it how far each sample is sure, and how much they differ.
//
// Samples have the precision of the API, a second. The one that a mean was last made of counts once, whoever tells it
// again. A sample that makes no sense is left out, and a known mean that makes none gives way to the next sample.
// Beyond `limit`, those measured longest ago go.
std::vector<api::CoRun> MergeCoRuns(std::vector<api::CoRun> known, const std::vector<api::CoRun>& added,
                                    std::size_t limit = static_cast<std::size_t>(api::kMaxCoRuns));

}  // namespace grus
