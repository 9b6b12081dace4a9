// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/shared_gpus.h"

#include <algorithm>
#include <utility>

namespace grus {

std::int64_t SharedGpu::count(PartResource resource) const {
  switch (resource) {
    case PartResource::kMilli: return kMilliOfGpu;
    case PartResource::kMemory:
    case PartResource::kGpuMem: return memory_mib / kMiBOfGiB;
    // Without memory, a container could do nothing with it.
    case PartResource::kCompute: return memory_mib < kMiBOfGiB ? 0 : kPercentOfGpu;
  }
  return 0;
}

std::int64_t MilliOf(const PartAmounts& amounts) {
  return amounts[PartResource::kMilli] + amounts[PartResource::kCompute] * kMilliOfGpu / kPercentOfGpu;
}

std::int64_t MemoryMiBOf(const PartAmounts& amounts, const SharedGpu& gpu, std::int64_t said_mib) {
  const std::int64_t gib = amounts[PartResource::kMemory] + amounts[PartResource::kGpuMem];
  const std::int64_t milli = amounts[PartResource::kMilli];
  return (milli > 0 && said_mib > 0 ? said_mib : gpu.memory_mib * milli / kMilliOfGpu) + gib * kMiBOfGiB;
}

bool IsForWholeGpus(PartResource resource, std::int64_t amount) {
  return resource == PartResource::kMilli && amount > kMilliOfGpu;
}

bool AreWholeGpus(PartResource resource, const std::vector<PartId>& ids) {
  if (!IsForWholeGpus(resource, static_cast<std::int64_t>(ids.size()))) return false;
  std::map<std::string, std::int64_t> of_gpu;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == 0 || ids[i] != ids[i - 1]) ++of_gpu[ids[i].gpu];
  }
  return std::ranges::all_of(of_gpu, [](const auto& one) { return one.second == kMilliOfGpu; }) &&
         ids.size() == of_gpu.size() * kMilliOfGpu;
}

std::vector<SharedGpu> SharedGpus::Of(const NodeSample& look) {
  std::vector<SharedGpu> gpus;
  std::map<std::string, std::uint64_t> seen;
  for (const GpuState& state : look.gpus) {
    const std::string& uuid = state.gpu.uuid;
    if (const auto before = bytes_.find(uuid); before != bytes_.end()) seen[uuid] = before->second;
    if (state.sample && state.sample->memory_total_bytes) seen[uuid] = *state.sample->memory_total_bytes;
    const auto bytes = seen.find(uuid);
    if (bytes == seen.end() || state.gpu.is_divided || !CanHaveParts(uuid, kMilliOfGpu)) continue;
    const std::int64_t usable = static_cast<std::int64_t>(bytes->second >> 20) - reserve_mib_;
    if (usable <= 0) continue;
    gpus.push_back({.uuid = uuid,
                    .index = state.gpu.index,
                    .memory_mib = usable,
                    .is_healthy = state.sample.has_value() && !state.fault_xid,
                    .model = state.gpu.model,
                    .driver_version = state.gpu.driver_version});
  }
  bytes_ = std::move(seen);
  std::ranges::sort(gpus, {}, &SharedGpu::index);
  return gpus;
}

}  // namespace grus
