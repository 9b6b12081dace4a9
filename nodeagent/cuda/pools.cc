// SPDX-License-Identifier: Apache-2.0
// Memory in the order of streams: from pools, which keep what is freed until it is trimmed.
#include "nodeagent/cuda/pools.h"

#include <algorithm>
#include <atomic>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/lock.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {

GRUS_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream);
GRUS_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool);

namespace {

using driver::StreamOf;
using driver::Zero;

// A pool grows by pieces of at most this size, or by what is asked for.
constexpr std::uint64_t kPoolPiece = std::uint64_t{32} << 20;

struct Pool {
  CUmemoryPool pool = nullptr;
  int gpu = kNoGpu;
  std::uint64_t charged = 0;
  // By calls that have not returned yet; and how much of that it has already grown by, which `charged` has too: that is
  // no more to be given back.
  std::uint64_t reserved = 0, covered = 0;
  std::uint64_t live = 0;     // Allocations from it.
  bool is_destroyed = false;  // The driver keeps its memory until the last of them is freed.
};

constexpr std::size_t kMostPools = 256;
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // Guards what follows.
const UnlockedInChild unlocked(mutex);
Pool pools[kMostPools];
std::size_t pool_count = 0;
std::atomic<bool> has_pools;

Pool* Find(CUmemoryPool pool) {
  Pool* const end = pools + pool_count;
  Pool* const found = std::find_if(pools, end, [&](const Pool& one) { return one.pool == pool && !one.is_destroyed; });
  return found != end ? found : nullptr;
}

Pool* FindOrAdd(CUmemoryPool pool, int gpu) {
  Pool* const found = Find(pool);
  if (found != nullptr || pool_count == kMostPools) return found;
  pools[pool_count] = {.pool = pool, .gpu = gpu};
  has_pools = true;
  return &pools[pool_count++];
}

std::uint64_t AttributeOf(const Pool& pool, int attribute, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  return driver::MemPoolGetAttribute(pool.pool, attribute, &value) == kSuccess ? value : otherwise;
}

// By how much it has grown beyond what was reserved for it.
std::uint64_t SettleOne(Pool& pool) {
  const std::uint64_t now =
      pool.is_destroyed ? (pool.live == 0 ? 0 : pool.charged) : AttributeOf(pool, kPoolReserved, pool.charged);
  const std::uint64_t grown = now - std::min(now, pool.charged);
  const std::uint64_t covered = std::min(grown, pool.reserved - pool.covered);
  Settle(pool.gpu, pool.charged + covered, now);
  pool.covered += covered;
  pool.charged = now;
  return grown - covered;
}

bool HasRoom(int gpu) {
  const std::uint64_t limit = TheAccount()->Limit(gpu);
  return limit == 0 || TheAccount()->Used(gpu) <= limit;
}

void Drop(Pool& pool) { pool = pools[--pool_count]; }

// The GPU of a pool that no call has shown us: the default one of a device. kNoGpu: another process made it.
int GpuOfPool(CUmemoryPool pool) {
  {
    const Lock lock(mutex);
    if (const Pool* const known = Find(pool)) return known->gpu;
  }
  int count = 0;
  driver::DeviceGetCount(&count);
  for (CUdevice device = 0; device < count; ++device) {
    CUmemoryPool own = nullptr;
    if (driver::DeviceGetDefaultMemPool(&own, device) == kSuccess && own == pool) return GpuOf(device);
  }
  return kNoGpu;
}

// The account has it already.
void AddReserved(CUmemoryPool pool, std::uint64_t bytes) {
  const Lock lock(mutex);
  if (Pool* const known = Find(pool)) known->reserved += bytes;
}

// False: there is no room, neither here nor in what the pool keeps. `reserved`: so much was.
bool ReserveFor(CUmemoryPool pool, int gpu, std::uint64_t bytes, std::uint64_t& reserved) {
  reserved = 0;
  const std::uint64_t most = bytes > kPoolPiece ? InPieces(bytes) + kPoolPiece : kPoolPiece;
  if (TheAccount() == nullptr) return false;
  std::uint64_t spare = 0;
  {
    const Lock lock(mutex);
    Pool* const known = FindOrAdd(pool, gpu);
    if (known == nullptr) return false;  // More pools than can be counted.
    SettleOne(*known);
    spare = known->charged - std::min(known->charged, AttributeOf(*known, kPoolUsed, known->charged));
  }
  if (spare >= bytes) return true;  // If it grows all the same, that is seen after the call.
  // The last piece may be smaller than most.
  if (Reserve(gpu, most)) reserved = most;
  else if (Reserve(gpu, InPieces(bytes))) reserved = InPieces(bytes);
  else return false;
  AddReserved(pool, reserved);
  return true;
}

// After the call. The pool may have grown although it had enough in sum: then it is as if it had not been called.
CUresult Settled(CUmemoryPool pool, int gpu, std::uint64_t bytes, std::uint64_t reserved, CUresult result,
                 CUdeviceptr* pointer, CUstream stream) {
  std::uint64_t beyond = 0, covered = 0;
  {
    const Lock lock(mutex);
    if (Pool* const known = Find(pool)) {
      beyond = SettleOne(*known);
      covered = std::min(known->covered, reserved);
      known->covered -= covered;
      known->reserved -= std::min(known->reserved, reserved);
      if (result == kSuccess) ++known->live;
    }
    GiveBack(gpu, reserved - covered);
  }
  if (result != kSuccess) return result;
  Remember(*pointer, bytes, gpu, LiveKind::kPooled, pool);
  if (beyond == 0 || HasRoom(gpu)) return result;
  cuMemFreeAsync(*pointer, stream);
  *pointer = 0;
  ReleaseUnused(gpu);
  return kOutOfMemory;
}

template <typename F>
CUresult Allocate(CUmemoryPool pool, int gpu, CUdeviceptr* pointer, std::size_t bytes, CUstream stream, F&& call) {
  if (!IsLimited() || (gpu == kNoGpu && TheAccount() != nullptr) || driver::IsCaptured(stream)) return call();
  std::uint64_t reserved = 0;
  if (!ReserveFor(pool, gpu, bytes, reserved)) return kOutOfMemory;
  return Settled(pool, gpu, bytes, reserved, call(), pointer, stream);
}

using AllocAsync = CUresult(CUdeviceptr*, std::size_t, CUstream);
CUresult AllocateFromCurrent(AllocAsync* real, Zero zero, CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  if (real == nullptr) return kNotSupported;
  CUdevice device = 0;
  CUmemoryPool pool = nullptr;
  const auto call = [&] { return real(pointer, bytes, stream); };
  if (!IsLimited() || driver::CtxGetDevice(&device) != kSuccess ||
      driver::DeviceGetMemPool(&pool, device) != kSuccess) {
    return call();
  }
  return Allocate(pool, GpuOf(device), pointer, bytes, StreamOf(stream, zero), call);
}

using AllocFromPool = CUresult(CUdeviceptr*, std::size_t, CUmemoryPool, CUstream);
CUresult AllocateFrom(AllocFromPool* real, Zero zero, CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                      CUstream stream) {
  if (real == nullptr) return kNotSupported;
  const auto call = [&] { return real(pointer, bytes, pool, stream); };
  if (!IsLimited()) return call();
  return Allocate(pool, GpuOfPool(pool), pointer, bytes, StreamOf(stream, zero), call);
}

// Memory of cuMemAlloc() may be freed so, too.
CUresult FreeInOrder(CUresult (*real)(CUdeviceptr, CUstream), Zero zero, CUdeviceptr pointer, CUstream stream) {
  if (real == nullptr) return kNotSupported;
  LiveAllocation freed;
  if (driver::IsCaptured(StreamOf(stream, zero)) || !TakeBack(pointer, &freed)) return real(pointer, stream);
  const CUresult result = real(pointer, stream);
  if (result != kSuccess) RememberAgain(freed);
  else GiveBackFreed(freed);
  return result;
}

CUresult Waited(CUresult result) {
  SettlePools();
  return result;
}

}  // namespace

