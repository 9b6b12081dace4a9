// SPDX-License-Identifier: Apache-2.0
// The class that queues know a job or gang by, from what its object says.
#pragma once

#include <optional>
#include <string_view>

#include "controllers/queues/queue_spec.h"
#include "crds/types/elastic_horovod_job.h"

namespace grus {

JobClass JobClassOf(api::WorkloadClass workload_class);
// Of the label kWorkloadClassLabel; empty: Unattended. nullopt: there is no such class.
std::optional<JobClass> JobClassOf(std::string_view label);

}  // namespace grus
