// SPDX-License-Identifier: Apache-2.0
// What pods and the node say of parts of GPUs, as annotations: the original Alnair's and ours. Pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

inline constexpr char kAlnairGpuIdAnnotation[] = "ai.centaurus.io/alnair-gpu-id";
inline constexpr char kAlnairIdAnnotation[] = "ai.centaurus.io/alnair-id";
// {"CONTAINER": {"gpu": UUID, "milli": thousandths, "memoryMiB": ...}}; of claims on several GPUs, the others as
// "more".
inline constexpr char kPodGpusAnnotation[] = "sharing.ai.centauruscloud.io/gpus";
// What holds a container to its part: "None", as long as nothing does.
inline constexpr char kEnforcementAnnotation[] = "sharing.ai.centauruscloud.io/enforcement";

// On nodes; the third one is spelt as the original does.
inline constexpr char kPhysicalGpuCountAnnotation[] = "ai.centaurus.io/physical-gpu-count";
inline constexpr char kPhysicalGpuUuidsAnnotation[] = "ai.centaurus.io/physical-gpu-uuids";
inline constexpr char kVirtualGpuCountAnnotation[] = "ai.centaurus.io/vitual-gpu-count";
// [{"uuid": ..., "memoryMiB": ..., "milli": 1000, "mode": "alnair"}, ...]; "healthy": false on a GPU that is sick.
inline constexpr char kInventoryAnnotation[] = "sharing.ai.centauruscloud.io/inventory";

inline constexpr std::size_t kLongestIdList = 8 << 10;

using AnnotationTexts = std::map<std::string, std::string>;  // By key; empty: it is not there.

// All keys of pods. `parts`: those of its containers.
AnnotationTexts PodPartAnnotations(std::span<const HeldParts> parts, std::span<const SharedGpu> gpus);
// All keys of nodes.
AnnotationTexts NodePartAnnotations(SharingMode mode, std::span<const SharedGpu> gpus);

}  // namespace grus
