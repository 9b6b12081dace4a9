// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_share.h"

#include <algorithm>

#include "nodeagent/sharing/shared_gpus.h"

namespace grus {
namespace {

constexpr std::int64_t kMilliOfPercent = kMilliOfGpu / kPercentOfGpu;

}  // namespace

std::int64_t MpsPercentOf(std::int64_t milli) {
  return std::clamp<std::int64_t>(milli / kMilliOfPercent, 1, kPercentOfGpu);
}

void AddMps(const PartToGive& part, const std::string& pipes, const std::string& shm, ContainerSetup& setup) {
  const auto amount = static_cast<std::int64_t>(part.ids.size());
  if (part.resource == PartResource::kMilli || part.resource == PartResource::kCompute) {
    const std::int64_t percent = part.resource == PartResource::kMilli ? MpsPercentOf(amount) : amount;
    setup.environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(percent);
  }
  if (part.resource == PartResource::kCompute) return;  // The rest comes with its memory.
  setup.environment["CUDA_MPS_PIPE_DIRECTORY"] = kMpsPipesInContainer;
  // It sees one GPU, which is then the device 0.
  setup.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=" + std::to_string(part.memory_mib) + "M";
  setup.mounts.push_back({.host_path = pipes, .container_path = kMpsPipesInContainer, .is_read_only = false});
  if (!shm.empty()) setup.mounts.push_back({.host_path = shm, .container_path = "/dev/shm", .is_read_only = false});
}

}  // namespace grus
