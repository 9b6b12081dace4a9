// SPDX-License-Identifier: Apache-2.0
// The GPUs of this node of which parts can be given, from what the probe sees.
//
// A GPU that is lost, or that reported an error which no application causes, stays among them and is not healthy, so
// that the kubelet keeps its containers and starts no others there; it is healthy again as soon as the probe says so.
// Left out are GPUs that are divided (MIG), and those whose memory was never known. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nodeagent/gpu_probe.h"
#include "nodeagent/sharing/device_ids.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

inline constexpr std::int64_t kMiBOfGiB = 1024, kMilliOfGpu = 1000, kPercentOfGpu = 100;

struct SharedGpu {
  std::string uuid = {};
  int index = 0;                // As nvidia-smi counts.
  std::int64_t memory_mib = 0;  // Usable by containers: without the reserve.
  bool is_healthy = true;
  std::string model = {}, driver_version = {};
  std::int64_t count(PartResource resource) const;  // How many ids it has.
  friend bool operator==(const SharedGpu&, const SharedGpu&) = default;
};

// What a container may use of `gpu`, with these amounts.
std::int64_t MilliOf(const PartAmounts& amounts);
// `said_mib`: by its pod, instead of in proportion to its thousandths; 0: nothing.
std::int64_t MemoryMiBOf(const PartAmounts& amounts, const SharedGpu& gpu, std::int64_t said_mib = 0);

// More thousandths than one GPU has: the container asks for whole GPUs.
bool IsForWholeGpus(PartResource resource, std::int64_t amount);
// All thousandths of two GPUs or more. REQUIRES: sorted.
bool AreWholeGpus(PartResource resource, const std::vector<PartId>& ids);

class SharedGpus {
 public:
  // `reserve_mib`: of each GPU, for the driver and the contexts of processes.
  explicit SharedGpus(std::int64_t reserve_mib) : reserve_mib_(reserve_mib) {}

  // By index.
  std::vector<SharedGpu> Of(const NodeSample& look);

 private:
  const std::int64_t reserve_mib_;
  std::map<std::string, std::uint64_t> bytes_;  // Of GPUs in the last look, by UUID, as they last were known.
};

}  // namespace grus
