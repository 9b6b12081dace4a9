// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver's C interface that grus counts and limits: types, layouts and values, as the driver
// takes them on 64 bit. Handles are opaque; structs that only pass through are left incomplete.
//
// Source: NVIDIA's documentation of the driver API, 11.3 to 13.5. tests/nodeagent/cuda checks sizes and offsets against
// NVIDIA's own header where that is installed. Includes nothing but C's headers: it is compiled into a library that
// strangers' programs load.
#pragma once

#include <cstddef>
#include <cstdint>

namespace grus::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUdeviceptr_v1 = unsigned int;  // Of functions that came before 3.2.
using CUmemGenericAllocationHandle = unsigned long long;

using CUcontext = struct CUctx_st*;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUarray = struct CUarray_st*;
using CUmipmappedArray = struct CUmipmappedArray_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

inline constexpr CUresult kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kDeinitialized = 4,
                          kInvalidDevice = 101, kInvalidContext = 201, kInvalidHandle = 400, kNotFound = 500,
                          kNotReady = 600, kNotPermitted = 800, kNotSupported = 801, kCaptureIsInvalid = 901,
                          kUnknown = 999;

struct CUuuid {
  unsigned char bytes[16];
};

inline constexpr int kConcurrentManagedAccess = 89;  // Of a device: managed memory moves while kernels run.
inline constexpr unsigned kAttachGlobal = 1;         // Managed memory: of all streams.

// cuGetProcAddress: which of two streams "stream 0" is, and what it says of a name.
inline constexpr std::uint64_t kLegacyStream = 1, kPerThreadStream = 2;
using CUdriverProcAddressQueryResult = int;
inline constexpr CUdriverProcAddressQueryResult kProcFound = 0, kProcNotFound = 1, kProcVersionTooOld = 2;
struct CUmemLocation {
  int type;  // kLocationDevice and others
  int id;
};
// From 13.5 on there are parts of a device: then its number is the lowest byte of `id`.
inline constexpr int kLocationInvalid = 0, kLocationDevice = 1, kLocationHost = 2, kLocationHostNuma = 3,
                     kLocationHostNumaCurrent = 4, kLocationDevicePart = 6;
constexpr bool IsOnDevice(const CUmemLocation& location) {
  return location.type == kLocationDevice || location.type == kLocationDevicePart;
}
constexpr CUdevice DeviceOf(const CUmemLocation& location) {
  return location.type == kLocationDevicePart ? location.id & 0xff : location.id;
}

struct CUmemAllocationProp {
  int type, requested_handle_types;
  CUmemLocation location;
  void* win32_handle;
  struct {
    unsigned char compression_type, is_gpu_direct_rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
};
static_assert(sizeof(CUmemAllocationProp) == 32);
struct CUmemPoolProps {
  int alloc_type, handle_types;
  CUmemLocation location;
  void* win32_security;
  std::size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(CUmemPoolProps) == 88 && offsetof(CUmemPoolProps, location) == 8 &&
              offsetof(CUmemPoolProps, max_size) == 24);
// Attributes of a pool, and of the memory of graphs: each a std::uint64_t.
inline constexpr int kPoolReleaseThreshold = 4, kPoolReserved = 5, kPoolReservedHigh = 6, kPoolUsed = 7,
                     kPoolUsedHigh = 8;
inline constexpr int kGraphMemUsed = 0, kGraphMemUsedHigh = 1, kGraphMemReserved = 2, kGraphMemReservedHigh = 3;

struct CUDA_ARRAY_DESCRIPTOR_v1 {
  unsigned width, height;
  int format;
  unsigned channels;
};
struct CUDA_ARRAY_DESCRIPTOR {
  std::size_t width, height;
  int format;
  unsigned channels;
};
static_assert(sizeof(CUDA_ARRAY_DESCRIPTOR) == 24);
struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
  unsigned width, height, depth;
  int format;
  unsigned channels, flags;
};
struct CUDA_ARRAY3D_DESCRIPTOR {
  std::size_t width, height, depth;
  int format;
  unsigned channels, flags;
};
static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40 && offsetof(CUDA_ARRAY3D_DESCRIPTOR, format) == 24);
inline constexpr unsigned kArrayLayered = 1, kArrayCubemap = 4, kArraySparse = 0x40, kArrayDeferred = 0x80;
struct CUDA_ARRAY_MEMORY_REQUIREMENTS {
  std::size_t size, alignment;
  unsigned reserved[4];
};

struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps pool;
  const void* access;
  std::size_t access_count, bytes;
  CUdeviceptr pointer;  // Out.
};
static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120 && offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, bytes) == 104 &&
              offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, pointer) == 112);
inline constexpr int kNodeKernel = 0, kNodeChildGraph = 4, kNodeMemAlloc = 10, kNodeMemFree = 11, kNodeConditional = 13;
struct CUgraphNodeParams;
struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  std::uint64_t flags;
  CUstream upload_stream;
  CUgraphNode error_node;
  int result;
};

struct CUctxCreateParams;
struct CUexecAffinityParam;
using CUstreamCaptureStatus = int;  // Of a stream whose work goes into a graph, and is not run.
inline constexpr CUstreamCaptureStatus kNotCapturing = 0, kCapturing = 1, kCaptureInvalidated = 2;
inline constexpr int kCaptureGlobal = 0, kCaptureThreadLocal = 1, kCaptureRelaxed = 2;  // Modes, of threads too.

}  // namespace grus::cuda
