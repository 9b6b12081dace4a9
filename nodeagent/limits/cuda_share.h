// SPDX-License-Identifier: Apache-2.0
// What a container gets so that libgrus-cuda.so holds it to its part of a GPU: mounts, and the folder of its share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/kubelet/device_plugin.h"
#include "nodeagent/limits/cuda_library.h"
#include "nodeagent/limits/share_folder.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

inline constexpr char kPreloadInContainer[] = "/etc/ld.so.preload";

// Whether this resource of a container brings its share: each does but compute, which comes with memory.
bool BringsShare(PartResource resource);
// A name for the folder of whoever holds these ids: always the same for the same ids. REQUIRES: sorted, of one GPU.
std::string ShareName(PartResource resource, const std::vector<PartId>& ids);
// Whether it may be one of those.
bool IsShareName(std::string_view name);
// Of a resource that brings a share. No mount is in two answers that one container gets.
void AddCudaMounts(const CudaLibrary& library, const std::string& share, ContainerSetup& setup);

// `milli`: 0: time is not limited. At first it may have what it is guaranteed.
ShareLimits LimitsOf(const std::string& gpu, std::int64_t memory_mib, std::int64_t milli, std::int64_t context_mib);
// What the container may have of its GPU. None: that is not known now, as the GPU is not seen.
std::optional<ShareLimits> ShareLimitsOf(const HeldParts& holder, std::span<const SharedGpu> gpus,
                                         std::int64_t context_mib);

}  // namespace grus