void FreedFromPool(const LiveAllocation& freed) {
  const Lock lock(mutex);
  for (std::size_t i = 0; i < pool_count; ++i) {
    if (KeyOf(pools[i].pool) != freed.context || pools[i].live == 0) continue;
    --pools[i].live;
    SettleOne(pools[i]);
    if (pools[i].is_destroyed && pools[i].live == 0) Drop(pools[i]);
    return;
  }
}

void SettlePools() {
  if (!has_pools.load(std::memory_order_relaxed)) return;
  const Lock lock(mutex);
  for (std::size_t i = 0; i < pool_count; ++i) SettleOne(pools[i]);
}

void ForgetPooledOf(int gpu) {
  const Lock lock(mutex);
  for (std::size_t i = 0; i < pool_count; ++i) {
    Pool& pool = pools[i];
    if (pool.gpu != gpu) continue;
    ForgetAllOf(pool.pool);
    pool.live = 0;
    SettleOne(pool);
    if (pool.is_destroyed) Drop(pools[i--]);
  }
}

bool ReleaseUnused(int gpu) {
  bool has_released = ReleaseGraphMemory(gpu);
  const Lock lock(mutex);
  for (std::size_t i = 0; i < pool_count; ++i) {
    if (pools[i].gpu != gpu || pools[i].is_destroyed) continue;
    const std::uint64_t before = pools[i].charged;
    driver::MemPoolTrimTo(pools[i].pool, 0);
    SettleOne(pools[i]);
    has_released |= pools[i].charged < before;
  }
  return has_released;
}

