// SPDX-License-Identifier: Apache-2.0
// The part of NVML's C interface that programs are told their memory by. Not to be included beside NVIDIA's own nvml.h,
// which has macros of these names.
#pragma once

namespace grus::cuda {

using nvmlReturn = int;
using nvmlDevice = struct nvmlDevice_st*;
struct nvmlMemory {
  unsigned long long total, free, used;
};
struct nvmlMemory_v2 {
  unsigned version;  // kNvmlMemory2
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(nvmlMemory_v2) == 40);
inline constexpr unsigned kNvmlMemory2 = 0x2000028;
inline constexpr nvmlReturn kNvmlFunctionNotFound = 13;

}  // namespace grus::cuda
