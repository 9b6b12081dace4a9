// SPDX-License-Identifier: Apache-2.0
// The public tables of co-runs in bench/data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/interference/shared_job.h"

namespace grus {

// With solo utilisation and step time.
kube::Result<std::vector<CoRunSample>> LoadAlnair(const std::filesystem::path& data);

// Of these GPU types, without features. The names hold the batch sizes; `hides_names` replaces them by letters.
kube::Result<std::vector<CoRunSample>> LoadGavel(const std::filesystem::path& data,
                                                 const std::vector<std::string>& gpu_types, bool hides_names = false);

}  // namespace grus
