// SPDX-License-Identifier: Apache-2.0
// Looks at a node that tests of what follows from one make up.
#pragma once

#include <string>

#include "nodeagent/gpu_probe.h"

namespace grus::testing {

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

// A GPU that works, of 80 GiB.
inline GpuState WorkingGpu(int index, const std::string& model = "NVIDIA H100 80GB HBM3") {
  GpuState state;
  state.gpu = {.uuid = "GPU-" + std::to_string(index), .index = index, .model = model, .driver_version = "580.95.05"};
  state.gpu.pcie_generation = 5;
  state.gpu.pcie_lanes = 16;
  state.sample = GpuSample{.memory_used_bytes = 10 * kGiB, .memory_total_bytes = 80 * kGiB};
  return state;
}

inline NodeSample LookAt(std::vector<GpuState> gpus) { return {.at = {}, .gpus = std::move(gpus), .is_open = true}; }

}  // namespace grus::testing
