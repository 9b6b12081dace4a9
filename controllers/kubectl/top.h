// SPDX-License-Identifier: Apache-2.0
// kubectl grus top: what the jobs that run use of their GPUs, as it is recorded in WorkloadProfiles.
//
// Pure: objects in, text out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "crds/types/elastic_horovod_job.h"
#include "crds/types/workload_profile.h"

namespace grus {

struct TopOptions {
  std::string ns = {};       // Empty: all of them.
  bool shows_ended = false;  // Also runs that are over.
};

// A table with a line for each run, those first whose GPUs idle most. Numbers that nobody told are "-". `jobs`: for
// their ETA.
std::string TopText(const std::vector<std::shared_ptr<const api::WorkloadProfile>>& profiles,
                    const std::vector<std::shared_ptr<const api::ElasticHorovodJob>>& jobs, const TopOptions& options);

}  // namespace grus
