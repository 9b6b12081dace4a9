// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate: none when they are made, but when they are launched, and it is kept for the next launch
// until it is trimmed. What counts is what the driver has reserved for the graphs of this process on the GPU.
#include "nodeagent/cuda/graphs.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/lock.h"
#include "nodeagent/cuda/pools.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {
namespace {

constexpr std::uint64_t kGraphPiece = std::uint64_t{32} << 20;  // As of pools.
constexpr int kMostDepth = 32;                                  // Graphs in graphs.

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // Guards what follows.
const UnlockedInChild unlocked(mutex);
std::uint64_t charged[kMostGpus];
CUdevice devices[kMostGpus];
std::atomic<bool> has_graphs;

void SettleOne(int gpu) {
  std::uint64_t now = 0;
  if (driver::DeviceGetGraphMemAttribute(devices[gpu], kGraphMemReserved, &now) != kSuccess) return;
  Settle(gpu, charged[gpu], now);
  charged[gpu] = now;
}

// Bytes that the nodes of the graph allocate, each in pieces of its own.
std::uint64_t AllocatedBy(CUgraph graph, int depth) {
  std::size_t count = 0;
  if (depth > kMostDepth || driver::GraphGetNodes(graph, nullptr, &count) != kSuccess || count == 0) return 0;
  auto* const nodes = static_cast<CUgraphNode*>(std::calloc(count, sizeof(CUgraphNode)));
  if (nodes == nullptr || driver::GraphGetNodes(graph, nodes, &count) != kSuccess) count = 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    int type = -1;
    driver::GraphNodeGetType(nodes[i], &type);
    CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
    CUgraph child = nullptr;
    if (type == kNodeMemAlloc && driver::GraphMemAllocNodeGetParams(nodes[i], &allocation) == kSuccess) {
      sum += InPieces(std::min<std::uint64_t>(allocation.bytes, std::uint64_t{1} << 48));
    } else if (type == kNodeChildGraph && driver::GraphChildGraphNodeGetGraph(nodes[i], &child) == kSuccess) {
      sum += AllocatedBy(child, depth + 1);
    }
  }
  std::free(nodes);
  return sum;
}

template <typename F>
CUresult Instantiate(CUgraphExec* made, CUgraph graph, F&& call) {
  const CUresult result = call();
  if (result != kSuccess || !IsLimited()) return result;
  const std::uint64_t bytes = AllocatedBy(graph, 0);
  if (bytes == 0) return result;
  has_graphs = true;
  Remember(KeyOf(*made), bytes, kNoGpu, LiveKind::kGraph, nullptr);  // What each launch of it needs.
  return result;
}

}  // namespace

CUresult CountedLaunch(CUgraphExec graph, CUresult (*real)(CUgraphExec, CUstream), CUstream stream) {
  LiveAllocation needs;
  if (!has_graphs.load(std::memory_order_relaxed) || !Recall(KeyOf(graph), &needs)) return real(graph, stream);
  const int gpu = CurrentGpu();
  if (gpu == kNoGpu) return TheAccount() == nullptr ? kOutOfMemory : real(graph, stream);
  std::uint64_t spare = 0, used = 0;
  {
    const Lock lock(mutex);
    driver::CtxGetDevice(&devices[gpu]);
    SettleOne(gpu);
    if (driver::DeviceGetGraphMemAttribute(devices[gpu], kGraphMemUsed, &used) == kSuccess) {
      spare = charged[gpu] - std::min(charged[gpu], used);
    }
  }
  const std::uint64_t bytes = needs.bytes > spare ? needs.bytes + kGraphPiece : 0;
  if (!Reserve(gpu, bytes)) return kOutOfMemory;
  const CUresult result = real(graph, stream);
  const Lock lock(mutex);
  SettleOne(gpu);
  GiveBack(gpu, bytes);
  return result;
}

GRUS_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
  auto* const real = GRUS_REAL(cuDeviceGraphMemTrim);
  if (real == nullptr) return kNotSupported;
  const CUresult result = real(device);
  const int gpu = GpuOf(device);
  if (gpu == kNoGpu || !has_graphs.load(std::memory_order_relaxed)) return result;
  const Lock lock(mutex);
  devices[gpu] = device;
  SettleOne(gpu);
  return result;
}

bool ReleaseGraphMemory(int gpu) {
  if (!has_graphs.load(std::memory_order_relaxed)) return false;
  const Lock lock(mutex);
  const std::uint64_t before = charged[gpu];
  if (before == 0 || driver::DeviceGraphMemTrim(devices[gpu]) != kSuccess) return false;
  SettleOne(gpu);
  return charged[gpu] < before;
}

GRUS_EXPORT CUresult cuGraphInstantiate(CUgraphExec* made, CUgraph graph, CUgraphNode* error_node, char* log,
                                        std::size_t log_size) {
  auto* const real = GRUS_REAL(cuGraphInstantiate);
  if (real == nullptr) return kNotSupported;
  return Instantiate(made, graph, [&] { return real(made, graph, error_node, log, log_size); });
}
GRUS_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec* made, CUgraph graph, CUgraphNode* error_node, char* log,
                                           std::size_t log_size) {
  auto* const real = GRUS_REAL(cuGraphInstantiate_v2);
  if (real == nullptr) return kNotSupported;
  return Instantiate(made, graph, [&] { return real(made, graph, error_node, log, log_size); });
}
GRUS_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long flags) {
  auto* const real = GRUS_REAL(cuGraphInstantiateWithFlags);
  if (real == nullptr) return kNotSupported;
  return Instantiate(made, graph, [&] { return real(made, graph, flags); });
}
GRUS_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* made, CUgraph graph,
                                                  CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  auto* const real = GRUS_REAL(cuGraphInstantiateWithParams);
  if (real == nullptr) return kNotSupported;
  return Instantiate(made, graph, [&] { return real(made, graph, parameters); });
}
GRUS_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* made, CUgraph graph,
                                                       CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  auto* const real = GRUS_REAL(cuGraphInstantiateWithParams_ptsz);
  if (real == nullptr) return kNotSupported;
  return Instantiate(made, graph, [&] { return real(made, graph, parameters); });
}

// The GPU has its memory from then on.
GRUS_EXPORT CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
  auto* const real = GRUS_REAL(cuGraphUpload);
  return real == nullptr ? kNotSupported : CountedLaunch(graph, real, stream);
}
GRUS_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) {
  auto* const real = GRUS_REAL(cuGraphUpload_ptsz);
  return real == nullptr ? kNotSupported : CountedLaunch(graph, real, stream);
}

GRUS_EXPORT CUresult cuGraphExecDestroy(CUgraphExec graph) {
  auto* const real = GRUS_REAL(cuGraphExecDestroy);
  if (real == nullptr) return kNotSupported;
  LiveAllocation gone;
  const bool is_known = has_graphs.load(std::memory_order_relaxed) && TakeBack(KeyOf(graph), &gone);
  const CUresult result = real(graph);
  if (is_known && result != kSuccess) RememberAgain(gone);
  return result;
}

}  // namespace grus::cuda
