// SPDX-License-Identifier: Apache-2.0
// What must hold of ElasticHorovodJobs and their pods, at each revision and at rest.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

inline constexpr char kPods[] = "pods", kLaunchers[] = "jobs.batch";

// A launcher is never doubled, nor deleted while it runs and its Job stays, nor made before the minimum of workers
// runs. Workers are granted as the spec allows. A job that has ended makes nothing any more. No GPU is given twice. A
// worker that trains is given up only after it has left the host list. And none of these for longer than `slack`: a job
// has more or fewer workers than it is granted; it says Training while no launcher runs or fewer than its minimum of
// listed workers can be reached; a host is listed that is none, since its pod is deleted, not ready, or elsewhere; a
// worker that cannot start holds GPUs for longer than a minute; a job says Training whose launcher has printed nothing
// for longer than ten minutes.
std::vector<kube::testing::Invariant> ElasticInvariants(kube::Duration slack);

// At rest none of the latter holds at all, but for silence, which a rest is.
void CheckElasticJobs(const World& world, std::vector<std::string>& complaints);

bool IsOfJob(const Json& object, const std::string& job);
bool HasRole(const Json& object, const char* role);  // "worker" or "launcher".

using Hosts = std::multimap<std::string, std::string>;  // Pod to address.
Hosts HostsOf(const Json& config_map);

}  // namespace grus::testing
