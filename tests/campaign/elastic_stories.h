// SPDX-License-Identifier: Apache-2.0
// What the stories of ElasticHorovodJobs share: a cluster with one job, and the steps of its user.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tests/campaign/elastic_workload.h"

namespace grus::testing {

using ElasticStory = ElasticWorkload::Traits;

inline constexpr char kName[] = "train";

// So many nodes of so many GPUs, node-0 and on, and a job with that spec.
std::function<void(World&)> Cluster(int nodes, int gpus, std::string_view spec);
Step UntilTrains(int workers, std::function<void(World&)> act = nullptr);
Step UntilPhase(std::string phase, std::function<void(World&)> act = nullptr);
Step UntilOver(std::string phase, std::function<void(World&)> act = nullptr);  // And its workers are gone.
std::function<void(World&)> Edits(std::string spec);
std::function<void(World&)> Ends(std::string outcome);

}  // namespace grus::testing
