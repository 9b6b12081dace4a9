// SPDX-License-Identifier: Apache-2.0
// Whether a container may have these parts, and start with what it holds. Pure. An error names the container and what
// to do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

// Ids of one resource, as a kubelet hands them out: they are there, well, and of one GPU, or all of several.
kube::Result<std::vector<PartId>> CheckIds(PartResource resource, const std::vector<std::string>& ids,
                                           const std::vector<SharedGpu>& gpus);

// On one GPU, or whole ones; with memory.
kube::Status CheckHeld(const HeldParts& starting);

// `gpu` has the memory that `starting` asks for there by thousandths, beside those that have started.
kube::Status CheckMemory(const HeldParts& starting, std::span<const HeldParts> started, const SharedGpu& gpu);

}  // namespace grus
