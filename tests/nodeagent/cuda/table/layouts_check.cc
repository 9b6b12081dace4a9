// SPDX-License-Identifier: Apache-2.0
// Compiles only if every layout and value of nodeagent/cuda/{driver_abi,launch_abi,nvml_memory}.h is that of NVIDIA's
// own headers, which are in no build of ours: scripts/check-driver-functions compiles this against one folder of them
// at a time, whether it has cuda.h or nvml.h, and with __CUDA_API_VERSION_INTERNAL, by which cuda.h has what came
// before 3.2 too.
#include <cstddef>
#include <type_traits>

#include "nodeagent/cuda/launch_abi.h"
#include "nodeagent/cuda/nvml_memory.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
namespace grus::cuda {
using Memory2 = nvmlMemory_v2;  // A macro of NVML's header has that name.
}
#if __has_include(<nvml.h>)
#include <nvml.h>
#endif

namespace ours = grus::cuda;

// Macros, as offsetof() takes names.
#define SAME_VALUE(OURS, THEIRS) static_assert(static_cast<long long>(ours::OURS) == static_cast<long long>(THEIRS))
#define SAME_SIZE(OURS, THEIRS) \
  static_assert(sizeof(ours::OURS) == sizeof(THEIRS) && alignof(ours::OURS) == alignof(THEIRS))
#define SAME_FIELD(OURS, OUR_FIELD, THEIRS, THEIR_FIELD)                            \
  static_assert(offsetof(ours::OURS, OUR_FIELD) == offsetof(THEIRS, THEIR_FIELD) && \
                sizeof(ours::OURS::OUR_FIELD) == sizeof(THEIRS::THEIR_FIELD))
#define SAME_TYPE(OURS, THEIRS) static_assert(std::is_same_v<ours::OURS, THEIRS>)
// Of pointers to structs that have no content.
#define SAME_HANDLE(OURS, THEIRS) \
  static_assert(sizeof(ours::OURS) == sizeof(THEIRS) && std::is_pointer_v<ours::OURS> && std::is_pointer_v<THEIRS>)

#if __has_include(<cuda.h>)
static_assert(sizeof(ours::CUresult) == sizeof(CUresult));
SAME_TYPE(CUdevice, CUdevice);
SAME_TYPE(CUdeviceptr, CUdeviceptr);
SAME_TYPE(CUdeviceptr_v1, CUdeviceptr_v1);
SAME_TYPE(CUmemGenericAllocationHandle, CUmemGenericAllocationHandle);
SAME_HANDLE(CUcontext, CUcontext);
SAME_HANDLE(CUfunction, CUfunction);
SAME_HANDLE(CUstream, CUstream);
SAME_HANDLE(CUevent, CUevent);
SAME_HANDLE(CUarray, CUarray);
SAME_HANDLE(CUmipmappedArray, CUmipmappedArray);
SAME_HANDLE(CUmemoryPool, CUmemoryPool);
SAME_HANDLE(CUgraph, CUgraph);
SAME_HANDLE(CUgraphNode, CUgraphNode);
SAME_HANDLE(CUgraphExec, CUgraphExec);

