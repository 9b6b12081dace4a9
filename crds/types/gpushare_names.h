// SPDX-License-Identifier: Apache-2.0
// Names of gpushare's contract, beside kGpuMemResource: by which its scheduler extender, its device plugin and
// kubectl-inspect-gpushare, and those of grus that stand in for them, speak of pods. GPUs are counted from 0, of those
// that a node offers; amounts are GiB.
#pragma once

namespace api {

// Resource of a node: how many GPUs it has.
inline constexpr char kGpushareCountResource[] = "aliyun.com/gpu-count";

// Annotations of a pod, by the extender; all but the last two are in the environment of its containers, too.
inline constexpr char kGpushareIndex[] = "ALIYUN_COM_GPU_MEM_IDX";               // Its GPU.
inline constexpr char kGpusharePod[] = "ALIYUN_COM_GPU_MEM_POD";                 // Of all its containers.
inline constexpr char kGpushareDevice[] = "ALIYUN_COM_GPU_MEM_DEV";              // That the GPU has.
inline constexpr char kGpushareAssigned[] = "ALIYUN_COM_GPU_MEM_ASSIGNED";       // "false": assumed; "true": given.
inline constexpr char kGpushareAssumeTime[] = "ALIYUN_COM_GPU_MEM_ASSUME_TIME";  // When: nanoseconds since 1970.

}  // namespace api
