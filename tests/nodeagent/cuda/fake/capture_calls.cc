// SPDX-License-Identifier: Apache-2.0
// Capture: what is put into a stream becomes a graph instead of running.
#include <utility>

#include "tests/nodeagent/cuda/fake/graphs.h"

namespace grus::cuda::fake {

namespace {

CUresult Begin(const char* function, CUstream handle, int mode, bool has_own) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Stream* stream = nullptr;
    if (const CUresult found = FindStream(driver, handle, has_own, &stream); found != kSuccess) return found;
    if (mode < 0 || mode > 2 || stream->capture != nullptr) return kInvalidValue;
    if (stream->is_legacy) return kCaptureUnsupported;
    stream->capture = new Graph{.nodes = {},
                                .capture_id = graphs().next_capture++,
                                .capture_mode = mode,
                                .capture_thread = std::this_thread::get_id()};
    return kSuccess;
  });
}

CUresult End(const char* function, CUstream handle, CUgraph* out, bool has_own) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Stream* stream = nullptr;
    if (const CUresult found = FindStream(driver, handle, has_own, &stream); found != kSuccess) return found;
    Graph* const graph = stream->capture;
    if (graph == nullptr) return kInvalidValue;
    ForgetCapture(graph);
    if (graph->is_invalid) {
      Forget(*graph);
      delete graph;
      *out = nullptr;
      return kCaptureIsInvalid;
    }
    graphs().graphs.insert(graph);
    *out = reinterpret_cast<CUgraph>(graph);
    return kSuccess;
  });
}

CUresult Info(const char* function, CUstream handle, bool has_own, CUstreamCaptureStatus* status, std::uint64_t* id,
              CUgraph* graph = nullptr) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Stream* stream = nullptr;
    if (const CUresult found = FindStream(driver, handle, has_own, &stream); found != kSuccess) return found;
    *status = stream->capture == nullptr    ? kNotCapturing
              : stream->capture->is_invalid ? kCaptureInvalidated
                                            : kCapturing;
    if (id != nullptr && stream->capture != nullptr) *id = stream->capture->capture_id;
    if (graph != nullptr) *graph = reinterpret_cast<CUgraph>(stream->capture);
    return kSuccess;
  });
}

CUresult InfoAndNodes(const char* function, CUstream handle, bool has_own, CUstreamCaptureStatus* status,
                      std::uint64_t* id, CUgraph* graph, const CUgraphNode** nodes, std::size_t* count) {
  if (nodes != nullptr) *nodes = nullptr;
  if (count != nullptr) *count = 0;
  return Info(function, handle, has_own, status, id, graph);
}

}  // namespace

void AddKernel(Graph* graph, CUfunction function, std::uint64_t nanoseconds) {
  Node* const node = AddNode(graph, kNodeKernel);
  node->nanoseconds = nanoseconds;
  node->kernel.function = function;
}

CUresult AddAllocation(Driver& driver, Graph* graph, int gpu, std::uint64_t bytes, CUdeviceptr* pointer) {
  Node* const node = AddNode(graph, kNodeMemAlloc);
  node->gpu = gpu;
  node->bytes = RoundUp(bytes, driver.state().rounding);
  node->pointer = *pointer = driver.NewAddress(bytes);
  node->allocation.pool.alloc_type = 1;
  node->allocation.pool.location = {kLocationDevice, gpu};
  node->allocation.bytes = bytes;
  node->allocation.pointer = *pointer;
  return kSuccess;
}

CUresult AddFree(Graph* graph, CUdeviceptr pointer) {
  AddNode(graph, kNodeMemFree)->pointer = pointer;
  return kSuccess;
}

extern "C" {

CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    if (*mode < kCaptureGlobal || *mode > kCaptureRelaxed) return kInvalidValue;
    std::swap(*mode, CaptureModeOfThread());
    return kSuccess;
  });
}
CUresult cuStreamBeginCapture(CUstream stream) { return Begin(__func__, stream, 0, false); }
CUresult cuStreamBeginCapture_ptsz(CUstream stream) { return Begin(__func__, stream, 0, true); }
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) { return Begin(__func__, stream, mode, false); }
CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) { return Begin(__func__, stream, mode, true); }
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) { return End(__func__, stream, graph, false); }
CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) { return End(__func__, stream, graph, true); }
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return Info(__func__, stream, false, status, nullptr);
}
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return Info(__func__, stream, true, status, nullptr);
}
CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id) {
  return Info(__func__, stream, false, status, id);
}
CUresult cuStreamGetCaptureInfo_ptsz(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id) {
  return Info(__func__, stream, true, status, id);
}
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id, CUgraph* graph,
                                   const CUgraphNode** nodes, std::size_t* count) {
  return InfoAndNodes(__func__, stream, false, status, id, graph, nodes, count);
}
CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id,
                                        CUgraph* graph, const CUgraphNode** nodes, std::size_t* count) {
  return InfoAndNodes(__func__, stream, true, status, id, graph, nodes, count);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id, CUgraph* graph,
                                   const CUgraphNode** nodes, const void**, std::size_t* count) {
  return InfoAndNodes(__func__, stream, false, status, id, graph, nodes, count);
}
CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream stream, CUstreamCaptureStatus* status, std::uint64_t* id,
                                        CUgraph* graph, const CUgraphNode** nodes, const void**, std::size_t* count) {
  return InfoAndNodes(__func__, stream, true, status, id, graph, nodes, count);
}

}  // extern "C"

}  // namespace grus::cuda::fake
