// SPDX-License-Identifier: Apache-2.0
// cuInit(), what is asked of GPUs, and the names of errors.
#include <algorithm>
#include <cstring>

#include "tests/nodeagent/cuda/fake/driver.h"

namespace grus::cuda::fake {

namespace {

constexpr struct {
  CUresult code;
  const char *name, *text;
} kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kDeinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kPrimaryContextActive, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active"},
    {kContextIsDestroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {kNotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CUresult Describe(CUresult code, const char** out, bool is_name) {
  for (const auto& error : kErrors) {
    if (error.code != code) continue;
    *out = is_name ? error.name : error.text;
    return kSuccess;
  }
  *out = nullptr;
  return kInvalidValue;
}

CUresult WithGpu(const char* function, CUdevice gpu, std::invocable<const FakeGpu&> auto&& body) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    return body(driver.state().gpus[gpu]);
  });
}

CUresult Uuid(const char* function, CUuuid* uuid, CUdevice gpu) {
  return WithGpu(function, gpu, [&](const FakeGpu& its) {
    std::memcpy(uuid->bytes, its.uuid, sizeof(its.uuid));
    return kSuccess;
  });
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  Driver& driver = Driver::Get();
  if (const CUresult refused = driver.Begin(__func__, false); refused != kSuccess) return refused;
  return flags == 0 ? driver.Init() : kInvalidValue;
}

CUresult cuDriverGetVersion(int* version) {
  Driver& driver = Driver::Get();
  if (const CUresult refused = driver.Begin(__func__, false); refused != kSuccess) return refused;
  *version = driver.state().driver_version;
  return kSuccess;
}

CUresult cuGetErrorString(CUresult code, const char** text) { return Describe(code, text, false); }
CUresult cuGetErrorName(CUresult code, const char** name) { return Describe(code, name, true); }
// NVIDIA's own libraries ask it for tables that nobody else knows.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
  *table = nullptr;
  return kNotFound;
}

CUresult cuDeviceGet(CUdevice* gpu, int number) {
  return WithGpu(__func__, number, [&](const FakeGpu&) {
    *gpu = number;
    return kSuccess;
  });
}
CUresult cuDeviceGetCount(int* count) {
  return Enter(__func__, [&](Driver& driver) {
    *count = static_cast<int>(driver.state().gpu_count);
    return kSuccess;
  });
}
CUresult cuDeviceGetName(char* name, int size, CUdevice gpu) {
  return WithGpu(__func__, gpu, [&](const FakeGpu& its) -> CUresult {
    if (size <= 0) return kInvalidValue;
    std::strncpy(name, its.name, static_cast<std::size_t>(size));
    name[size - 1] = '\0';
    return kSuccess;
  });
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice gpu) { return Uuid(__func__, uuid, gpu); }
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice gpu) { return Uuid(__func__, uuid, gpu); }
CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice gpu) {
  return WithGpu(__func__, gpu, [&](const FakeGpu& its) {
    *bytes = static_cast<unsigned>(std::min<std::uint64_t>(its.total, ~0U));
    return kSuccess;
  });
}
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice gpu) {
  return WithGpu(__func__, gpu, [&](const FakeGpu& its) {
    *bytes = its.total;
    return kSuccess;
  });
}
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice gpu) {
  return WithGpu(__func__, gpu, [&](const FakeGpu&) -> CUresult {
    const bool can_move = Driver::Get().state().can_move_managed != 0;
    switch (attribute) {
      case 10: *value = 32; return kSuccess;   // Threads in a warp.
      case 16: *value = 132; return kSuccess;  // Multiprocessors.
      case 41: *value = 1; return kSuccess;    // Host and GPU share their addresses.
      case 75: *value = 9; return kSuccess;    // Compute capability, major and minor.
      case 76: *value = 0; return kSuccess;
      case 83: *value = 1; return kSuccess;                 // Managed memory.
      case 89: *value = can_move ? 1 : 0; return kSuccess;  // It moves while kernels run.
      case 102: *value = 1; return kSuccess;                // Addresses and memory apart.
      case 103: *value = 1; return kSuccess;                // Memory as a file descriptor.
      case 115: *value = 1; return kSuccess;                // Pools.
      default: *value = 0; return attribute > 0 && attribute < 200 ? kSuccess : kInvalidValue;
    }
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
