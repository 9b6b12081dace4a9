// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_metrics.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "nodeagent/gpu_metrics.h"

namespace grus {
namespace {

using kube::Registry;
using Value = std::optional<double>;

constexpr double kPercent = 100;

// The GPU as it was seen last; null: it is lost, or not seen for a while.
const GpuState* StateOf(const NodeSample* look, const std::string& uuid) {
  if (look == nullptr) return nullptr;
  const auto state = std::ranges::find(look->gpus, uuid, [](const GpuState& one) { return one.gpu.uuid; });
  return state == look->gpus.end() || !state->sample ? nullptr : &*state;
}

// The sum of `number` over the processes of the part's container on this GPU. None: that of one of them is not known,
// or in which container of the pod one is.
template <typename Number>
Value SumOf(const GpuState& state, const GivenPart& part, std::optional<Number> GpuProcess::*number) {
  double sum = 0;
  for (const ProcessSample& process : state.processes) {
    const PodName& name = process.owner->name;
    if (std::ranges::count(part.pod_uids, process.owner->pod.pod_uid) == 0) continue;
    if (!name.container.empty() && name.container != part.container) continue;
    if (name.container.empty() || !(process.usage.*number)) return std::nullopt;
    sum += static_cast<double>(*(process.usage.*number));
  }
  return sum;
}

class PartExporter {
 public:
  PartExporter(Registry& registry, NewestParts newest_parts, PartWatch::NewestLook newest_look,
               const kube::Clock& clock)
      : registry_(registry),
        newest_parts_(std::move(newest_parts)),
        newest_look_(std::move(newest_look)),
        clock_(clock) {}

  void AddPart(const char* name, const char* help, std::function<Value(const GivenPart&)> value) {
    AddUse(name, help, [value = std::move(value)](const GivenPart& part, const NodeSample*) { return value(part); });
  }
  using OfLook = std::function<Value(const GivenPart&, const NodeSample*)>;
  void AddUse(const char* name, const char* help, OfLook value) {
    registry_.AddGaugeFamily(name, help, {"gpu", "uuid", "namespace", "pod", "container", "enforcement"},
                             [*this, value = std::move(value)] {
                               Registry::Samples samples;
                               const auto parts = Parts();
                               const auto look = Look();
                               if (!parts) return samples;
                               for (const GivenPart& part : parts->parts) {
                                 if (const Value number = value(part, look.get()))
                                   samples.push_back({Labels(part), *number});
                               }
                               return samples;
                             });
  }
  void AddPartless(const char* name, const char* help, std::function<Value(const PartlessUse&)> value) {
    registry_.AddGaugeFamily(
        name, help, {"gpu", "uuid", "namespace", "pod", "container"}, [*this, value = std::move(value)] {
          Registry::Samples samples;
          const auto parts = Parts();
          if (!parts) return samples;
          for (const PartlessUse& use : parts->partless) {
            const Value number = value(use);
            if (!number) continue;
            const PodName& owner = use.owner;
            samples.push_back({{std::to_string(use.index), use.gpu, owner.ns, owner.pod, owner.container}, *number});
          }
          return samples;
        });
  }

 private:
  static Registry::LabelValues Labels(const GivenPart& part) {
    return {part.index ? std::to_string(*part.index) : "",
            part.gpu,
            part.pod.ns,
            part.pod.name,
            part.container,
            part.enforcement};
  }
  std::shared_ptr<const GivenParts> Parts() const {
    std::shared_ptr<const GivenParts> parts = newest_parts_();
    return parts && clock_.Now() - parts->at <= kPartsFresh ? parts : nullptr;
  }
  std::shared_ptr<const NodeSample> Look() const {
    std::shared_ptr<const NodeSample> look = newest_look_();
    return look && clock_.Now() - look->at <= kFresh ? look : nullptr;
  }

  Registry& registry_;
  const NewestParts newest_parts_;
  const PartWatch::NewestLook newest_look_;
  const kube::Clock& clock_;
};

}  // namespace

void AddPartMetrics(Registry& registry, NewestParts newest_parts, PartWatch::NewestLook newest_look,
                    const kube::Clock& clock) {
  PartExporter exporter(registry, std::move(newest_parts), std::move(newest_look), clock);
  exporter.AddPart("grus_gpu_part_milli",
                   "Thousandths of the GPU that a container has, as the kubelet has recorded it.",
                   [](const GivenPart& part) { return Value(part.milli); });
  exporter.AddPart("grus_gpu_part_memory_limit_bytes", "Memory of the GPU that a container has.",
                   [](const GivenPart& part) {
                     constexpr double kMiB = 1 << 20;
                     return part.memory_mib > 0 ? Value(static_cast<double>(part.memory_mib) * kMiB) : Value();
                   });
  exporter.AddUse("grus_gpu_part_memory_used_bytes",
                  "Memory that the processes of a container use on the GPU of which it has a part.",
                  [](const GivenPart& part, const NodeSample* look) {
                    const GpuState* const state = StateOf(look, part.gpu);
                    return state == nullptr ? Value() : SumOf(*state, part, &GpuProcess::memory_bytes);
                  });
  exporter.AddUse("grus_gpu_part_sm_ratio",
                  "Part of the GPU's multiprocessors' time that the processes of a container used over the last "
                  "second, of the whole GPU.",
                  [](const GivenPart& part, const NodeSample* look) {
                    const GpuState* const state = StateOf(look, part.gpu);
                    const Value percent = state == nullptr ? Value() : SumOf(*state, part, &GpuProcess::sm_percent);
                    return percent ? Value(*percent / kPercent) : Value();
                  });
  exporter.AddPartless("grus_gpu_partless_processes",
                       "Processes on a shared GPU of a container that has no part of it.",
                       [](const PartlessUse& use) { return Value(use.processes); });
  exporter.AddPartless("grus_gpu_partless_memory_bytes", "Memory that they use.", [](const PartlessUse& use) -> Value {
    if (!use.memory_bytes) return std::nullopt;
    return static_cast<double>(*use.memory_bytes);
  });
}

}  // namespace grus
