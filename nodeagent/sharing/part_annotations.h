// SPDX-License-Identifier: Apache-2.0
// What pods and the node say of parts of GPUs, as annotations: the original Alnair's and ours (see sharing_names.h).
// Pure.
#pragma once

#include <map>
#include <span>
#include <string>

#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

inline constexpr char kAlnairGpuIdAnnotation[] = "ai.centaurus.io/alnair-gpu-id";
inline constexpr char kAlnairIdAnnotation[] = "ai.centaurus.io/alnair-id";

// On nodes; the third one is spelt as the original does.
inline constexpr char kPhysicalGpuCountAnnotation[] = "ai.centaurus.io/physical-gpu-count";
inline constexpr char kPhysicalGpuUuidsAnnotation[] = "ai.centaurus.io/physical-gpu-uuids";
inline constexpr char kVirtualGpuCountAnnotation[] = "ai.centaurus.io/vitual-gpu-count";

// What holds the containers of a pod to these parts of theirs: kEnforcementAnnotation. One way for all of them, or
// nothing: a pod of which one container is held to its part and another is not, or otherwise, promises nothing.
std::string EnforcementOf(std::span<const HeldParts> parts);

inline constexpr std::size_t kLongestIdList = 8 << 10;

using AnnotationTexts = std::map<std::string, std::string>;  // By key; empty: it is not there.

// All keys of pods; gpushare's only if it holds such parts, as the extender writes them before. `parts`: those of its
// containers.
AnnotationTexts PodPartAnnotations(std::span<const HeldParts> parts, std::span<const SharedGpu> gpus);
// All keys of nodes.
AnnotationTexts NodePartAnnotations(SharingMode mode, std::span<const SharedGpu> gpus);

}  // namespace grus
