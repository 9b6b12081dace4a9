// SPDX-License-Identifier: Apache-2.0
// Metrics of jobs that run, for alerts and dashboards: what they used in the last minute, and how far they are. Only
// the process that leads has them. The watches must outlive the last scrape.
#pragma once

#include "clientlib/runtime/metrics.h"

namespace grus {

class ProgressWatch;
class UsageWatch;

// grus_job_gpus, grus_job_gpu_utilization_ratio, grus_job_gpu_memory_used_bytes, grus_job_gpu_memory_bytes, with the
// labels job_namespace, job_kind and job_name. A number that no source told is missing.
void AddUsageMetrics(kube::Registry& registry, const UsageWatch& watch);

// grus_job_step, with job_namespace and job_name: of trainings whose log was read lately and counts steps.
void AddProgressMetrics(kube::Registry& registry, const ProgressWatch& watch);

}  // namespace grus
