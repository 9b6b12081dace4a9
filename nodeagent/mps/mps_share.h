// SPDX-License-Identifier: Apache-2.0
// What a container gets so that CUDA's MPS holds it to its part of a GPU. Pure.
//
// The limits stand in the container's environment, so they hold for each of its processes, and not for a process that
// takes them out. Source: NVIDIA's documentation of MPS, "Environment Variables".
#pragma once

#include <cstdint>
#include <string>

#include "nodeagent/kubelet/device_plugin.h"
#include "nodeagent/sharing/part_enforcer.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

inline constexpr char kMpsPipesInContainer[] = "/run/grus/mps";

// Percent of a GPU's threads, from thousandths of it: rounded down, so that the parts of a GPU add up to at most all of
// it, but at least 1.
std::int64_t MpsPercentOf(std::int64_t milli);
// Adds variables and mounts. `pipes`, `shm`: folders of the node; without `shm` the container keeps its own /dev/shm.
// No variable or mount is in two answers that one container gets.
void AddMps(const PartToGive& part, const std::string& pipes, const std::string& shm, ContainerSetup& setup);

}  // namespace grus
