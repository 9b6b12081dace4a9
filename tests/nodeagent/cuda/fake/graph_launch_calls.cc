// SPDX-License-Identifier: Apache-2.0
// Graphs that run: instantiated, uploaded, launched as one piece of work.
#include "tests/nodeagent/cuda/fake/graphs.h"

namespace grus::cuda::fake {

namespace {

constexpr unsigned long long kFreesOnLaunch = 1, kUpload = 2;

CUresult Instantiate(const char* function, CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Graph* graph = nullptr;
    if (const CUresult found = FindGraph(handle, &graph); found != kSuccess) return found;
    auto exec = std::make_unique<GraphExec>();
    AddSteps(*graph, exec.get());
    exec->frees_on_launch = (flags & kFreesOnLaunch) != 0;
    if ((flags & kUpload) != 0) {
      if (const CUresult reserved = ReserveFor(driver, *exec); reserved != kSuccess) return reserved;
    }
    graphs().execs.insert(exec.get());
    *out = reinterpret_cast<CUgraphExec>(exec.release());
    return kSuccess;
  });
}

CUresult InstantiateWith(const char* function, CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  const CUresult result = Instantiate(function, out, graph, params->flags);
  params->error_node = nullptr;
  params->result = result == kSuccess ? 0 : 1;
  return result;
}

CUresult Find(Driver& driver, CUgraphExec handle, CUstream stream_handle, bool has_own, GraphExec** exec,
              Stream** stream) {
  *exec = reinterpret_cast<GraphExec*>(handle);
  if (!graphs().execs.contains(*exec)) return kInvalidValue;
  if (const CUresult found = FindStream(driver, stream_handle, has_own, stream); found != kSuccess) return found;
  return (*stream)->capture == nullptr ? kSuccess : kCaptureUnsupported;  // NVIDIA's would be a child of the graph.
}

CUresult Launch(const char* function, CUgraphExec handle, CUstream stream_handle, bool has_own) {
  return EnterAndWait(function, [&](Driver& driver, std::uint64_t* until) -> CUresult {
    GraphExec* exec = nullptr;
    Stream* stream = nullptr;
    if (const CUresult found = Find(driver, handle, stream_handle, has_own, &exec, &stream); found != kSuccess) {
      return found;
    }
    if (const CUresult reserved = ReserveFor(driver, *exec); reserved != kSuccess) return reserved;
    const CUresult result = Submit(driver, stream, nullptr, exec->nanoseconds, until);
    if (*until == 0 && result == kSuccess) Apply(driver, *exec, stream->context);
    return result;
  });
}

CUresult Upload(const char* function, CUgraphExec handle, CUstream stream_handle, bool has_own) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    GraphExec* exec = nullptr;
    Stream* stream = nullptr;
    const CUresult found = Find(driver, handle, stream_handle, has_own, &exec, &stream);
    return found == kSuccess ? ReserveFor(driver, *exec) : found;
  });
}

}  // namespace

extern "C" {

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, std::size_t) {
  return Instantiate(__func__, out, graph, 0);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, std::size_t) {
  return Instantiate(__func__, out, graph, 0);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return (flags & kUpload) != 0 ? kInvalidValue : Instantiate(__func__, out, graph, flags);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return InstantiateWith(__func__, out, graph, params);
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return InstantiateWith(__func__, out, graph, params);
}
CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) { return Upload(__func__, exec, stream, false); }
CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) { return Upload(__func__, exec, stream, true); }
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) { return Launch(__func__, exec, stream, false); }
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) { return Launch(__func__, exec, stream, true); }
CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    auto* const exec = reinterpret_cast<GraphExec*>(handle);
    if (graphs().execs.erase(exec) == 0) return kInvalidValue;
    delete exec;
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
