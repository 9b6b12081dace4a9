// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/driver.h"

#include <atomic>
#include <initializer_list>

#include "nodeagent/cuda/captures.h"
#include "nodeagent/cuda/hooks.h"

namespace grus::cuda::driver {
namespace {

// The first of these that the driver has; `found` is kept.
template <typename... Arguments>
int Ask(std::atomic<void*>& found, std::initializer_list<const char*> names, Arguments... arguments) {
  void* function = found.load(std::memory_order_relaxed);
  for (const char* const name : names) {
    if (function == nullptr) function = RealNamed(name);
  }
  if (function == nullptr) return kNotSupported;
  found.store(function, std::memory_order_relaxed);
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

// A thread may not make calls that could wait for a stream while another thread captures one (in the global mode, that
// of torch.cuda.graph): such a call fails, and the capture with it. That keeps programs from putting into a graph less
// than they think; what is asked here changes nothing for the program. So the thread does not count for that long.
class Aside {
 public:
  Aside() { is_aside_ = Exchange(mode_) == kSuccess; }
  ~Aside() {
    if (is_aside_) Exchange(mode_);
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  static CUresult Exchange(int& mode) {
    static std::atomic<void*> found;
    return Ask(found, {"cuThreadExchangeStreamCaptureMode"}, &mode);
  }

  int mode_ = kCaptureRelaxed;
  bool is_aside_ = false;
};

template <typename... Arguments>
int AskAside(std::atomic<void*>& found, std::initializer_list<const char*> names, Arguments... arguments) {
  const Aside aside;
  return Ask(found, names, arguments...);
}

}  // namespace

CUresult CtxGetCurrent(CUcontext* context) {
  static std::atomic<void*> found;
  return Ask(found, {"cuCtxGetCurrent"}, context);
}

CUresult CtxGetDevice(CUdevice* device) {
  static std::atomic<void*> found;
  return Ask(found, {"cuCtxGetDevice"}, device);
}

CUresult CtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuCtxFromGreenCtx"}, context, green);
}

CUresult DriverGetVersion(int* version) {
  static std::atomic<void*> found;
  return Ask(found, {"cuDriverGetVersion"}, version);
}

CUresult DeviceGetCount(int* count) {
  static std::atomic<void*> found;
  return Ask(found, {"cuDeviceGetCount"}, count);
}

CUresult DeviceGetAttribute(int* value, int attribute, CUdevice device) {
  static std::atomic<void*> found;
  return Ask(found, {"cuDeviceGetAttribute"}, value, attribute, device);
}

CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device) {
  static std::atomic<void*> found;
  return Ask(found, {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"}, uuid, device);
}

CUresult DevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* is_active) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuDevicePrimaryCtxGetState"}, device, flags, is_active);
}

CUresult DeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuDeviceGetMemPool"}, pool, device);
}

CUresult DeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuDeviceGetDefaultMemPool"}, pool, device);
}

CUresult DeviceGetGraphMemAttribute(CUdevice device, int attribute, void* value) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuDeviceGetGraphMemAttribute"}, device, attribute, value);
}

CUresult DeviceGraphMemTrim(CUdevice device) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuDeviceGraphMemTrim"}, device);
}

CUresult MemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuMemPoolGetAttribute"}, pool, attribute, value);
}

CUresult MemPoolTrimTo(CUmemoryPool pool, std::size_t keep) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuMemPoolTrimTo"}, pool, keep);
}

bool IsCaptured(CUstream stream) {
  if (!MayBeCapturing()) return false;
  static std::atomic<void*> found;
  CUstreamCaptureStatus status = kNotCapturing;
  return Ask(found, {"cuStreamIsCapturing"}, stream, &status) == kSuccess && status != kNotCapturing;
}

CUresult GraphGetNodes(CUgraph graph, CUgraphNode* nodes, std::size_t* count) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuGraphGetNodes"}, graph, nodes, count);
}

CUresult GraphNodeGetType(CUgraphNode node, int* type) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuGraphNodeGetType"}, node, type);
}

CUresult GraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuGraphMemAllocNodeGetParams"}, node, parameters);
}

CUresult GraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* graph) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuGraphChildGraphNodeGetGraph"}, node, graph);
}

CUresult EventCreate(CUevent* event, unsigned flags) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuEventCreate"}, event, flags);
}

CUresult EventDestroy(CUevent event) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuEventDestroy_v2"}, event);
}

CUresult EventRecord(CUevent event, CUstream stream) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuEventRecord"}, event, stream);
}

CUresult EventQuery(CUevent event) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuEventQuery"}, event);
}

CUresult EventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  static std::atomic<void*> found;
  return AskAside(found, {"cuEventElapsedTime_v2", "cuEventElapsedTime"}, milliseconds, from, to);
}

nvmlReturn NvmlDeviceGetUuid(nvmlDevice device, char* text, unsigned size) {
  static std::atomic<void*> found;
  return Ask(found, {"nvmlDeviceGetUUID"}, device, text, size);
}

}  // namespace grus::cuda::driver
