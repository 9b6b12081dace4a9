// SPDX-License-Identifier: Apache-2.0
// Names by which manager, node agent and users speak of parts of GPUs.
#pragma once

namespace api {

// Extended resources.
inline constexpr char kGpuMilliResource[] = "ai.centauruscloud.io/gpu-milli";  // Thousandths of a GPU.
inline constexpr char kVgpuMemoryResource[] = "alnair/vgpu-memory";            // GiB.
inline constexpr char kVgpuComputeResource[] = "alnair/vgpu-compute";          // Percent of a GPU.
inline constexpr char kGpuMemResource[] = "aliyun.com/gpu-mem";                // GiB, as gpushare has it.

// Label of a node, by users: in which way it offers its GPUs.
inline constexpr char kSharingModeLabel[] = "sharing.ai.centauruscloud.io/mode";
// Annotation of a node, by the agent: its shared GPUs,
// [{"uuid": ..., "memoryMiB": ..., "milli": 1000, "mode": "alnair"}, ...]; "healthy": false on a GPU that is sick.
inline constexpr char kGpuInventoryAnnotation[] = "sharing.ai.centauruscloud.io/inventory";

// How a GPU is chosen for a part: "pack" or "spread". An annotation of a pod, also in a template, and a label of a
// node, for pods that say nothing. A pod may name one of the original Alnair's schedulers instead.
inline constexpr char kPartPlacementKey[] = "sharing.ai.centauruscloud.io/placement";
inline constexpr char kPackingScheduler[] = "alnair-cost-saving", kSpreadingScheduler[] = "alnair-high-performance";

// Annotation of a pod, by users when they create it: MiB of each of its containers that asks for thousandths.
inline constexpr char kMemoryMiBAnnotation[] = "sharing.ai.centauruscloud.io/memory-mib";
// Likewise: MiB that each of its containers with a part may have beside that, in the node's memory while the GPU has no
// room: over-subscribed.
inline constexpr char kPagedMiBAnnotation[] = "sharing.ai.centauruscloud.io/paged-mib";

// Annotations of a pod. By the manager: the UUID of the GPU that its plan has for it; of whole GPUs, "UUID,UUID".
inline constexpr char kPlannedGpuAnnotation[] = "sharing.ai.centauruscloud.io/planned-gpu";
// By the agent: what its containers have, {"CONTAINER": {"gpu": UUID, "milli": thousandths, "memoryMiB": ...}};
// "overridden": true where the pod sets NVIDIA_VISIBLE_DEVICES itself, and so may see other GPUs;
// of whole GPUs, and of claims on several, the others as "more".
inline constexpr char kHeldGpusAnnotation[] = "sharing.ai.centauruscloud.io/gpus";
// By the agent: what holds its containers to their parts.
inline constexpr char kEnforcementAnnotation[] = "sharing.ai.centauruscloud.io/enforcement";
inline constexpr char kNotEnforced[] = "None", kEnforcedByMps[] = "MPS", kEnforcedCooperatively[] = "Cooperative";
// Label of a node, by users: what shall hold containers to their parts; "mps", "cooperative", or no such label.
inline constexpr char kEnforcementLabel[] = "sharing.ai.centauruscloud.io/enforcement";

}  // namespace api
