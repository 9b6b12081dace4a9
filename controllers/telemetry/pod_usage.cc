// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/pod_usage.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "controllers/telemetry/query_window.h"

namespace grus {
namespace {

constexpr double kMostCores = 1e5;

using Number = MaybeNumber PodUsage::*;
using TextOf = std::function<std::string(const QueryWindow&)>;

}  // namespace

std::string_view LabelOf(const QueryLabels& labels, std::string_view name) {
  const auto at = std::ranges::find(labels, name, &QueryLabels::value_type::first);
  return at == labels.end() ? std::string_view() : at->second;
}

std::vector<UsageQuery> UsageQueries(const WindowOf& window_of, const std::string& selector) {
  const std::string busy = "DCGM_FI_DEV_GPU_UTIL", agent_busy = "grus_gpu_utilization_ratio";
  const std::string bandwidth = "DCGM_FI_DEV_MEM_COPY_UTIL",
                    agent_bandwidth = "grus_gpu_memory_controller_utilization_ratio";
  std::vector<UsageQuery> queries;
  const auto add = [&](const char* name, Number field, double scale, double highest, const TextOf& text,
                       std::int64_t least_window = 1) {
    const QueryWindow window(selector, std::max(window_of(name), least_window));
    queries.push_back({name, text(window), field, scale, highest});
  };
  add("GPU utilisation", &PodUsage::gpu_utilization, 0.01, 1,
      [&](const QueryWindow& in) { return in.OverGpus("avg", kGpuPod, busy, agent_busy); });
  add("highest GPU utilisation", &PodUsage::max_gpu_utilization, 0.01, 1,
      [&](const QueryWindow& in) { return in.OverGpus("max", kGpuPod, busy, agent_busy); });
  add("GPU memory bandwidth", &PodUsage::memory_bandwidth, 0.01, 1,
      [&](const QueryWindow& in) { return in.OverGpus("avg", kGpuPod, bandwidth, agent_bandwidth); });
  add("GPU memory in MiB", &PodUsage::max_gpu_memory, 1 << 20, kMostGpuMemory,
      [](const QueryWindow& in) { return By("max", kGpuPod, in.Over("max_over_time", "DCGM_FI_DEV_FB_USED")); });
  add("GPU memory", &PodUsage::max_gpu_memory, 1, kMostGpuMemory,
      [](const QueryWindow& in) { return in.AgentMemory(kGpuPod); });
  add("memory", &PodUsage::max_memory, 1, kMostBytes,
      [](const QueryWindow& in) { return in.OverContainers("max_over_time", "container_memory_working_set_bytes"); });
  add(
      "CPU", &PodUsage::cpu_cores, 1, kMostCores,
      [](const QueryWindow& in) { return in.OverContainers("irate", "container_cpu_usage_seconds_total"); },
      kShortestRate);
  add(
      "network", &PodUsage::network, 1, kMostBytes,
      [](const QueryWindow& in) {
        return in.OverInterfaces("container_network_receive_bytes_total") + " + " +
               in.OverInterfaces("container_network_transmit_bytes_total");
      },
      kShortestRate);
  add(
      "disk", &PodUsage::disk, 1, kMostBytes,
      [](const QueryWindow& in) {
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
    const std::string_view ns = LabelOf(labels, ns_label), pod = LabelOf(labels, pod_label);
    if (!ns.empty() && !pod.empty()) return kube::ObjectKey{std::string(ns), std::string(pod)};
  }
  return std::nullopt;
}

void UsageColumn::Take(const QueryLabels& labels, double value) {
  const double scaled = value * query_.scale;
  if (!std::isfinite(scaled) || scaled < 0 || scaled > query_.highest) return;
  const auto pod = PodOfRow(labels);
  if (!pod) return;
  PodUsage* usage = usage_.Find(*pod);
  if (usage == nullptr) {
    const auto name = name_of_(*pod);
    if (!name) return;
    usage = &usage_[*name];
  }
  values_.emplace_back(usage, scaled);
}

void UsageColumn::Add() const {
  for (const auto& [usage, value] : values_) (usage->*query_.field).Raise(value);
}

}  // namespace grus
