// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_setup.h"

#include <algorithm>
#include <string>

#include "nodeagent/sharing/gpushare.h"

namespace grus {
namespace {

PartAmounts AmountsOn(const SharedGpu& gpu, PartResource resource, const std::vector<PartId>& ids) {
  PartAmounts amounts;
  amounts[resource] = std::ranges::count(ids, gpu.uuid, &PartId::gpu);
  return amounts;
}

}  // namespace

std::int64_t MemoryMiBOn(const SharedGpu& gpu, PartResource resource, const std::vector<PartId>& ids,
                         const GpuChoice& choice) {
  return MemoryMiBOf(AmountsOn(gpu, resource, ids), gpu, choice.memory_mib);
}

ContainerSetup SetupOf(PartResource resource, const std::vector<PartId>& ids, const GpuChoice& choice,
                       std::span<const SharedGpu> on, std::span<const SharedGpu> all) {
  std::string uuids, amounts, memory;
  for (const SharedGpu& gpu : on) {
    const char* const comma = uuids.empty() ? "" : ",";
    uuids.append(comma).append(gpu.uuid);
    amounts.append(comma).append(std::to_string(AmountsOn(gpu, resource, ids)[resource]));
    memory.append(comma).append(std::to_string(MemoryMiBOn(gpu, resource, ids, choice)));
  }
  ContainerSetup setup{.environment = {{"NVIDIA_VISIBLE_DEVICES", uuids}, {"GRUS_GPU_MEMORY_MIB", memory}}};
  switch (resource) {
    case PartResource::kMilli: setup.environment["GRUS_GPU_MILLI"] = amounts; break;
    case PartResource::kMemory: setup.environment["ALNAIR_VGPU_MEMORY"] = amounts; break;
    case PartResource::kCompute: return {.environment = {{"ALNAIR_VGPU_COMPUTE", amounts}}};
    case PartResource::kGpuMem:
      setup.environment.merge(
          GpushareEnvironment(static_cast<std::int64_t>(ids.size()), choice.pod_amount, uuids, all));
      break;
  }
  return setup;
}

}  // namespace grus
