// SPDX-License-Identifier: Apache-2.0
// What a container is told of the parts that it gets, in its environment. Pure.
#pragma once

#include <span>
#include <vector>

#include "nodeagent/kubelet/device_plugin.h"
#include "nodeagent/sharing/gpu_chooser.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

// What these ids of one resource bring; of several GPUs it says lists. `on`: the GPUs on which they lie, `all`: those
// of the node, by index. No variable is in the answers for two resources of one container.
ContainerSetup SetupOf(PartResource resource, const std::vector<PartId>& ids, const GpuChoice& choice,
                       std::span<const SharedGpu> on, std::span<const SharedGpu> all);

// The memory that these ids bring of this GPU.
std::int64_t MemoryMiBOn(const SharedGpu& gpu, PartResource resource, const std::vector<PartId>& ids,
                         const GpuChoice& choice);

}  // namespace grus
