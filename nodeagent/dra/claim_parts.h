// SPDX-License-Identifier: Apache-2.0
// Claims for parts of this node's GPUs (Dynamic Resource Allocation): what the scheduler has allocated. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/resource_claims.h"
#include "nodeagent/kubelet/claim_driver.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

inline constexpr char kGpuDriver[] = "gpu.ai.centauruscloud.io";
// What can be consumed of a device: bytes, and thousandths of the GPU.
inline constexpr char kMemoryCapacity[] = "memory", kMilliCapacity[] = "milli";

// "gpu-4f2c...", the UUID in lower case; empty: it makes no name of a device.
std::string DeviceNameOf(std::string_view uuid);

struct AllocatedPart {
  std::string request = {}, device = {}, share_id = {};
  std::string gpu = {};  // UUID
  std::int64_t milli = 0, memory_mib = 0;
  friend bool operator==(const AllocatedPart&, const AllocatedPart&) = default;
};

struct AllocatedClaim {
  ClaimName claim = {};
  std::vector<AllocatedPart> parts = {};
  friend bool operator==(const AllocatedClaim&, const AllocatedClaim&) = default;
};

// "ResourceClaim team-a/gpu"
std::string TextOf(const ClaimName& claim);

// What of our driver `found` was allocated in this pool; without consumedCapacity it is the whole GPU. Errors name the
// claim, the field and what to do: it is another claim of that name, nothing is allocated, or not here; a GPU is not
// there (kNotFound), or sick (kUnavailable).
kube::Result<AllocatedClaim> PartsOf(const kube::ResourceClaim& found, const ClaimName& asked, std::string_view pool,
                                     std::span<const SharedGpu> gpus);

// Whether these parts fit beside the others. Error (kUnavailable): names the GPU, and who has it.
kube::Status CheckRoom(const AllocatedClaim& claim, std::span<const AllocatedClaim> others,
                       std::span<const SharedGpu> gpus);

}  // namespace grus
