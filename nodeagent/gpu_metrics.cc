// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_metrics.h"

#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace grus {
namespace {

using kube::Registry;
using Value = std::optional<double>;
using OfGpu = std::function<Value(const GpuState&)>;
using OfSample = std::function<Value(const GpuSample&)>;
using OfProcess = std::function<Value(const GpuProcess&)>;

constexpr double kPercent = 100, kMilli = 1000;

// A number of the driver in the unit of the metric.
template <typename Number>
Value In(const std::optional<Number>& number, double divisor = 1) {
  if (!number) return std::nullopt;
  return static_cast<double>(*number) / divisor;
}

class Exporter {
 public:
  Exporter(Registry& registry, const GpuProbe& probe, const kube::Clock& clock)
      : registry_(registry), probe_(probe), clock_(clock) {}

  void AddGpuGauge(const char* name, const char* help, OfGpu value) {
    registry_.AddGaugeFamily(name, help, GpuLabels(), EachGpu(std::move(value)));
  }
  void AddGauge(const char* name, const char* help, OfSample value) {
    AddGpuGauge(name, help, OfNewest(std::move(value)));
  }
  void AddCounter(const char* name, const char* help, OfSample value) {
    registry_.AddCounterFamily(name, help, GpuLabels(), EachGpu(OfNewest(std::move(value))));
  }

  void AddProcessGauge(const char* name, const char* help, OfProcess value) {
    const auto labels = [](const GpuState& state, const ProcessSample& process) -> Registry::LabelValues {
      const PodName& pod = process.owner->name;
      return {Index(state), state.gpu.uuid, pod.ns, pod.pod, pod.container, std::to_string(process.usage.pid)};
    };
    AddProcessFamily(name, help, {"gpu", "uuid", "namespace", "pod", "container", "pid"}, labels, std::move(value));
  }

  using LabelsOf = std::function<Registry::LabelValues(const GpuState&, const ProcessSample&)>;
  void AddProcessFamily(const char* name, const char* help, std::vector<std::string> label_names, LabelsOf labels,
                        OfProcess value) {
    registry_.AddGaugeFamily(name, help, std::move(label_names),
                             [*this, labels = std::move(labels), value = std::move(value)] {
                               Registry::Samples samples;
                               ForEachGpu([&](const GpuState& state) {
                                 for (const ProcessSample& process : state.processes) {
                                   const Value number = value(process.usage);
                                   if (number) samples.emplace_back(labels(state, process), *number);
                                 }
                               });
                               return samples;
                             });
  }

  void AddProcessCounts() {
    registry_.AddGaugeFamily(
        "grus_gpu_processes",
        "Processes on the GPU, by what is known of their owner: pod (its name), unnamed_pod (only that it is one, the "
        "API server has not told its name), none (no pod), unmapped (they ended while they were looked at).",
        {"gpu", "uuid", "owner"}, [*this] {
          Registry::Samples samples;
          ForEachGpu([&](const GpuState& state) {
            if (!state.sample) return;
            constexpr std::array kOwners = {"pod", "unnamed_pod", "none"};
            std::array<double, kOwners.size()> counts = {};
            for (const ProcessSample& process : state.processes) {
              const Owner& owner = *process.owner;
              ++counts[owner.is_pod() ? (owner.name.pod.empty() ? 1U : 0U) : 2U];
            }
            for (std::size_t i = 0; i < kOwners.size(); ++i) {
              samples.push_back({{Index(state), state.gpu.uuid, kOwners[i]}, counts[i]});
            }
            samples.push_back({{Index(state), state.gpu.uuid, "unmapped"}, static_cast<double>(state.unmapped)});
          });
          return samples;
        });
  }

  void AddInfo() {
    registry_.AddGaugeFamily("grus_gpu_info", "1 for each GPU that was seen since the agent started.",
                             {"gpu", "uuid", "model", "driver_version"}, [*this] {
                               Registry::Samples samples;
                               ForEachGpu([&](const GpuState& state) {
                                 const Gpu& gpu = state.gpu;
                                 samples.push_back({{Index(state), gpu.uuid, gpu.model, gpu.driver_version}, 1});
                               });
                               return samples;
                             });
  }

 private:
  static std::string Index(const GpuState& state) { return std::to_string(state.gpu.index); }
  static std::vector<std::string> GpuLabels() { return {"gpu", "uuid", "model"}; }

  static OfGpu OfNewest(OfSample value) {
    return [value = std::move(value)](const GpuState& state) { return state.sample ? value(*state.sample) : Value(); };
  }

  void ForEachGpu(const std::function<void(const GpuState&)>& visit) const {
    const std::shared_ptr<const NodeSample> look = probe_.newest();
    if (look == nullptr || clock_.Now() - look->at > kFresh) return;
    for (const GpuState& state : look->gpus) visit(state);
  }

