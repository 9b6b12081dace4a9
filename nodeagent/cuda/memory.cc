// SPDX-License-Identifier: Apache-2.0
// Memory that a pointer names: plain, with a pitch, managed. Past its part a container may have more of it, which is
// managed whatever a program asked for: the driver moves it to the host's memory when others need the GPU's, so that
// they never pay for it. What is larger than what is left of the part is so as a whole.
#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {

GRUS_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned flags);

namespace {

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  driver::CtxGetCurrent(&context);
  return context;
}

// Pointers of 32 bits lead to no managed memory.
template <typename Pointer>
constexpr bool kMayPage = sizeof(Pointer) == sizeof(CUdeviceptr);

// Reserves in the part or, where it has no room, where its paged memory counts. Calls one of the two accordingly, which
// says in `bytes` what was really taken.
template <typename Pointer, typename Plain, typename Paged>
CUresult Allocate(Pointer* pointer, std::uint64_t& bytes, Plain&& plain, Paged&& paged) {
  const int gpu = CurrentGpu();
  const std::uint64_t reserved = bytes;
  int from = gpu;
  if (!(kMayPage<Pointer> ? ReserveOrPage(gpu, reserved, from) : Reserve(gpu, reserved))) return kOutOfMemory;
  const CUresult result = from == gpu ? plain() : paged();
  if (result != kSuccess) {
    GiveBack(from, reserved);
  } else if (gpu != kNoGpu) {
    Settle(from, reserved, bytes);
    Remember(*pointer, bytes, from, LiveKind::kPlain, CurrentContext());
  }
  return result;
}

// For a program that did not ask for it: a driver that has no such memory has none.
template <typename Pointer>
CUresult AllocateManaged(Pointer* pointer, std::uint64_t bytes) {
  if constexpr (kMayPage<Pointer>) {
    auto* const real = GRUS_REAL(cuMemAllocManaged);
    const CUresult result = real != nullptr ? real(pointer, bytes, kAttachGlobal) : kNotSupported;
    return result == kNotSupported ? kOutOfMemory : result;
  }
  return kOutOfMemory;
}

template <typename Pointer, typename Bytes>
CUresult AllocatePlain(CUresult (*real)(Pointer*, Bytes), Pointer* pointer, Bytes size) {
  if (real == nullptr) return kNotSupported;
  std::uint64_t bytes = InPieces(size);
  return Allocate(
      pointer, bytes, [&] { return real(pointer, size); }, [&] { return AllocateManaged(pointer, size); });
}

// The driver chooses the pitch: the width, up to a multiple of something that is a piece at most. Managed memory has no
// such function: there the pitch is of whole pieces.
template <typename Pointer, typename Bytes>
CUresult AllocatePitch(CUresult (*real)(Pointer*, Bytes*, Bytes, Bytes, unsigned), Pointer* pointer, Bytes* pitch,
                       Bytes width, Bytes height, unsigned element) {
  if (real == nullptr) return kNotSupported;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(InPieces(width), std::uint64_t{height}, &bytes)) return kOutOfMemory;
  const auto plain = [&] {
    const CUresult result = real(pointer, pitch, width, height, element);
    if (result == kSuccess) bytes = InPieces(std::uint64_t{*pitch} * height);
    return result;
  };
  const auto paged = [&] {
    if (pitch == nullptr || (element != 4 && element != 8 && element != 16)) return kInvalidValue;
    const CUresult result = AllocateManaged(pointer, bytes);
    if (result == kSuccess) *pitch = static_cast<Bytes>(InPieces(width));
    return result;
  };
  return Allocate(pointer, bytes, plain, paged);
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
  return AllocatePlain(GRUS_REAL(cuMemAlloc), pointer, bytes);
}
GRUS_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  return AllocatePlain(GRUS_REAL(cuMemAlloc_v2), pointer, bytes);
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
  std::uint64_t counted = InPieces(bytes);
  const auto call = [&] { return real(pointer, bytes, flags); };
  return Allocate(pointer, counted, call, call);
}
GRUS_EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer) { return Free(GRUS_REAL(cuMemFree), pointer); }
GRUS_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) { return Free(GRUS_REAL(cuMemFree_v2), pointer); }

}  // namespace grus::cuda
