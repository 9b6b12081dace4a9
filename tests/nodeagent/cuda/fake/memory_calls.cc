// SPDX-License-Identifier: Apache-2.0
// Plain memory, and managed memory, which the GPU has as far as there is room: see WorldFile.
#include <algorithm>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {

constexpr std::uint64_t kPitch = 512;  // Rows begin at multiples of it.

CUresult Info(const char* function, std::uint64_t* free, std::uint64_t* total) {
  return EnterInContext(function, [&](Driver& driver, Context& context) {
    DropUnusedExports(driver);
    const std::scoped_lock held(*driver.world());
    driver.world()->Sweep();
    const FakeGpu& gpu = driver.state().gpus[context.gpu];
    *free = gpu.total - gpu.used - gpu.resident;
    *total = gpu.total;
    return kSuccess;
  });
}

CUresult Allocate(const char* function, CUdeviceptr* pointer, std::uint64_t bytes) {
  return EnterInContext(function, [&](Driver& driver, Context& context) {
    CUdeviceptr at = 0;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    const CUresult made = driver.Allocate(&context, bytes, &at);
    if (made == kSuccess) *pointer = at;
    return made;
  });
}

CUresult AllocateSmall(const char* function, CUdeviceptr_v1* pointer, std::uint64_t bytes) {
  return EnterInContext(function, [&](Driver& driver, Context& context) {
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    const CUdeviceptr_v1 small = driver.NewSmallAddress();
    CUdeviceptr at = small;
    const CUresult made = driver.Allocate(&context, bytes, &at);
    if (made == kSuccess) *pointer = small;
    return made;
  });
}

bool IsElementSize(unsigned bytes) { return bytes == 4 || bytes == 8 || bytes == 16; }

CUresult Free(const char* function, CUdeviceptr pointer) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    if (pointer == 0) return kSuccess;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    return driver.FreeBlock(pointer);
  });
}

}  // namespace

extern "C" {

CUresult cuMemGetInfo(unsigned* free, unsigned* total) {
  std::uint64_t its_free = 0, its_total = 0;
  const CUresult result = Info(__func__, &its_free, &its_total);
  *free = static_cast<unsigned>(std::min<std::uint64_t>(its_free, ~0U));
  *total = static_cast<unsigned>(std::min<std::uint64_t>(its_total, ~0U));
  return result;
}
CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) { return Info(__func__, free, total); }

CUresult cuMemAlloc(CUdeviceptr_v1* pointer, unsigned bytes) { return AllocateSmall(__func__, pointer, bytes); }
CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) { return Allocate(__func__, pointer, bytes); }
// Of a driver that is yet to come: with the same name, and other parameters.
CUresult cuMemAlloc_v3(std::size_t bytes, CUdeviceptr* pointer) { return Allocate(__func__, pointer, bytes); }
CUresult cuMemAllocPitch(CUdeviceptr_v1* pointer, unsigned* pitch, unsigned width, unsigned height, unsigned element) {
  if (!IsElementSize(element)) return kInvalidValue;
  *pitch = static_cast<unsigned>(RoundUp(width, kPitch));
  return AllocateSmall(__func__, pointer, std::uint64_t{*pitch} * height);
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* pointer, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned element) {
  std::uint64_t bytes = 0;
  if (!IsElementSize(element)) return kInvalidValue;
  *pitch = RoundUp(width, kPitch);
  if (__builtin_mul_overflow(*pitch, height, &bytes)) return kOutOfMemory;
  return Allocate(__func__, pointer, bytes);
}
CUresult cuMemAllocManaged(CUdeviceptr* pointer, std::size_t bytes, unsigned flags) {
  return EnterInContext(__func__, [&](Driver& driver, Context& context) {
    CUdeviceptr at = 0;
    if (flags != 1 && flags != 2) return kInvalidValue;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    const CUresult made = driver.AllocateManaged(&context, bytes, &at);
    if (made == kSuccess) *pointer = at;
    return made;
  });
}
CUresult cuMemFree(CUdeviceptr_v1 pointer) { return Free(__func__, pointer); }
CUresult cuMemFree_v2(CUdeviceptr pointer) { return Free(__func__, pointer); }

}  // extern "C"

}  // namespace grus::cuda::fake
