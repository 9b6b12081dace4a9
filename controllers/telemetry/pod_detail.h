// SPDX-License-Identifier: Apache-2.0
// What Prometheus is asked about each GPU and process of all pods, beside pod_usage.h, for who wants to know it in
// Alnair's words. Pure.
//
// What a source does not tell, or tells as a blank, is left out: it is never zero.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "controllers/telemetry/pod_usage.h"

namespace grus {

struct GpuProcessId {
  std::int32_t gpu = 0;  // Its index on the node.
  std::int64_t pid = 0;  // On the node; 0: the number is that of the whole GPU.
  friend auto operator<=>(const GpuProcessId&, const GpuProcessId&) = default;
};

// Of one pod, over the window of the queries.
struct PodDetail {
  std::map<GpuProcessId, double> utilization = {}, memory_utilization = {};  // Percent, the highest.
  std::map<std::int32_t, double> gpu_memory = {};                            // Bytes, the most, by GPU.
  std::optional<double> sent = {};                                           // Bytes/s to the network.
  std::optional<double> writing = {};                                        // Seconds of writing to disks, a second.
};

using DetailByPod = std::unordered_map<kube::ObjectKey, PodDetail>;

struct DetailQuery {
  std::string name = {};  // Of what is asked, for the log.
  std::string text = {};
};

// Each answers with some rows for each pod. The parameters are those of UsageQueries(), with which there are twelve.
std::vector<DetailQuery> DetailQueries(const WindowOf& window_of, const std::string& selector = {});

// Takes a row about the pod of an answer to any of them. Of two sources, the higher value counts.
void AddDetail(const QueryLabels& labels, double value, PodDetail& detail);

// `more`: of another query.
void Merge(PodDetail more, PodDetail& detail);

}  // namespace grus
