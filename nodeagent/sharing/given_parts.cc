// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/given_parts.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "nodeagent/gpu_metrics.h"
#include "nodeagent/sharing/part_annotations.h"
#include "nodeagent/sharing/pending_parts.h"

namespace grus {
namespace {

constexpr kube::Duration kMayComeBack = std::chrono::seconds(30);

const SharedGpu* GpuOf(std::span<const SharedGpu> gpus, const std::string& uuid) {
  const auto found = std::ranges::find(gpus, uuid, &SharedGpu::uuid);
  return found == gpus.end() ? nullptr : &*found;
}

void AddParts(const HeldParts& held, const NodePod& pod, const std::string& enforcement,
              std::span<const SharedGpu> gpus, std::vector<GivenPart>& parts) {
  for (const GpuPart& part : PartsByGpu(held, gpus)) {
    const SharedGpu* const gpu = GpuOf(gpus, part.gpu);
    parts.push_back({.pod = held.pod,
                     .pod_uids = UidsOf(pod),
                     .container = held.container,
                     .gpu = part.gpu,
                     .index = gpu == nullptr ? std::nullopt : std::optional(gpu->index),
                     .milli = part.milli,
                     .memory_mib = part.memory_mib,
                     .enforcement = enforcement});
  }
}

// Init containers that may hold a part: PodResources does not list them.
std::set<std::tuple<std::string, std::string, std::string>> InitHolders(
    const std::vector<std::shared_ptr<const NodePod>>& pods) {
  std::set<std::tuple<std::string, std::string, std::string>> holders;
  for (const auto& pod : pods) {
    for (const NodeContainerSpec& container : pod->spec.init_containers) {
      if (pod->spec.resource_claims.empty() && AmountsOf(container.resources.limits).is_zero()) continue;
      holders.emplace(pod->metadata.ns, pod->metadata.name, container.name.str());
    }
  }
  return holders;
}

}  // namespace

void PartWatch::Begin() {
  begun_ = clock_.Now();
  look_ = newest_look_ ? newest_look_() : nullptr;
  if (look_ && begun_ - look_->at > kFresh) look_.reset();
}

void PartWatch::Note(const std::vector<HeldDevices>& held,
                     const std::map<kube::ObjectKey, std::vector<HeldParts>>& parts,
                     const std::vector<std::shared_ptr<const NodePod>>& pods, std::span<const SharedGpu> gpus) {
  auto noted = std::make_shared<GivenParts>();
  noted->at = begun_;
  for (const auto& pod : pods) {
    const auto found = parts.find(pod->metadata.Key());
    if (found == parts.end() || pod->has_ended()) continue;
    const std::string enforcement = EnforcementOf(found->second);
    for (const HeldParts& one : found->second) AddParts(one, *pod, enforcement, gpus, noted->parts);
  }
  NoteHolders(held, noted->parts, gpus);
  noted->partless = Partless(pods, gpus);
  const std::lock_guard lock(mutex_);
  newest_ = std::move(noted);
}

void PartWatch::NoteHolders(const std::vector<HeldDevices>& held, const std::vector<GivenPart>& parts,
                            std::span<const SharedGpu> gpus) {
  for (const GivenPart& part : parts) last_held_[{part.pod.ns, part.pod.name, part.container, part.gpu}] = begun_;
  std::vector<std::string> uuids;
  for (const SharedGpu& gpu : gpus) uuids.push_back(gpu.uuid);
  for (const HeldDevices& one : held) {
    for (const auto& [uuid, how] : HeldOtherwise({one}, kPartResources, uuids)) {
      last_held_[{one.ns, one.pod, one.container, uuid}] = begun_;
    }
  }
  std::erase_if(last_held_, [&](const auto& one) { return begun_ - one.second > kMayComeBack; });
}

std::vector<PartlessUse> PartWatch::Partless(const std::vector<std::shared_ptr<const NodePod>>& pods,
                                             std::span<const SharedGpu> gpus) const {
  std::map<Holder, PartlessUse> uses;
  if (!look_) return {};
  const auto init_holders = InitHolders(pods);
  for (const GpuState& state : look_->gpus) {
    const std::string& uuid = state.gpu.uuid;
    if (GpuOf(gpus, uuid) == nullptr) continue;
    for (const ProcessSample& process : state.processes) {
      const PodName& name = process.owner->name;
      const Holder holder = {name.ns, name.pod, name.container, uuid};
      const bool is_known = process.owner->is_pod() && !name.pod.empty() && !name.container.empty();
      if (!is_known || process.owner->pod.pod_uid == own_pod_ || last_held_.contains(holder)) continue;
      if (init_holders.contains({name.ns, name.pod, name.container})) continue;
      PartlessUse& use = uses[holder];
      use.owner = name;
      use.gpu = uuid;
      use.index = state.gpu.index;
      ++use.processes;
      if (!process.usage.memory_bytes) use.memory_bytes.reset();
      else if (use.memory_bytes) *use.memory_bytes += *process.usage.memory_bytes;
    }
  }
  std::vector<PartlessUse> list;
  for (auto& [holder, use] : uses) list.push_back(std::move(use));
  return list;
}

std::shared_ptr<const GivenParts> PartWatch::newest() const {
  const std::lock_guard lock(mutex_);
  return newest_;
}

}  // namespace grus
