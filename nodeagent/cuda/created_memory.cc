// SPDX-License-Identifier: Apache-2.0
// Memory that is made apart from where it is mapped. It lives as long as a handle or a mapping of it does, and counts
// on the GPU where it lies, whatever the thread's context is: there may be none yet. Imported memory its owner pays.
#include <pthread.h>

#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/lock.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {
namespace {

// For all that changes how many uses something has. The driver is not asked with it: it may wait for what runs.
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
const UnlockedInChild unlocked(mutex);

// What was made is remembered by its first handle, with the number of its uses (handles and mappings) in the place of a
// context; a mapping by its address, and another handle of the same memory, each with that first handle in that place.
const void* AsContext(std::uint64_t number) { return reinterpret_cast<const void*>(number); }

bool IsOf(const LiveAllocation& one, LiveKind kind) { return one.kind == static_cast<std::uint32_t>(kind); }

// The first handle of the memory; 0: not made here.
std::uint64_t FirstHandle(std::uint64_t handle) {
  LiveAllocation found;
  if (!Recall(handle, &found)) return 0;
  if (IsOf(found, LiveKind::kSameAs)) return found.context;
  return IsOf(found, LiveKind::kCreated) ? handle : 0;
}

void AddUse(std::uint64_t first) {
  LiveAllocation made;
  if (!TakeBack(first, &made)) return;
  ++made.context;
  RememberAgain(made);
}

// The memory with its one use, if that was the last one: it is remembered no more, and not yet given back.
LiveAllocation TakeUse(std::uint64_t first) {
  LiveAllocation made;
  if (!TakeBack(first, &made)) return {};
  if (made.context == 1) return made;
  --made.context;
  RememberAgain(made);
  return {};
}

void EndUse(std::uint64_t first) {
  const LiveAllocation last = TakeUse(first);
  if (last.key != 0) GiveBack(last.gpu, last.bytes);
}

}  // namespace

GRUS_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                                 const CUmemAllocationProp* properties, unsigned long long flags) {
  auto* const real = GRUS_REAL(cuMemCreate);
  if (real == nullptr) return kNotSupported;
  const auto call = [&] { return real(handle, bytes, properties, flags); };
  if (properties == nullptr || !IsOnDevice(properties->location)) return call();
  const int gpu = GpuOf(DeviceOf(properties->location));
  const CUresult result = Counted(gpu, bytes, call);
  if (result != kSuccess || gpu == kNoGpu) return result;
  const Lock lock(mutex);
  Remember(*handle, bytes, gpu, LiveKind::kCreated, AsContext(1));
  return result;
}

GRUS_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  auto* const real = GRUS_REAL(cuMemRelease);
  if (real == nullptr) return kNotSupported;
  if (!IsLimited()) return real(handle);
  // Before the call: another thread may get the same handle right after it.
  std::uint64_t first = 0;
  LiveAllocation last = {}, other = {};
  {
    const Lock lock(mutex);
    first = FirstHandle(handle);
    if (first != 0 && first != handle) TakeBack(handle, &other);
    if (first != 0) last = TakeUse(first);
  }
  const CUresult result = real(handle);
  if (result == kSuccess) {
    if (last.key != 0) GiveBack(last.gpu, last.bytes);
    return result;
  }
  const Lock lock(mutex);
  if (other.key != 0) RememberAgain(other);
  if (last.key != 0) RememberAgain(last);
  else if (first != 0) AddUse(first);
  return result;
}

GRUS_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  auto* const real = GRUS_REAL(cuMemRetainAllocationHandle);
  if (real == nullptr) return kNotSupported;
  if (!IsLimited()) return real(handle, address);
  const CUresult result = real(handle, address);
  if (result != kSuccess) return result;
  const Lock lock(mutex);
  std::uint64_t first = FirstHandle(*handle);
  LiveAllocation mapping;
  if (first == 0 && Recall(KeyOf(address), &mapping) && IsOf(mapping, LiveKind::kMapped)) {
    first = mapping.context;  // 0: imported, or of the host.
    if (first != 0) Remember(*handle, 0, kNoGpu, LiveKind::kSameAs, AsContext(first));
  }
  if (first != 0) AddUse(first);
  return result;
}

GRUS_EXPORT CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                              CUmemGenericAllocationHandle handle, unsigned long long flags) {
  auto* const real = GRUS_REAL(cuMemMap);
  if (real == nullptr) return kNotSupported;
  if (!IsLimited()) return real(address, bytes, offset, handle, flags);
  // Before the call: another thread may release the handle right after it.
  std::uint64_t first = 0;
  {
    const Lock lock(mutex);
    first = FirstHandle(handle);
    if (first != 0) AddUse(first);
  }
  const CUresult result = real(address, bytes, offset, handle, flags);
  const Lock lock(mutex);
  // Imported memory has no first handle, and is unmapped with what lies beside it.
  if (result == kSuccess) Remember(address, bytes, kNoGpu, LiveKind::kMapped, AsContext(first));
  else if (first != 0) EndUse(first);
  return result;
}

// Several mappings may end at once, that lie one behind the other.
GRUS_EXPORT CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  auto* const real = GRUS_REAL(cuMemUnmap);
  if (real == nullptr) return kNotSupported;
  if (!IsLimited()) return real(address, bytes);
  const CUresult result = real(address, bytes);
  if (result != kSuccess) return result;
  const Lock lock(mutex);
  LiveAllocation mapping;
  for (CUdeviceptr at = address; at - address < bytes; at += mapping.bytes) {
    if (!TakeBack(at, &mapping) || mapping.bytes == 0) break;
    if (mapping.context != 0) EndUse(mapping.context);
  }
  return result;
}

}  // namespace grus::cuda
