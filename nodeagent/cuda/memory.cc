// SPDX-License-Identifier: Apache-2.0
// Memory that a pointer names: plain, with a pitch, managed.
#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {
namespace {

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  driver::CtxGetCurrent(&context);
  return context;
}

template <typename Pointer>
CUresult Allocated(int gpu, std::uint64_t bytes, CUresult result, const Pointer* pointer) {
  if (result == kSuccess && gpu != kNoGpu) {
    Remember(*pointer, bytes, gpu, LiveKind::kPlain, CurrentContext());
  }
  return result;
}

template <typename Pointer, typename Bytes>
CUresult Allocate(CUresult (*real)(Pointer*, Bytes), Pointer* pointer, Bytes size) {
  if (real == nullptr) return kNotSupported;
  const int gpu = CurrentGpu();
  const std::uint64_t bytes = InPieces(size);
  return Allocated(gpu, bytes, Counted(gpu, bytes, [&] { return real(pointer, size); }), pointer);
}

// The driver chooses the pitch: the width, up to a multiple of something that is a piece at most.
template <typename Pointer, typename Bytes>
CUresult AllocatePitch(CUresult (*real)(Pointer*, Bytes*, Bytes, Bytes, unsigned), Pointer* pointer, Bytes* pitch,
                       Bytes width, Bytes height, unsigned element) {
  if (real == nullptr) return kNotSupported;
  const int gpu = CurrentGpu();
  const auto rows = static_cast<std::uint64_t>(height);
  std::uint64_t reserved = 0;
  if (__builtin_mul_overflow(InPieces(width), rows, &reserved)) return kOutOfMemory;
  const CUresult result = Counted(gpu, reserved, [&] { return real(pointer, pitch, width, height, element); });
  if (result != kSuccess) return result;
  const std::uint64_t taken = InPieces(static_cast<std::uint64_t>(*pitch) * rows);
  Settle(gpu, reserved, taken);
  return Allocated(gpu, taken, result, pointer);
}

// Before it is free somebody else cannot get the same pointer; after it, this one is remembered no longer.
template <typename Pointer>
CUresult Free(CUresult (*real)(Pointer), Pointer pointer) {
  if (real == nullptr) return kNotSupported;
  LiveAllocation freed;
  const bool is_known = TakeBack(pointer, &freed);
  const CUresult result = real(pointer);
  if (!is_known) return result;
  if (result != kSuccess) RememberAgain(freed);
  else GiveBackFreed(freed);
  return result;
}

}  // namespace

GRUS_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1* pointer, unsigned bytes) {
  return Allocate(GRUS_REAL(cuMemAlloc), pointer, bytes);
}
GRUS_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  return Allocate(GRUS_REAL(cuMemAlloc_v2), pointer, bytes);
}
GRUS_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1* pointer, unsigned* pitch, unsigned width, unsigned height,
                                     unsigned element) {
  return AllocatePitch(GRUS_REAL(cuMemAllocPitch), pointer, pitch, width, height, element);
}
GRUS_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width, std::size_t height,
                                        unsigned element) {
  return AllocatePitch(GRUS_REAL(cuMemAllocPitch_v2), pointer, pitch, width, height, element);
}
// It may lie in the host's memory at times. It counts whole: it comes back whenever a kernel touches it.
GRUS_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned flags) {
  auto* const real = GRUS_REAL(cuMemAllocManaged);
  if (real == nullptr) return kNotSupported;
  const int gpu = CurrentGpu();
  const std::uint64_t counted = InPieces(bytes);
  return Allocated(gpu, counted, Counted(gpu, counted, [&] { return real(pointer, bytes, flags); }), pointer);
}
GRUS_EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer) { return Free(GRUS_REAL(cuMemFree), pointer); }
GRUS_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) { return Free(GRUS_REAL(cuMemFree_v2), pointer); }

}  // namespace grus::cuda
