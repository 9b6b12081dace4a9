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
constexpr double kMostCores = 1e5;

constexpr char kGpuPod[] = "namespace,pod,exported_namespace,exported_pod";

std::string By(const std::string& aggregate, const std::string& labels, const std::string& series) {
  return aggregate + " by (" + labels + ") (" + series + ")";
}

// Series over one window, of what an administrator trusts.
class Windows {
 public:
  Windows(const std::string& selector, std::int64_t seconds) : selector_(selector), seconds_(seconds) {}

  // FUNCTION(METRIC{MATCHERS}[WINDOW])
  std::string Over(const std::string& function, const std::string& metric, const std::string& matchers = {}) const {
    return function + "(" + Of(metric, matchers) + "[" + std::to_string(seconds_) + "s])";
  }

  // `dcgm`: of dcgm-exporter, in percent, with the labels of the pod. `agent`: a ratio of grus-node-agent, whose
  // processes say which pods use the GPU.
  std::string OverGpus(const std::string& aggregate, const std::string& dcgm, const std::string& agent) const {
    const std::string over = aggregate + "_over_time";
    const std::string users = By("max", std::string("uuid,") + kGpuPod,
                                 Over("max_over_time", "grus_gpu_process_memory_bytes") + " >= bool 0");
    return By(aggregate, kGpuPod,
              Over(over, dcgm) + " or (100 * " + By("max", "uuid", Over(over, agent)) +
                  ") * on (uuid) group_right () " + users);
  }

  // Of all processes of a pod on a GPU at a time, its most; successive ones do not add up.
  std::string AgentMemory() const {
    const std::string process = By("max", std::string("uuid,pid,") + kGpuPod, Of("grus_gpu_process_memory_bytes", ""));
    return By("max", kGpuPod,
              "max_over_time((" + By("sum", std::string("uuid,") + kGpuPod, process) + ")[" + std::to_string(seconds_) +
                  "s:15s])");
  }

  // Of containers, not of the pods that hold them, which count them again: as the kubelet's cAdvisor names them, with
  // and without honorLabels, and one that runs by itself. What several scrapes tell of counts once.
  std::string OverContainers(const std::string& function, const std::string& metric) const {
    std::string parts;
    for (const std::string label :
         {"container", "exported_container", "container_label_io_kubernetes_container_name"}) {
      std::string matchers = label + "!=\"\"," + label + "!=\"POD\"";
      if (label == "container") matchers += ",exported_container=\"\",exported_pod=\"\"";
      parts += (parts.empty() ? "" : " or ") + Over(function, metric, matchers);
    }
    const std::string labels =
        std::string("container,exported_container,container_label_io_kubernetes_container_name,cpu,device,") +
        kPodLabels;
    return By("sum", kPodLabels, By("max", labels, parts));
  }

  // The network is the pod's: no container has it.
  std::string OverInterfaces(const std::string& metric) const {
    return By("sum", kPodLabels, By("max", std::string("interface,") + kPodLabels, Over("irate", metric)));
  }

 private:
  std::string Of(const std::string& metric, const std::string& matchers) const {
    const bool has_both = !matchers.empty() && !selector_.empty();
    return metric + "{" + matchers + (has_both ? "," : "") + selector_ + "}";
  }

  const std::string selector_;
  const std::int64_t seconds_;
};

using Number = std::optional<double> PodUsage::*;
using TextOf = std::function<std::string(const Windows&)>;

std::string_view Find(const QueryLabels& labels, std::string_view name) {
  const auto at = std::ranges::find(labels, name, &QueryLabels::value_type::first);
  return at == labels.end() ? std::string_view() : at->second;
}

}  // namespace

std::vector<UsageQuery> UsageQueries(const WindowOf& window_of, const std::string& selector) {
  const std::string busy = "DCGM_FI_DEV_GPU_UTIL", agent_busy = "grus_gpu_utilization_ratio";
  const std::string bandwidth = "DCGM_FI_DEV_MEM_COPY_UTIL",
                    agent_bandwidth = "grus_gpu_memory_controller_utilization_ratio";
  std::vector<UsageQuery> queries;
  const auto add = [&](const char* name, Number field, double scale, double highest, const TextOf& text,
                       std::int64_t least_window = 1) {
    const Windows windows(selector, std::max(window_of(name), least_window));
    queries.push_back({name, text(windows), field, scale, highest});
  };
  add("GPU utilisation", &PodUsage::gpu_utilization, 0.01, 1,
      [&](const Windows& in) { return in.OverGpus("avg", busy, agent_busy); });
  add("highest GPU utilisation", &PodUsage::max_gpu_utilization, 0.01, 1,
      [&](const Windows& in) { return in.OverGpus("max", busy, agent_busy); });
  add("GPU memory bandwidth", &PodUsage::memory_bandwidth, 0.01, 1,
      [&](const Windows& in) { return in.OverGpus("avg", bandwidth, agent_bandwidth); });
  add("GPU memory in MiB", &PodUsage::max_gpu_memory, 1 << 20, kMostGpuMemory,
      [](const Windows& in) { return By("max", kGpuPod, in.Over("max_over_time", "DCGM_FI_DEV_FB_USED")); });
  add("GPU memory", &PodUsage::max_gpu_memory, 1, kMostGpuMemory, [](const Windows& in) { return in.AgentMemory(); });
  add("memory", &PodUsage::max_memory, 1, kMostBytes,
      [](const Windows& in) { return in.OverContainers("max_over_time", "container_memory_working_set_bytes"); });
  add(
      "CPU", &PodUsage::cpu_cores, 1, kMostCores,
      [](const Windows& in) { return in.OverContainers("irate", "container_cpu_usage_seconds_total"); }, kShortestRate);
  add(
      "network", &PodUsage::network, 1, kMostBytes,
      [](const Windows& in) {
        return in.OverInterfaces("container_network_receive_bytes_total") + " + " +
               in.OverInterfaces("container_network_transmit_bytes_total");
      },
      kShortestRate);
  add(
      "disk", &PodUsage::disk, 1, kMostBytes,
      [](const Windows& in) {
        return in.OverContainers("irate", "container_fs_reads_bytes_total") + " + " +
               in.OverContainers("irate", "container_fs_writes_bytes_total");
      },
      kShortestRate);
  return queries;
}

std::optional<kube::ObjectKey> PodOfRow(const QueryLabels& labels) {
  // Prometheus renames only those labels that the target has too.
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"container_label_io_kubernetes_pod_namespace", "container_label_io_kubernetes_pod_name"},
      {"exported_namespace", "exported_pod"},
      {"exported_namespace", "pod"},
      {"namespace", "exported_pod"},
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