SAME_VALUE(kSuccess, CUDA_SUCCESS);
SAME_VALUE(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME_VALUE(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
SAME_VALUE(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME_VALUE(kInvalidHandle, CUDA_ERROR_INVALID_HANDLE);
SAME_VALUE(kNotFound, CUDA_ERROR_NOT_FOUND);
SAME_VALUE(kNotReady, CUDA_ERROR_NOT_READY);
SAME_VALUE(kNotPermitted, CUDA_ERROR_NOT_PERMITTED);
SAME_VALUE(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(kUnknown, CUDA_ERROR_UNKNOWN);

SAME_VALUE(kConcurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
SAME_VALUE(kAttachGlobal, CU_MEM_ATTACH_GLOBAL);
SAME_VALUE(kLegacyStream, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
SAME_VALUE(kPerThreadStream, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
#if CUDA_VERSION >= 12000
static_assert(sizeof(ours::CUdriverProcAddressQueryResult) == sizeof(CUdriverProcAddressQueryResult));
SAME_VALUE(kProcFound, CU_GET_PROC_ADDRESS_SUCCESS);
SAME_VALUE(kProcNotFound, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
SAME_VALUE(kProcVersionTooOld, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
#endif

SAME_SIZE(CUuuid, CUuuid);
SAME_FIELD(CUuuid, bytes, CUuuid, bytes);

SAME_SIZE(CUmemLocation, CUmemLocation);
SAME_FIELD(CUmemLocation, type, CUmemLocation, type);
SAME_FIELD(CUmemLocation, id, CUmemLocation, id);
SAME_VALUE(kLocationInvalid, CU_MEM_LOCATION_TYPE_INVALID);
SAME_VALUE(kLocationDevice, CU_MEM_LOCATION_TYPE_DEVICE);
#if CUDA_VERSION >= 12020
SAME_VALUE(kLocationHost, CU_MEM_LOCATION_TYPE_HOST);
SAME_VALUE(kLocationHostNuma, CU_MEM_LOCATION_TYPE_HOST_NUMA);
SAME_VALUE(kLocationHostNumaCurrent, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
#endif

SAME_SIZE(CUmemAllocationProp, CUmemAllocationProp);
SAME_FIELD(CUmemAllocationProp, type, CUmemAllocationProp, type);
SAME_FIELD(CUmemAllocationProp, requested_handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(CUmemAllocationProp, location, CUmemAllocationProp, location);
SAME_FIELD(CUmemAllocationProp, win32_handle, CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(CUmemAllocationProp, flags, CUmemAllocationProp, allocFlags);
SAME_FIELD(CUmemAllocationProp, flags.compression_type, CUmemAllocationProp, allocFlags.compressionType);
SAME_FIELD(CUmemAllocationProp, flags.is_gpu_direct_rdma_capable, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_FIELD(CUmemAllocationProp, flags.usage, CUmemAllocationProp, allocFlags.usage);

SAME_SIZE(CUmemPoolProps, CUmemPoolProps);
SAME_FIELD(CUmemPoolProps, alloc_type, CUmemPoolProps, allocType);
SAME_FIELD(CUmemPoolProps, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(CUmemPoolProps, location, CUmemPoolProps, location);
SAME_FIELD(CUmemPoolProps, win32_security, CUmemPoolProps, win32SecurityAttributes);
#if CUDA_VERSION >= 12020
SAME_FIELD(CUmemPoolProps, max_size, CUmemPoolProps, maxSize);
#endif
#if CUDA_VERSION >= 12090
SAME_FIELD(CUmemPoolProps, usage, CUmemPoolProps, usage);
#endif
SAME_VALUE(kPoolReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_VALUE(kPoolReserved, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME_VALUE(kPoolReservedHigh, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH);
SAME_VALUE(kPoolUsed, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME_VALUE(kPoolUsedHigh, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
SAME_VALUE(kGraphMemUsed, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
SAME_VALUE(kGraphMemUsedHigh, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH);
SAME_VALUE(kGraphMemReserved, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
SAME_VALUE(kGraphMemReservedHigh, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);

SAME_SIZE(CUDA_ARRAY_DESCRIPTOR_v1, CUDA_ARRAY_DESCRIPTOR_v1);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR_v1, width, CUDA_ARRAY_DESCRIPTOR_v1, Width);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR_v1, height, CUDA_ARRAY_DESCRIPTOR_v1, Height);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR_v1, format, CUDA_ARRAY_DESCRIPTOR_v1, Format);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR_v1, channels, CUDA_ARRAY_DESCRIPTOR_v1, NumChannels);
SAME_SIZE(CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY_DESCRIPTOR);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, width, CUDA_ARRAY_DESCRIPTOR, Width);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, height, CUDA_ARRAY_DESCRIPTOR, Height);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, format, CUDA_ARRAY_DESCRIPTOR, Format);
SAME_FIELD(CUDA_ARRAY_DESCRIPTOR, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
SAME_SIZE(CUDA_ARRAY3D_DESCRIPTOR_v1, CUDA_ARRAY3D_DESCRIPTOR_v1);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR_v1, width, CUDA_ARRAY3D_DESCRIPTOR_v1, Width);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR_v1, height, CUDA_ARRAY3D_DESCRIPTOR_v1, Height);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR_v1, depth, CUDA_ARRAY3D_DESCRIPTOR_v1, Depth);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR_v1, format, CUDA_ARRAY3D_DESCRIPTOR_v1, Format);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR_v1, channels, CUDA_ARRAY3D_DESCRIPTOR_v1, NumChannels);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR_v1, flags, CUDA_ARRAY3D_DESCRIPTOR_v1, Flags);
SAME_SIZE(CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, width, CUDA_ARRAY3D_DESCRIPTOR, Width);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, height, CUDA_ARRAY3D_DESCRIPTOR, Height);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, depth, CUDA_ARRAY3D_DESCRIPTOR, Depth);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, channels, CUDA_ARRAY3D_DESCRIPTOR, NumChannels);
SAME_FIELD(CUDA_ARRAY3D_DESCRIPTOR, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
SAME_VALUE(kArrayLayered, CUDA_ARRAY3D_LAYERED);
SAME_VALUE(kArrayCubemap, CUDA_ARRAY3D_CUBEMAP);
SAME_VALUE(kArraySparse, CUDA_ARRAY3D_SPARSE);
SAME_VALUE(kArrayDeferred, CUDA_ARRAY3D_DEFERRED_MAPPING);
SAME_SIZE(CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_MEMORY_REQUIREMENTS);
SAME_FIELD(CUDA_ARRAY_MEMORY_REQUIREMENTS, size, CUDA_ARRAY_MEMORY_REQUIREMENTS, size);
SAME_FIELD(CUDA_ARRAY_MEMORY_REQUIREMENTS, alignment, CUDA_ARRAY_MEMORY_REQUIREMENTS, alignment);
SAME_FIELD(CUDA_ARRAY_MEMORY_REQUIREMENTS, reserved, CUDA_ARRAY_MEMORY_REQUIREMENTS, reserved);

SAME_SIZE(CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS);
SAME_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, pool, CUDA_MEM_ALLOC_NODE_PARAMS, poolProps);
SAME_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, access, CUDA_MEM_ALLOC_NODE_PARAMS, accessDescs);
SAME_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, access_count, CUDA_MEM_ALLOC_NODE_PARAMS, accessDescCount);
SAME_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, bytes, CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
SAME_FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, pointer, CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
SAME_VALUE(kNodeKernel, CU_GRAPH_NODE_TYPE_KERNEL);
SAME_VALUE(kNodeChildGraph, CU_GRAPH_NODE_TYPE_GRAPH);
SAME_VALUE(kNodeMemAlloc, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
SAME_VALUE(kNodeMemFree, CU_GRAPH_NODE_TYPE_MEM_FREE);
#if CUDA_VERSION >= 12030
SAME_VALUE(kNodeConditional, CU_GRAPH_NODE_TYPE_CONDITIONAL);
#endif
#if CUDA_VERSION >= 12000
SAME_SIZE(CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, flags, CUDA_GRAPH_INSTANTIATE_PARAMS, flags);
SAME_FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, upload_stream, CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream);
SAME_FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, error_node, CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out);
SAME_FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
#endif

#if CUDA_VERSION >= 11080
SAME_SIZE(CUlaunchConfig, CUlaunchConfig);
SAME_FIELD(CUlaunchConfig, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(CUlaunchConfig, grid_y, CUlaunchConfig, gridDimY);
SAME_FIELD(CUlaunchConfig, grid_z, CUlaunchConfig, gridDimZ);
SAME_FIELD(CUlaunchConfig, block_x, CUlaunchConfig, blockDimX);
SAME_FIELD(CUlaunchConfig, block_y, CUlaunchConfig, blockDimY);
SAME_FIELD(CUlaunchConfig, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(CUlaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(CUlaunchConfig, stream, CUlaunchConfig, hStream);
SAME_FIELD(CUlaunchConfig, attributes, CUlaunchConfig, attrs);
SAME_FIELD(CUlaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
#endif
SAME_SIZE(CUDA_LAUNCH_PARAMS, CUDA_LAUNCH_PARAMS);
SAME_FIELD(CUDA_LAUNCH_PARAMS, function, CUDA_LAUNCH_PARAMS, function);
SAME_FIELD(CUDA_LAUNCH_PARAMS, grid_x, CUDA_LAUNCH_PARAMS, gridDimX);
SAME_FIELD(CUDA_LAUNCH_PARAMS, grid_y, CUDA_LAUNCH_PARAMS, gridDimY);
SAME_FIELD(CUDA_LAUNCH_PARAMS, grid_z, CUDA_LAUNCH_PARAMS, gridDimZ);
SAME_FIELD(CUDA_LAUNCH_PARAMS, block_x, CUDA_LAUNCH_PARAMS, blockDimX);
SAME_FIELD(CUDA_LAUNCH_PARAMS, block_y, CUDA_LAUNCH_PARAMS, blockDimY);
SAME_FIELD(CUDA_LAUNCH_PARAMS, block_z, CUDA_LAUNCH_PARAMS, blockDimZ);
SAME_FIELD(CUDA_LAUNCH_PARAMS, shared_bytes, CUDA_LAUNCH_PARAMS, sharedMemBytes);
SAME_FIELD(CUDA_LAUNCH_PARAMS, stream, CUDA_LAUNCH_PARAMS, hStream);
SAME_FIELD(CUDA_LAUNCH_PARAMS, parameters, CUDA_LAUNCH_PARAMS, kernelParams);

static_assert(sizeof(ours::CUstreamCaptureStatus) == sizeof(CUstreamCaptureStatus));
SAME_VALUE(kNotCapturing, CU_STREAM_CAPTURE_STATUS_NONE);
SAME_VALUE(kCapturing, CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME_VALUE(kCaptureInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME_VALUE(kCaptureGlobal, CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME_VALUE(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
#endif

#if __has_include(<nvml.h>)
static_assert(sizeof(ours::nvmlReturn) == sizeof(nvmlReturn_t));
SAME_HANDLE(nvmlDevice, nvmlDevice_t);
SAME_SIZE(nvmlMemory, nvmlMemory_t);
SAME_FIELD(nvmlMemory, total, nvmlMemory_t, total);
SAME_FIELD(nvmlMemory, free, nvmlMemory_t, free);
SAME_FIELD(nvmlMemory, used, nvmlMemory_t, used);
SAME_SIZE(Memory2, nvmlMemory_v2_t);
SAME_FIELD(Memory2, version, nvmlMemory_v2_t, version);
SAME_FIELD(Memory2, total, nvmlMemory_v2_t, total);
SAME_FIELD(Memory2, reserved, nvmlMemory_v2_t, reserved);
SAME_FIELD(Memory2, free, nvmlMemory_v2_t, free);
SAME_FIELD(Memory2, used, nvmlMemory_v2_t, used);
SAME_VALUE(kNvmlMemory2, nvmlMemory_v2);
#endif
