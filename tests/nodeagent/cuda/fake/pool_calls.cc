// SPDX-License-Identifier: Apache-2.0
// Memory in the order of streams, from pools. A pool has bytes and no places in them: it never needs more than what is
// used, rounded up to chunks. What is freed can be used again at once, whatever the stream still does.
#include <algorithm>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {

struct Pool {
  int gpu = 0;
  bool is_on_gpu = true, is_default = false, is_destroyed = false;
  std::uint64_t threshold = 0, most = 0;  // most 0: no limit of its own.
  std::uint64_t reserved = 0, reserved_high = 0, used = 0, used_high = 0;
};

struct Pools {
  std::unordered_set<Pool*> all;
  std::vector<Pool*> defaults, current;  // By GPU.
};
Pools& pools() {
  static auto* const instance = new Pools;
  return *instance;
}

Pools& Ready(Driver& driver) {
  Pools& its = pools();
  for (std::size_t gpu = its.defaults.size(); gpu < driver.state().gpu_count; ++gpu) {
    its.defaults.push_back(new Pool{.gpu = static_cast<int>(gpu), .is_default = true});
    its.current.push_back(its.defaults.back());
    its.all.insert(its.defaults.back());
  }
  return its;
}

CUresult Find(Driver& driver, CUmemoryPool handle, Pool** pool) {
  *pool = reinterpret_cast<Pool*>(handle);
  return Ready(driver).all.contains(*pool) && !(*pool)->is_destroyed ? kSuccess : kInvalidValue;
}

void ShrinkTo(Driver& driver, Pool& pool, std::uint64_t bytes) {
  const std::uint64_t chunk = driver.state().pool_chunk;
  if (std::max(pool.used, bytes) >= pool.reserved) return;
  const std::uint64_t wanted = RoundUp(std::max(pool.used, bytes), chunk);
  if (pool.is_on_gpu) driver.GiveBack(pool.gpu, pool.reserved - wanted);
  pool.reserved = wanted;
}

CUresult Take(Driver& driver, Pool& pool, std::uint64_t bytes) {
  const std::uint64_t wanted = RoundUp(pool.used + bytes, driver.state().pool_chunk);
  if (wanted > pool.reserved) {
    if (pool.most != 0 && wanted > pool.most) return kOutOfMemory;
    if (pool.is_on_gpu && !driver.Charge(pool.gpu, wanted - pool.reserved)) return kOutOfMemory;
    pool.reserved = wanted;
    pool.reserved_high = std::max(pool.reserved_high, wanted);
  }
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  return kSuccess;
}

void Release(Driver& driver, const Block& block) {
  auto& pool = *static_cast<Pool*>(block.from);
  pool.used -= block.bytes;
  if (!pool.is_destroyed || pool.used > 0) return;
  ShrinkTo(driver, pool, 0);
  pools().all.erase(&pool);
  delete &pool;
}

CUresult Allocate(const char* function, CUdeviceptr* pointer, std::uint64_t bytes, CUmemoryPool handle,
                  CUstream stream_handle, bool has_own, bool is_of_current) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Stream* stream = nullptr;
    if (const CUresult found = FindStream(driver, stream_handle, has_own, &stream); found != kSuccess) return found;
    Pool* pool = nullptr;
    if (is_of_current) {
      pool = Ready(driver).current[static_cast<std::size_t>(stream->context->gpu)];
    } else if (const CUresult found = Find(driver, handle, &pool); found != kSuccess) {
      return found;
    }
    if (bytes == 0) return kInvalidValue;
    if (bytes > driver.state().gpus[pool->gpu].total) return kOutOfMemory;
    if (stream->capture != nullptr) return AddAllocation(driver, stream->capture, pool->gpu, bytes, pointer);
    const std::uint64_t rounded = RoundUp(bytes, driver.state().rounding);
    if (const CUresult taken = Take(driver, *pool, rounded); taken != kSuccess) return taken;
    *pointer = driver.NewAddress(bytes);
    driver.blocks[*pointer] = {
        .gpu = pool->gpu, .bytes = rounded, .owner = stream->context, .from = pool, .release = &Release};
    return kSuccess;
  });
}

CUresult Free(const char* function, CUdeviceptr pointer, CUstream stream_handle, bool has_own) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Stream* stream = nullptr;
    if (const CUresult found = FindStream(driver, stream_handle, has_own, &stream); found != kSuccess) return found;
    if (stream->capture != nullptr) return AddFree(stream->capture, pointer);
    return driver.FreeBlock(pointer);
  });
}

