// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/pending_parts.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <sstream>
#include <tuple>

#include "clientlib/base/wait.h"
#include "crds/types/part_memory.h"
#include "crds/types/sharing_names.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {
namespace {

constexpr kube::Duration kLongestLag = std::chrono::seconds(1), kLookAgain = std::chrono::milliseconds(5);

std::int64_t AmountOf(const std::optional<kube::Quantity>& quantity) {
  if (!quantity || quantity->is_zero()) return 0;
  const bool is_whole = *quantity == kube::Quantity(quantity->Value());
  return is_whole && quantity->Value() > 0 ? quantity->Value() : std::numeric_limits<std::int64_t>::max();
}

bool HasStarted(const std::vector<NodeContainer>& statuses, std::string_view name) {
  return std::ranges::any_of(statuses,
                             [&](const NodeContainer& one) { return one.name == name && !one.container_id.empty(); });
}

// "GPU-1,GPU-2"
std::vector<std::string> PlannedGpusOf(const kube::ObjectMeta& pod) {
  std::vector<std::string> gpus;
  std::istringstream list{std::string(pod.Annotation(api::kPlannedGpuAnnotation))};
  for (std::string gpu; std::getline(list, gpu, ',');) {
    if (!gpu.empty()) gpus.push_back(std::move(gpu));
  }
  return gpus;
}

void AddAsks(const NodePod& pod, const std::vector<NodeContainerSpec>& containers,
             const std::vector<NodeContainer>& statuses, bool is_init, std::vector<PartAsk>& asks) {
  const std::optional<GpushareAssumption> assumed = AssumptionOf(pod.metadata);
  for (const NodeContainerSpec& container : containers) {
    const PartAmounts amounts = AmountsOf(container.resources.limits);
    if (amounts.is_zero()) continue;
    const std::int64_t milli = amounts[PartResource::kMilli];
    const bool is_part = milli > 0 && !IsForWholeGpus(PartResource::kMilli, milli);
    asks.push_back({.pod = pod.metadata.Key(),
                    .container = container.name.str(),
                    .amounts = amounts,
                    .planned_gpus = PlannedGpusOf(pod.metadata),
                    .placement = PlacementOf(pod.metadata.Annotation(api::kPartPlacementKey), pod.spec.scheduler_name),
                    .assumed = assumed,
                    .memory_mib = is_part ? api::MemoryMiBSaidBy(pod.metadata) : 0,
                    .paged_mib = api::PagedMiBSaidBy(pod.metadata),
                    // What a sidecar has, the kubelet lists, and hands on to nobody.
                    .is_init = is_init && container.restart_policy != "Always",
                    .has_started = HasStarted(statuses, container.name)});
  }
}

}  // namespace

PartAmounts AmountsOf(const PartLimits& limits) {
  PartAmounts amounts;
  amounts[PartResource::kMilli] = AmountOf(limits.gpu_milli);
  amounts[PartResource::kMemory] = AmountOf(limits.vgpu_memory);
  amounts[PartResource::kCompute] = AmountOf(limits.vgpu_compute);
  amounts[PartResource::kGpuMem] = AmountOf(limits.gpu_mem);
  return amounts;
}

bool AsksForParts(const NodePod& pod) {
  const auto asks = [](const NodeContainerSpec& one) { return !AmountsOf(one.resources.limits).is_zero(); };
  return std::ranges::any_of(pod.spec.containers, asks) || std::ranges::any_of(pod.spec.init_containers, asks);
}

std::optional<std::vector<PartAsk>> NodePendingParts::Asks() const {
  if (!pods_.HasList()) return std::nullopt;
  std::vector<std::shared_ptr<const NodePod>> pods = pods_.List();
  std::erase_if(pods, [](const auto& pod) { return pod->has_ended() || !AsksForParts(*pod); });
  // So the kubelet takes those that it finds together.
  std::ranges::sort(pods, {}, [](const auto& pod) {
    return std::tuple(pod->metadata.creation_timestamp, pod->metadata.ns, pod->metadata.name);
  });
  std::vector<PartAsk> asks;
  for (const auto& pod : pods) {
    AddAsks(*pod, pod->spec.init_containers, pod->status.init_containers, true, asks);
    AddAsks(*pod, pod->spec.containers, pod->status.containers, false, asks);
  }
  return asks;
}

void NodePendingParts::Await(const std::set<kube::ObjectKey>& pods) const {
  const kube::TimePoint until = clock_.Now() + kLongestLag;
  const auto are_all_there = [&] {
    std::set<kube::ObjectKey> missing = pods;
    for (const auto& pod : pods_.List()) missing.erase(pod->metadata.Key());
    return missing.empty();
  };
  while (!are_all_there() && clock_.Now() < until) kube::WaitFor(clock_, kLookAgain, {});
}

}  // namespace grus