  std::function<Registry::Samples()> EachGpu(OfGpu value) const {
    return [*this, value = std::move(value)] {
      Registry::Samples samples;
      ForEachGpu([&](const GpuState& state) {
        const Value number = value(state);
        if (number) samples.push_back({{Index(state), state.gpu.uuid, state.gpu.model}, *number});
      });
      return samples;
    };
  }

  Registry& registry_;
  const GpuProbe& probe_;
  const kube::Clock& clock_;
};

void AddGpus(Exporter& exporter) {
  exporter.AddInfo();
  exporter.AddGpuGauge("grus_gpu_up", "1 if the driver answers for the GPU, 0 if it is lost.",
                       [](const GpuState& state) { return Value(state.sample ? 1 : 0); });
  exporter.AddGauge("grus_gpu_utilization_ratio", "Part of the last moment in which a kernel ran.",
                    [](const GpuSample& s) { return In(s.utilization_percent, kPercent); });
  exporter.AddGpuGauge("grus_gpu_utilization_minute_ratio", "Mean of grus_gpu_utilization_ratio over the last minute.",
                       [](const GpuState& state) { return In(state.mean_utilization_percent, kPercent); });
  exporter.AddGauge("grus_gpu_memory_controller_utilization_ratio",
                    "Part of the last moment in which the GPU's memory was read or written.",
                    [](const GpuSample& s) { return In(s.memory_controller_percent, kPercent); });
  exporter.AddGauge("grus_gpu_memory_used_bytes", "Memory in use.",
                    [](const GpuSample& s) { return In(s.memory_used_bytes); });
  exporter.AddGpuGauge("grus_gpu_memory_used_peak_bytes",
                       "Largest grus_gpu_memory_used_bytes of the last ten minutes, looked at once a second.",
                       [](const GpuState& state) { return In(state.peak_memory_used_bytes); });
  exporter.AddGauge("grus_gpu_memory_total_bytes", "Memory of the GPU.",
                    [](const GpuSample& s) { return In(s.memory_total_bytes); });
  exporter.AddGauge("grus_gpu_power_watts", "Power drawn.",
                    [](const GpuSample& s) { return In(s.power_milliwatts, kMilli); });
  exporter.AddGauge("grus_gpu_last_xid", "Code of the last error (Xid) of the driver since the agent started.",
                    [](const GpuSample& s) { return In(s.last_xid); });
}

void AddLinks(Exporter& exporter) {
  exporter.AddGauge("grus_gpu_pcie_receive_bytes_per_second",
                    "Bytes a second from the host, over 20 ms; GPUs take turns, one a second.",
                    [](const GpuSample& s) { return In(s.pcie_receive_rate); });
  exporter.AddGauge("grus_gpu_pcie_transmit_bytes_per_second",
                    "Bytes a second to the host, over 20 ms; GPUs take turns, one a second.",
                    [](const GpuSample& s) { return In(s.pcie_transmit_rate); });
  exporter.AddCounter("grus_gpu_nvlink_receive_bytes_total", "Bytes received over all NVLinks of the GPU.",
                      [](const GpuSample& s) { return In(s.nvlink_received_bytes); });
  exporter.AddCounter("grus_gpu_nvlink_transmit_bytes_total", "Bytes sent over all NVLinks of the GPU.",
                      [](const GpuSample& s) { return In(s.nvlink_transmitted_bytes); });
}

}  // namespace

void AddGpuMetrics(Registry& registry, const GpuProbe& probe, const kube::Clock& clock) {
  Exporter exporter(registry, probe, clock);
  AddGpus(exporter);
  AddLinks(exporter);
  exporter.AddProcessGauge("grus_gpu_process_memory_bytes",
                           "Memory of the GPU that a process uses. Without a pod: it is in none, or its name is not "
                           "known yet.",
                           [](const GpuProcess& p) { return In(p.memory_bytes); });
  exporter.AddProcessGauge("grus_gpu_process_sm_ratio",
                           "Part of the GPU's multiprocessors' time that a process used over the last second.",
                           [](const GpuProcess& p) { return In(p.sm_percent, kPercent); });
  exporter.AddProcessCounts();
}

void AddAlnairMetrics(Registry& registry, const GpuProbe& probe, const kube::Clock& clock, const std::string& node) {
  Exporter exporter(registry, probe, clock);
  const std::vector<std::string> label_names = {"pid", "gpu_uuid", "gpu_idx", "pod_name", "nodeName"};
  const auto labels = [node](const GpuState& state, const ProcessSample& process) -> Registry::LabelValues {
    return {std::to_string(process.usage.pid), state.gpu.uuid, std::to_string(state.gpu.index), process.owner->name.pod,
            node};
  };
  exporter.AddProcessFamily("alnair_gpu_util", "GPU utilization of a process in percent.", label_names, labels,
                            [](const GpuProcess& p) { return In(p.sm_percent); });
  exporter.AddProcessFamily("alnair_gpu_mem_util", "GPU memory utilization of a process in percent.", label_names,
                            labels, [](const GpuProcess& p) { return In(p.memory_controller_percent); });
}

}  // namespace grus
