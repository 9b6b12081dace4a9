// SPDX-License-Identifier: Apache-2.0
// What the original Alnair's profiler wrote to its node: annotations whose values are Python dicts as text. Pure.
//
// Its keys, with values that are known to be true: what is not known is left out, and so are `cyclic_pattern` and
// `period`, which no node can tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/gpu_probe.h"

namespace grus {

inline constexpr char kGpuStaticAnnotation[] = "ai.centaurus.io/gpu-static";
inline constexpr char kGpuUsageAnnotation[] = "ai.centaurus.io/gpu-";  // And the GPU's index.

// Count of the GPUs; model, memory and bus of the first one. Its readers cut the model out by place, so it is whole or
// empty. REQUIRES: `look` is complete.
std::string GpuStaticText(const NodeSample& look);

struct AlnairUsage {
  std::optional<std::uint64_t> memory_used_bytes = {}, memory_total_bytes = {};
  std::optional<std::uint32_t> peak_utilization_percent = {}, peak_memory_controller_percent = {};  // Of two minutes.
  std::vector<std::pair<int, std::uint64_t>> process_bytes = {};  // By PID; of those whose memory is known.
  std::size_t processes = 0;
};

// nullopt: the GPU is lost.
std::optional<AlnairUsage> AlnairUsageOf(const GpuState& state);
std::string ToText(const AlnairUsage& usage);
// A number has moved by a tenth of its scale: the GPU's memory, 100 %, or the number of processes.
bool HasMoved(const AlnairUsage& before, const AlnairUsage& after);

}  // namespace grus