GRUS_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return AllocateFromCurrent(GRUS_REAL(cuMemAllocAsync), Zero::kLegacy, pointer, bytes, stream);
}
GRUS_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return AllocateFromCurrent(GRUS_REAL(cuMemAllocAsync_ptsz), Zero::kPerThread, pointer, bytes, stream);
}
GRUS_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                             CUstream stream) {
  return AllocateFrom(GRUS_REAL(cuMemAllocFromPoolAsync), Zero::kLegacy, pointer, bytes, pool, stream);
}
GRUS_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                                  CUstream stream) {
  return AllocateFrom(GRUS_REAL(cuMemAllocFromPoolAsync_ptsz), Zero::kPerThread, pointer, bytes, pool, stream);
}
GRUS_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return FreeInOrder(GRUS_REAL(cuMemFreeAsync), Zero::kLegacy, pointer, stream);
}
GRUS_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return FreeInOrder(GRUS_REAL(cuMemFreeAsync_ptsz), Zero::kPerThread, pointer, stream);
}

// Where a program waits, the driver gives back what pools keep beyond what they shall.
GRUS_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  auto* const real = GRUS_REAL(cuStreamSynchronize);
  return real == nullptr ? kNotSupported : Waited(real(stream));
}
GRUS_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  auto* const real = GRUS_REAL(cuStreamSynchronize_ptsz);
  return real == nullptr ? kNotSupported : Waited(real(stream));
}
GRUS_EXPORT CUresult cuEventSynchronize(CUevent event) {
  auto* const real = GRUS_REAL(cuEventSynchronize);
  return real == nullptr ? kNotSupported : Waited(real(event));
}
GRUS_EXPORT CUresult cuCtxSynchronize() {
  auto* const real = GRUS_REAL(cuCtxSynchronize);
  return real == nullptr ? kNotSupported : Waited(real());
}
GRUS_EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
  auto* const real = GRUS_REAL(cuCtxSynchronize_v2);
  return real == nullptr ? kNotSupported : Waited(real(context));
}

GRUS_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  auto* const real = GRUS_REAL(cuMemPoolCreate);
  if (real == nullptr) return kNotSupported;
  const CUresult result = real(pool, properties);
  if (result != kSuccess || !IsLimited() || !IsOnDevice(properties->location)) return result;
  const int gpu = GpuOf(DeviceOf(properties->location));
  if (gpu == kNoGpu) return result;
  {
    const Lock lock(mutex);
    if (FindOrAdd(*pool, gpu) != nullptr) return result;
  }
  // More than can be counted: nothing could be held to the limit there.
  if (auto* const destroy = GRUS_REAL(cuMemPoolDestroy)) destroy(*pool);
  *pool = nullptr;
  return kOutOfMemory;
}

GRUS_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  auto* const real = GRUS_REAL(cuMemPoolDestroy);
  if (real == nullptr) return kNotSupported;
  const Lock lock(mutex);
  Pool* const known = Find(pool);
  if (known != nullptr) SettleOne(*known);
  const CUresult result = real(pool);
  if (result != kSuccess || known == nullptr) return result;
  known->is_destroyed = true;
  SettleOne(*known);
  if (known->live == 0) Drop(*known);
  return result;
}

GRUS_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  auto* const real = GRUS_REAL(cuMemPoolSetAttribute);
  if (real == nullptr) return kNotSupported;
  const CUresult result = real(pool, attribute, value);
  SettlePools();
  return result;
}

GRUS_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  auto* const real = GRUS_REAL(cuMemPoolTrimTo);
  if (real == nullptr) return kNotSupported;
  const CUresult result = real(pool, keep);
  SettlePools();
  return result;
}

}  // namespace grus::cuda
