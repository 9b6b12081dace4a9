// SPDX-License-Identifier: Apache-2.0
// Arrays: of one to three dimensions, also with mipmaps. The driver says of none of them what it takes, so what their
// elements take is counted. Sparse ones, and those whose mapping is deferred, take nothing: what is mapped into them
// was allocated before.
#include <algorithm>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {
namespace {

// What elements of a format take (CUarray_format in the documentation): bytes for each square of them.
struct Texels {
  std::uint64_t bytes = 0;
  std::uint64_t side = 1;
  bool is_of_all_channels = true;
};

Texels TexelsOf(int format) {
  switch (format) {
    case 0x01:
    case 0x08: return {.bytes = 1, .is_of_all_channels = false};  // 8 bit
    case 0x02:
    case 0x09:
    case 0x10: return {.bytes = 2, .is_of_all_channels = false};  // 16 bit
    case 0x03:
    case 0x0a:
    case 0x20: return {.bytes = 4, .is_of_all_channels = false};  // 32 bit
    case 0x91:
    case 0x92:
    case 0x97:
    case 0x98: return {.bytes = 8, .side = 4};  // BC1, BC4
    case 0x93:
    case 0x94:
    case 0x95:
    case 0x96:
    case 0x99:
    case 0x9a:
    case 0x9b:
    case 0x9c:
    case 0x9d:
    case 0x9e: return {.bytes = 16, .side = 4};  // The other BCn
    case 0xb0: return {.bytes = 6, .side = 2};   // NV12
    case 0xc0:
    case 0xc6: return {.bytes = 1};  // Normalized: 8 bit, of one channel,
    case 0xc1:
    case 0xc7: return {.bytes = 2};  // of two,
    case 0xc2:
    case 0xc8: return {.bytes = 4};  // of four;
    case 0xc3:
    case 0xc9: return {.bytes = 2};  // 16 bit, of one,
    case 0xc4:
    case 0xca: return {.bytes = 4};  // of two,
    case 0xc5:
    case 0xcb: return {.bytes = 8};                              // of four.
    default: return {.bytes = 16, .is_of_all_channels = false};  // No less than any other.
  }
}

template <typename Size>
std::uint64_t SizeOf(Size width, Size height, Size depth, int format, unsigned channels, unsigned levels) {
  const Texels texels = TexelsOf(format);
  const auto squares = [&](std::uint64_t elements) {
    return elements / texels.side + (elements % texels.side != 0 ? 1 : 0);
  };
  std::uint64_t bytes = texels.bytes;
  for (const std::uint64_t factor :
       {squares(width), squares(std::max<std::uint64_t>(height, 1)), std::max<std::uint64_t>(depth, 1),
        std::max<std::uint64_t>(texels.is_of_all_channels ? 1 : channels, 1), std::uint64_t{levels > 1 ? 2U : 1U}}) {
    if (__builtin_mul_overflow(bytes, factor, &bytes)) return ~std::uint64_t{0};
  }
  return InPieces(bytes);
}

template <typename Array, typename F>
CUresult Create(Array* array, std::uint64_t bytes, F&& call) {
  CUcontext context = nullptr;
  const int gpu = CurrentGpu();
  const CUresult result = Counted(gpu, bytes, call);
  if (result != kSuccess || gpu == kNoGpu) return result;
  driver::CtxGetCurrent(&context);
  Remember(KeyOf(*array), bytes, gpu, LiveKind::kArray, context);
  return result;
}

template <typename Array>
CUresult Destroy(CUresult (*real)(Array), Array array) {
  if (real == nullptr) return kNotSupported;
  LiveAllocation freed;
  const bool is_known = TakeBack(KeyOf(array), &freed);
  const CUresult result = real(array);
  if (!is_known) return result;
  if (result == kSuccess) GiveBack(freed.gpu, freed.bytes);
  else RememberAgain(freed);
  return result;
}

template <typename Descriptor>
CUresult CreateFlat(CUresult (*real)(CUarray*, const Descriptor*), CUarray* array, const Descriptor* made) {
  if (real == nullptr) return kNotSupported;
  const auto call = [&] { return real(array, made); };
  if (made == nullptr) return call();
  return Create(array, SizeOf<std::size_t>(made->width, made->height, 1, made->format, made->channels, 1), call);
}

template <typename Descriptor>
CUresult Create3D(CUresult (*real)(CUarray*, const Descriptor*), CUarray* array, const Descriptor* made) {
  if (real == nullptr) return kNotSupported;
  const auto call = [&] { return real(array, made); };
  if (made == nullptr || (made->flags & (kArraySparse | kArrayDeferred)) != 0) return call();
  return Create(array, SizeOf<std::size_t>(made->width, made->height, made->depth, made->format, made->channels, 1),
                call);
}

}  // namespace

GRUS_EXPORT CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* made) {
  return CreateFlat(GRUS_REAL(cuArrayCreate), array, made);
}
GRUS_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* made) {
  return CreateFlat(GRUS_REAL(cuArrayCreate_v2), array, made);
}
GRUS_EXPORT CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* made) {
  return Create3D(GRUS_REAL(cuArray3DCreate), array, made);
}
GRUS_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* made) {
  return Create3D(GRUS_REAL(cuArray3DCreate_v2), array, made);
}
GRUS_EXPORT CUresult cuArrayDestroy(CUarray array) { return Destroy(GRUS_REAL(cuArrayDestroy), array); }

GRUS_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* made,
                                            unsigned levels) {
  auto* const real = GRUS_REAL(cuMipmappedArrayCreate);
  if (real == nullptr) return kNotSupported;
  const auto call = [&] { return real(array, made, levels); };
  if (made == nullptr || (made->flags & (kArraySparse | kArrayDeferred)) != 0) return call();
  return Create(array, SizeOf(made->width, made->height, made->depth, made->format, made->channels, levels), call);
}
GRUS_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return Destroy(GRUS_REAL(cuMipmappedArrayDestroy), array);
}

}  // namespace grus::cuda
