// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/pod_usage.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace grus {
namespace {

// A rate needs two samples: scrapes of up to a minute have them. Only the newest two count (irate): over a window that
// a young container does not fill, rate() is too low.
constexpr std::int64_t kShortestRate = 120;
constexpr double kMostBytes = 1e14, kMostCores = 1e5;

constexpr char kGpuPod[] = "namespace,pod,exported_namespace,exported_pod";
constexpr char kPod[] =
    "namespace,pod,container_label_io_kubernetes_pod_namespace,container_label_io_kubernetes_pod_name";

std::string Window(std::int64_t seconds) { return "[" + std::to_string(seconds) + "s])"; }

std::string By(const std::string& aggregate, const std::string& labels, const std::string& series) {
  return aggregate + " by (" + labels + ") (" + series + ")";
}

// `dcgm`: of dcgm-exporter, in percent, with the labels of the pod. `agent`: a ratio of grus-node-agent, whose
// processes say which pods use the GPU.
std::string OfGpus(const std::string& aggregate, const std::string& dcgm, const std::string& agent,
                   std::int64_t seconds) {
  const std::string over = aggregate + "_over_time(";
  const std::string users = By("max", std::string("uuid,") + kGpuPod,
                               "max_over_time(grus_gpu_process_memory_bytes" + Window(seconds) + " >= bool 0");
  return By(aggregate, kGpuPod,
            over + dcgm + Window(seconds) + " or (100 * " + By("max", "uuid", over + agent + Window(seconds)) +
                ") * on (uuid) group_right () " + users);
}

// Of containers, not of the pods that hold them, which count them again: as the kubelet's cAdvisor and as one that runs
// by itself names them. A container that several scrapes tell of counts once.
std::string OverContainers(const std::string& function, const std::string& metric, std::int64_t seconds) {
  const std::string own = "container_label_io_kubernetes_container_name";
  return By("sum", kPod,
            By("max", std::string("container,") + own + "," + kPod,
               function + "(" + metric + "{container!=\"\",container!=\"POD\"}" + Window(seconds) + " or " + function +
                   "(" + metric + "{" + own + "!=\"\"," + own + "!=\"POD\"}" + Window(seconds)));
}

// The network is the pod's: no container has it.
std::string OverInterfaces(const std::string& metric, std::int64_t seconds) {
  return By("sum", kPod, By("max", std::string("interface,") + kPod, "irate(" + metric + Window(seconds)));
}

std::string_view Find(const QueryLabels& labels, std::string_view name) {
  const auto at = std::ranges::find(labels, name, &QueryLabels::value_type::first);
  return at == labels.end() ? std::string_view() : at->second;
}

}  // namespace

std::vector<UsageQuery> UsageQueries(std::int64_t seconds) {
  const std::string busy = "DCGM_FI_DEV_GPU_UTIL", agent_busy = "grus_gpu_utilization_ratio";
  const std::int64_t rate = std::max(seconds, kShortestRate);
  return {
      {"GPU utilisation", OfGpus("avg", busy, agent_busy, seconds), &PodUsage::gpu_utilization, 0.01, 1},
      {"highest GPU utilisation", OfGpus("max", busy, agent_busy, seconds), &PodUsage::max_gpu_utilization, 0.01, 1},
      {"GPU memory bandwidth",
       OfGpus("avg", "DCGM_FI_DEV_MEM_COPY_UTIL", "grus_gpu_memory_controller_utilization_ratio", seconds),
       &PodUsage::memory_bandwidth, 0.01, 1},
      {"GPU memory in MiB", By("max", kGpuPod, "max_over_time(DCGM_FI_DEV_FB_USED" + Window(seconds)),
       &PodUsage::max_gpu_memory, 1 << 20, kMostBytes},
      {"GPU memory",
       By("max", kGpuPod,
          By("sum", std::string("uuid,") + kGpuPod, "max_over_time(grus_gpu_process_memory_bytes" + Window(seconds))),
       &PodUsage::max_gpu_memory, 1, kMostBytes},
      {"CPU", OverContainers("irate", "container_cpu_usage_seconds_total", rate), &PodUsage::cpu_cores, 1, kMostCores},
      {"memory", OverContainers("max_over_time", "container_memory_working_set_bytes", seconds), &PodUsage::max_memory,
       1, kMostBytes},
      {"network",
       OverInterfaces("container_network_receive_bytes_total", rate) + " + " +
           OverInterfaces("container_network_transmit_bytes_total", rate),
       &PodUsage::network, 1, kMostBytes},
      {"disk",
       OverContainers("irate", "container_fs_reads_bytes_total", rate) + " + " +
           OverContainers("irate", "container_fs_writes_bytes_total", rate),
       &PodUsage::disk, 1, kMostBytes},
  };
}

std::optional<kube::ObjectKey> PodOfRow(const QueryLabels& labels) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"container_label_io_kubernetes_pod_namespace", "container_label_io_kubernetes_pod_name"},
      {"exported_namespace", "exported_pod"},
      {"namespace", "pod"},
  };
  for (const auto& [ns_label, pod_label] : kNames) {
    const std::string_view ns = Find(labels, ns_label), pod = Find(labels, pod_label);
    if (!ns.empty() && !pod.empty()) return kube::ObjectKey{std::string(ns), std::string(pod)};
  }
  return std::nullopt;
}

void AddRow(const UsageQuery& query, const QueryLabels& labels, double value, UsageByPod& usage) {
  const double scaled = value * query.scale;
  if (!std::isfinite(scaled) || scaled < 0 || scaled > query.highest) return;
  const auto pod = PodOfRow(labels);
  if (!pod) return;
  std::optional<double>& field = usage[*pod].*query.field;
  field = std::max(field.value_or(0), scaled);
}

}  // namespace grus
