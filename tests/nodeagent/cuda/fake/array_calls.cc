// SPDX-License-Identifier: Apache-2.0
// Arrays: their elements, and no padding. Sparse and deferred ones take nothing, as nothing can be mapped to them here.
#include <algorithm>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {

constexpr std::uint64_t kAlignment = 64 << 10;

struct Array {
  std::uint64_t bytes;
  bool is_deferred;
};
std::unordered_map<CUdeviceptr, Array>& arrays() {
  static auto* const instance = new std::unordered_map<CUdeviceptr, Array>;
  return *instance;
}

// Of a level, with all channels; 0: no such format.
std::uint64_t LevelBytes(int format, unsigned channels, std::uint64_t width, std::uint64_t rows) {
  constexpr int kBlocks[] = {8, 8, 16, 16, 16, 16, 8, 8, 16, 16, 16, 16, 16, 16};  // Of 16 elements, from 0x91 on.
  constexpr int kNormalized[] = {1, 2, 4, 2, 4, 8};                                // Signed ones are the same again.
  switch (format) {
    case 0x01:
    case 0x08: return width * rows * channels;  // Integers of 8 bits,
    case 0x02:
    case 0x09:
    case 0x10: return width * rows * channels * 2;  // of 16, and half floats;
    case 0x03:
    case 0x0a:
    case 0x20: return width * rows * channels * 4;  // of 32, and floats.
    case 0xb0: return width * rows * 3 / 2;
    default: break;
  }
  if (format >= 0x91 && format <= 0x9e) {
    return (width + 3) / 4 * ((rows + 3) / 4) * static_cast<std::uint64_t>(kBlocks[format - 0x91]);
  }
  if (format < 0xc0 || format > 0xcb) return 0;
  return width * rows * static_cast<std::uint64_t>(kNormalized[(format - 0xc0) % 6]);
}

CUresult Create(const char* function, CUdeviceptr* handle, const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned levels) {
  return EnterInContext(function, [&](Driver& driver, Context& context) -> CUresult {
    const bool has_channels = wanted.channels == 1 || wanted.channels == 2 || wanted.channels == 4 ||
                              (wanted.channels == 3 && wanted.format == 0xb0);
    if (LevelBytes(wanted.format, 1, 4, 4) == 0 || !has_channels || wanted.width == 0 || levels == 0)
      return kInvalidValue;
    if (std::max({wanted.width, wanted.height, wanted.depth}) > 1 << 18) return kInvalidValue;
    std::uint64_t bytes = 0;
    const bool is_layered = (wanted.flags & kArrayLayered) != 0;
    for (unsigned level = 0; level < levels; ++level) {
      const auto at = [&](std::uint64_t side) { return std::max<std::uint64_t>(side >> level, 1); };
      bytes += LevelBytes(wanted.format, wanted.channels, at(wanted.width), at(wanted.height)) *
               (is_layered ? std::max<std::uint64_t>(wanted.depth, 1) : at(wanted.depth));
    }
    const bool is_deferred = (wanted.flags & (kArraySparse | kArrayDeferred)) != 0;
    CUdeviceptr number = driver.NewAddress(1);
    if (is_deferred) {
      driver.blocks[number] = {.gpu = context.gpu, .owner = &context, .is_array = true};
    } else if (const CUresult made = driver.Allocate(&context, bytes, &number); made != kSuccess) {
      return made;
    }
    driver.blocks[number].is_array = true;
    arrays()[number] = {bytes, is_deferred};
    *handle = number;
    return kSuccess;
  });
}

CUresult CreateArray(const char* function, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  CUdeviceptr handle = 0;
  const CUresult made = Create(function, &handle, wanted, 1);
  if (made == kSuccess) *array = reinterpret_cast<CUarray>(handle);
  return made;
}

CUresult Destroy(const char* function, CUdeviceptr handle) {
  return Enter(function, [&](Driver& driver) {
    arrays().erase(handle);
    return driver.FreeBlock(handle, true);
  });
}

CUresult Requirements(const char* function, CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUdeviceptr handle, CUdevice gpu) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    const auto found = arrays().find(handle);
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    if (found == arrays().end() || !found->second.is_deferred) return kInvalidValue;
    *out = {.size = RoundUp(found->second.bytes, kAlignment), .alignment = kAlignment, .reserved = {}};
    return kSuccess;
  });
}

}  // namespace

extern "C" {

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* wanted) {
  return CreateArray(__func__, array, {wanted->width, wanted->height, 0, wanted->format, wanted->channels, 0});
}
CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* wanted) {
  return CreateArray(__func__, array, {wanted->width, wanted->height, 0, wanted->format, wanted->channels, 0});
}
CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* wanted) {
  return CreateArray(__func__, array,
                     {wanted->width, wanted->height, wanted->depth, wanted->format, wanted->channels, wanted->flags});
}
CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
  return CreateArray(__func__, array, *wanted);
}
CUresult cuArrayDestroy(CUarray array) { return Destroy(__func__, reinterpret_cast<CUdeviceptr>(array)); }
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray array, CUdevice gpu) {
  return Requirements(__func__, out, reinterpret_cast<CUdeviceptr>(array), gpu);
}
CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted, unsigned levels) {
  CUdeviceptr handle = 0;
  const CUresult made = Create(__func__, &handle, *wanted, levels);
  if (made == kSuccess) *array = reinterpret_cast<CUmipmappedArray>(handle);
  return made;
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return Destroy(__func__, reinterpret_cast<CUdeviceptr>(array));
}
CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUmipmappedArray array,
                                               CUdevice gpu) {
  return Requirements(__func__, out, reinterpret_cast<CUdeviceptr>(array), gpu);
}

}  // extern "C"

}  // namespace grus::cuda::fake