CUresult GpuPool(const char* function, CUmemoryPool* out, CUdevice gpu, bool is_default) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    Pools& its = Ready(driver);
    *out = reinterpret_cast<CUmemoryPool>((is_default ? its.defaults : its.current)[static_cast<std::size_t>(gpu)]);
    return kSuccess;
  });
}

}  // namespace

void ShrinkPools(Driver& driver, int gpu, bool context_has_ended) {
  for (Pool* pool : pools().all) {
    if (pool->gpu == gpu) ShrinkTo(driver, *pool, context_has_ended ? 0 : pool->threshold);
  }
}

extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return Allocate(__func__, pointer, bytes, nullptr, stream, false, true);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return Allocate(__func__, pointer, bytes, nullptr, stream, true, true);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return Allocate(__func__, pointer, bytes, pool, stream, false, false);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool, CUstream stream) {
  return Allocate(__func__, pointer, bytes, pool, stream, true, false);
}
CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) { return Free(__func__, pointer, stream, false); }
CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) { return Free(__func__, pointer, stream, true); }

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    const bool is_on_gpu = props->location.type == kLocationDevice;
    if (props->alloc_type != 1 || props->location.type == kLocationInvalid) return kInvalidValue;
    if (is_on_gpu && !driver.HasGpu(props->location.id)) return kInvalidDevice;
    auto* const pool =
        new Pool{.gpu = is_on_gpu ? props->location.id : 0, .is_on_gpu = is_on_gpu, .most = props->max_size};
    Ready(driver).all.insert(pool);
    *out = reinterpret_cast<CUmemoryPool>(pool);
    return kSuccess;
  });
}
// What is allocated from it stays, and keeps it.
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Pool* pool = nullptr;
    if (const CUresult found = Find(driver, handle, &pool); found != kSuccess) return found;
    if (pool->is_default) return kInvalidValue;
    Pools& its = pools();
    Pool*& current = its.current[static_cast<std::size_t>(pool->gpu)];
    if (current == pool) current = its.defaults[static_cast<std::size_t>(pool->gpu)];
    pool->is_destroyed = true;
    pool->threshold = 0;
    ShrinkTo(driver, *pool, 0);
    if (pool->used > 0) return kSuccess;
    its.all.erase(pool);
    delete pool;
    return kSuccess;
  });
}
CUresult cuMemPoolSetAttribute(CUmemoryPool handle, int attribute, void* value) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Pool* pool = nullptr;
    if (const CUresult found = Find(driver, handle, &pool); found != kSuccess) return found;
    if (attribute >= 1 && attribute < kPoolReleaseThreshold) return kSuccess;  // What may be used again: all may.
    const std::uint64_t wanted = *static_cast<std::uint64_t*>(value);
    switch (attribute) {
      case kPoolReleaseThreshold: pool->threshold = wanted; return kSuccess;
      case kPoolReservedHigh: pool->reserved_high = pool->reserved; return wanted == 0 ? kSuccess : kInvalidValue;
      case kPoolUsedHigh: pool->used_high = pool->used; return wanted == 0 ? kSuccess : kInvalidValue;
      default: return kInvalidValue;
    }
  });
}
CUresult cuMemPoolGetAttribute(CUmemoryPool handle, int attribute, void* value) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Pool* pool = nullptr;
    if (const CUresult found = Find(driver, handle, &pool); found != kSuccess) return found;
    auto* const number = static_cast<std::uint64_t*>(value);
    switch (attribute) {
      case 1:
      case 2:
      case 3: *static_cast<int*>(value) = 1; return kSuccess;
      case kPoolReleaseThreshold: *number = pool->threshold; return kSuccess;
      case kPoolReserved: *number = pool->reserved; return kSuccess;
      case kPoolReservedHigh: *number = pool->reserved_high; return kSuccess;
      case kPoolUsed: *number = pool->used; return kSuccess;
      case kPoolUsedHigh: *number = pool->used_high; return kSuccess;
      default: return kInvalidValue;
    }
  });
}
CUresult cuMemPoolTrimTo(CUmemoryPool handle, std::size_t bytes) {
  return Enter(__func__, [&](Driver& driver) {
    Pool* pool = nullptr;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    const CUresult found = Find(driver, handle, &pool);
    if (found == kSuccess) ShrinkTo(driver, *pool, bytes);
    return found;
  });
}
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice gpu) { return GpuPool(__func__, out, gpu, true); }
CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice gpu) { return GpuPool(__func__, out, gpu, false); }
CUresult cuDeviceSetMemPool(CUdevice gpu, CUmemoryPool handle) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    Pool* pool = nullptr;
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    if (const CUresult found = Find(driver, handle, &pool); found != kSuccess) return found;
    if (pool->gpu != gpu) return kInvalidValue;
    pools().current[static_cast<std::size_t>(gpu)] = pool;
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
