// SPDX-License-Identifier: Apache-2.0
// What a TrialJob asks a Prometheus. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace grus {

// Replaces $NAMESPACE and $JOB in the query.
std::string ExpandQuery(std::string query, const std::string& ns, const std::string& job);

// What NVIDIA's dcgm-exporter reported for the GPUs of a trial's workers or pods in the last `seconds`: the peak memory
// of any of them, in MiB, and their mean utilisation in percent. Its labels for the pod of a GPU are pod and namespace,
// which Prometheus renames to exported_pod and exported_namespace unless the scrape has honorLabels.
std::string PeakMemoryQuery(const std::string& ns, const std::string& job, std::int64_t seconds);
std::string UtilizationQuery(const std::string& ns, const std::string& job, std::int64_t seconds);

}  // namespace grus
