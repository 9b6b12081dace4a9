// SPDX-License-Identifier: Apache-2.0
// What this library asks the driver for itself, past its own functions. Each says kNotSupported where the driver lacks
// it. None of them spoils a capture, whatever streams the program captures meanwhile, in this thread or another.
#pragma once

#include "nodeagent/cuda/driver_abi.h"
#include "nodeagent/cuda/nvml_memory.h"

namespace grus::cuda::driver {

// The stream that 0 means, as the functions below are told of it: they take it as the legacy one.
enum class Zero { kLegacy, kPerThread };
inline CUstream StreamOf(CUstream stream, Zero zero) {
  return stream == nullptr && zero == Zero::kPerThread ? reinterpret_cast<CUstream>(2) : stream;
}

CUresult CtxGetCurrent(CUcontext* context);
CUresult CtxGetDevice(CUdevice* device);
CUresult CtxFromGreenCtx(CUcontext* context, CUgreenCtx green);
CUresult DriverGetVersion(int* version);
CUresult DeviceGetCount(int* count);
CUresult DeviceGetAttribute(int* value, int attribute, CUdevice device);
CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device);  // Of the MIG instance, where the device is one.
CUresult DevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is_active);
CUresult DeviceGetMemPool(CUmemoryPool* pool, CUdevice device);  // That allocations come from now.
CUresult DeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device);
CUresult DeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value);
CUresult DeviceGraphMemTrim(CUdevice device);
CUresult MemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value);
CUresult MemPoolTrimTo(CUmemoryPool pool, std::size_t keep);
bool IsCaptured(CUstream stream);  // Into a graph: what is launched there does not run now.
CUresult GraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count);
CUresult GraphNodeGetType(CUgraphNode node, int* type);
CUresult GraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* parameters);
CUresult GraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph);
CUresult EventCreate(CUevent* event, unsigned flags);
CUresult EventDestroy(CUevent event);
CUresult EventRecord(CUevent event, CUstream stream);
CUresult EventQuery(CUevent event);
CUresult EventElapsedTime(float* milliseconds, CUevent from, CUevent to);
nvmlReturn NvmlDeviceGetUuid(nvmlDevice device, char* text, unsigned size);

}  // namespace grus::cuda::driver
