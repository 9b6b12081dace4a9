// SPDX-License-Identifier: Apache-2.0
// What Prometheus is asked about all pods at once, and what its answers say of each. Pure.
//
// Sources: NVIDIA's dcgm-exporter or grus-node-agent for GPUs; the kubelet's cAdvisor, or one of its own, for the rest.
// What a source does not tell, or tells as a blank, is left out: it is never zero.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "clientlib/model/meta.h"

namespace grus {

// The labels by which exporters may name a pod. Above the bounds, a number is none: DCGM's blanks are near 2^63.
inline constexpr char kPodLabels[] =
    "namespace,pod,exported_namespace,exported_pod,container_label_io_kubernetes_pod_namespace,"
    "container_label_io_kubernetes_pod_name";
inline constexpr double kMostBytes = 1e14, kMostGpuMemory = 1e12;

// Of one pod, over the window of the queries.
struct PodUsage {
  std::optional<double> gpu_utilization = {}, max_gpu_utilization = {};  // 0..1; the mean of its GPUs, and the highest.
  std::optional<double> memory_bandwidth = {};                           // 0..1
  std::optional<double> max_gpu_memory = {};                             // Bytes, of one GPU.
  std::optional<double> cpu_cores = {};
  std::optional<double> max_memory = {};          // Bytes
  std::optional<double> network = {}, disk = {};  // Bytes/s
};

using UsageByPod = std::unordered_map<kube::ObjectKey, PodUsage>;

struct UsageQuery {
  std::string name = {};  // Of what is asked, for the log: "GPU utilisation".
  std::string text = {};
  std::optional<double> PodUsage::*field = nullptr;
  double scale = 1;    // The answer times this is the field.
  double highest = 0;  // A field above is no value: DCGM's blanks are near 2^63.
};

// Each answers with one row for each pod. `window_of`: how many seconds the query of that name looks back. `selector`:
// matchers that each series must meet, such as job=~"dcgm-exporter|kubelet"; empty: all are believed.
using WindowOf = std::function<std::int64_t(const std::string& name)>;
std::vector<UsageQuery> UsageQueries(const WindowOf& window_of, const std::string& selector = {});

using QueryLabels = std::vector<std::pair<std::string, std::string>>;
std::string_view LabelOf(const QueryLabels& labels, std::string_view name);  // Empty: there is none.

// The pod that a row is about. Prometheus renames the exporter's labels to exported_... unless the scrape has
// honorLabels; then pod and namespace are those of the exporter. Nullopt: it is about none.
std::optional<kube::ObjectKey> PodOfRow(const QueryLabels& labels);

// Takes the row of an answer to `query`. Of two sources for one pod, the higher value counts.
void AddRow(const UsageQuery& query, const QueryLabels& labels, double value, UsageByPod& usage);

}  // namespace grus
