// SPDX-License-Identifier: Apache-2.0
// What programs are told of the memory of a GPU: that of the container's part of it, and of what it may have past it.
#include <algorithm>
#include <cstring>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/nvml_memory.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {
namespace {

struct Told {
  std::uint64_t free = 0, total = 0;
};

std::uint64_t LeftOf(int gpu) {
  const std::uint64_t limit = TheAccount()->Limit(gpu);
  return limit - std::min(limit, TheAccount()->Used(gpu));
}

// What the driver has free now says nothing: what others have there past their part moves when this one needs it.
Told TellOf(int gpu, Told whole) {
  const std::uint64_t limit = TheAccount()->Limit(gpu);
  if (limit == 0) return whole;
  const std::uint64_t total = std::min(whole.total, limit), free = std::min(total, LeftOf(gpu));
  const int paged = PagedOf(gpu);
  if (paged == kNoGpu) return {.free = free, .total = total};
  return {.free = free + LeftOf(paged), .total = total + TheAccount()->Limit(paged)};
}

// As much of it as functions of 32 bits can say.
template <typename Bytes>
Bytes As(std::uint64_t bytes) {
  return static_cast<Bytes>(std::min<std::uint64_t>(bytes, ~Bytes{0}));
}

template <typename Bytes>
CUresult Info(CUresult (*real)(Bytes*, Bytes*), Bytes* free, Bytes* total) {
  if (real == nullptr) return kNotSupported;
  const CUresult result = real(free, total);
  const int gpu = result == kSuccess ? CurrentGpu() : kNoGpu;
  if (gpu == kNoGpu) return result;
  const Told told = TellOf(gpu, {.free = *free, .total = *total});
  *free = As<Bytes>(told.free);
  *total = As<Bytes>(told.total);
  return result;
}

template <typename Bytes>
CUresult Total(CUresult (*real)(Bytes*, CUdevice), Bytes* total, CUdevice device) {
  if (real == nullptr) return kNotSupported;
  const CUresult result = real(total, device);
  const int gpu = result == kSuccess ? GpuOf(device) : kNoGpu;
  if (gpu != kNoGpu) *total = As<Bytes>(TellOf(gpu, {.free = 0, .total = *total}).total);
  return result;
}

int Hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// By NVML's name of it: "GPU-8-4-4-4-12 hexadecimal digits".
int GpuOfNvml(nvmlDevice device) {
  char text[96] = {};
  if (TheAccount() == nullptr || driver::NvmlDeviceGetUuid(device, text, sizeof(text)) != kSuccess) return kNoGpu;
  unsigned char uuid[16] = {};
  std::size_t digits = 0;
  const char* at = std::strchr(text, '-');
  for (; at != nullptr && *at != '\0' && digits < 32; ++at) {
    const int digit = Hex(*at);
    if (digit < 0) continue;
    uuid[digits / 2] = static_cast<unsigned char>(uuid[digits / 2] * 16 + digit);
    ++digits;
  }
  return digits == 32 ? TheAccount()->IndexOf(uuid) : kNoGpu;
}

template <typename Memory>
nvmlReturn MemoryOf(nvmlReturn (*real)(nvmlDevice, Memory*), nvmlDevice device, Memory* memory) {
  if (real == nullptr) return kNvmlFunctionNotFound;
  const nvmlReturn result = real(device, memory);
  const int gpu = result == kSuccess ? GpuOfNvml(device) : kNoGpu;
  if (gpu == kNoGpu) return result;
  const Told told = TellOf(gpu, {.free = memory->free, .total = memory->total});
  memory->total = told.total;
  memory->free = told.free;
  memory->used = told.total - std::min<std::uint64_t>(told.free, told.total);
  return result;
}

}  // namespace

GRUS_EXPORT CUresult cuMemGetInfo(unsigned* free, unsigned* total) {
  return Info(GRUS_REAL(cuMemGetInfo), free, total);
}
GRUS_EXPORT CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return Info(GRUS_REAL(cuMemGetInfo_v2), free, total);
}
GRUS_EXPORT CUresult cuDeviceTotalMem(unsigned* total, CUdevice device) {
  return Total(GRUS_REAL(cuDeviceTotalMem), total, device);
}
GRUS_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* total, CUdevice device) {
  return Total(GRUS_REAL(cuDeviceTotalMem_v2), total, device);
}
GRUS_EXPORT nvmlReturn nvmlDeviceGetMemoryInfo(nvmlDevice device, nvmlMemory* memory) {
  return MemoryOf(GRUS_REAL(nvmlDeviceGetMemoryInfo), device, memory);
}
GRUS_EXPORT nvmlReturn nvmlDeviceGetMemoryInfo_v2(nvmlDevice device, nvmlMemory_v2* memory) {
  return MemoryOf(GRUS_REAL(nvmlDeviceGetMemoryInfo_v2), device, memory);
}

}  // namespace grus::cuda
