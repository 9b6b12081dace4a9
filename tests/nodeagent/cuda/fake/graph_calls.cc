// SPDX-License-Identifier: Apache-2.0
// Building graphs. What copies, sets or calls the host takes no time. There are no conditional nodes.
#include <algorithm>

#include "tests/nodeagent/cuda/fake/graphs.h"

namespace grus::cuda {
// Of all kinds of nodes; what it means depends on `type`.
struct CUgraphNodeParams {
  int type, reserved[3];
  union {
    long long padding[29];
    fake::KernelNodeParams kernel;
    CUDA_MEM_ALLOC_NODE_PARAMS allocation;
    CUdeviceptr freed;
    CUgraph child;
  };
  long long more;
};
static_assert(sizeof(CUgraphNodeParams) == 256 && offsetof(CUgraphNodeParams, kernel) == 16);
}  // namespace grus::cuda

namespace grus::cuda::fake {

namespace {

CUresult InGraph(const char* function, CUgraph handle, CUgraphNode* out, int type,
                 std::invocable<Driver&, Node&> auto&& fill) {
  return Enter(function, [&](Driver& driver) -> CUresult {
    Graph* graph = nullptr;
    if (const CUresult found = FindGraph(handle, &graph); found != kSuccess) return found;
    Node* const node = AddNode(graph, type);
    const CUresult filled = fill(driver, *node);
    if (filled == kSuccess) {
      *out = reinterpret_cast<CUgraphNode>(node);
    } else {
      graphs().nodes.erase(node);
      graph->nodes.pop_back();
    }
    return filled;
  });
}

CUresult FillKernel(Node& node, const KernelNodeParams& params) {
  static_cast<KernelNodeParams&>(node.kernel) = params;
  return FindKernel(params.function, &node.nanoseconds) ? kSuccess : kInvalidValue;
}

CUresult FillAllocation(Driver& driver, Node& node, CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  const CUmemLocation& location = params.pool.location;
  if (params.bytes == 0 || params.pool.alloc_type != 1 || location.type != kLocationDevice) return kInvalidValue;
  if (!driver.HasGpu(location.id)) return kInvalidDevice;
  if (params.bytes > driver.state().gpus[location.id].total) return kOutOfMemory;
  node.gpu = location.id;
  node.bytes = RoundUp(params.bytes, driver.state().rounding);
  node.pointer = params.pointer = driver.NewAddress(params.bytes);
  node.allocation = params;
  return kSuccess;
}

CUresult FillChild(Node& node, CUgraph handle) {
  Graph* child = nullptr;
  const CUresult found = FindGraph(handle, &child);
  if (found == kSuccess) node.child = Clone(*child);
  return found;
}

CUresult Fill(Driver& driver, Node& node, CUgraphNodeParams* params) {
  switch (params->type) {
    case kNodeKernel: return FillKernel(node, params->kernel);
    case kNodeChildGraph: return FillChild(node, params->child);
    case kNodeMemAlloc: return FillAllocation(driver, node, params->allocation);
    case kNodeMemFree: node.pointer = params->freed; return kSuccess;
    case kNodeConditional: return kNotSupported;
    default: return kSuccess;
  }
}

CUresult GetKernel(const char* function, CUgraphNode handle, KernelNodeParamsV2* params) {
  return Enter(function, [&](Driver&) -> CUresult {
    Node* node = nullptr;
    if (const CUresult found = FindNode(handle, &node); found != kSuccess) return found;
    if (node->type != kNodeKernel) return kInvalidValue;
    *params = node->kernel;
    return kSuccess;
  });
}

}  // namespace

Graphs& graphs() {
  static auto* const instance = new Graphs;
  return *instance;
}

CUresult FindGraph(CUgraph handle, Graph** graph) {
  *graph = reinterpret_cast<Graph*>(handle);
  return graphs().graphs.contains(*graph) ? kSuccess : kInvalidValue;
}

CUresult FindNode(CUgraphNode handle, Node** node) {
  *node = reinterpret_cast<Node*>(handle);
  return graphs().nodes.contains(*node) ? kSuccess : kInvalidValue;
}

Node* AddNode(Graph* graph, int type) {
  graph->nodes.push_back(std::make_unique<Node>());
  Node* const node = graph->nodes.back().get();
  node->type = type;
  graphs().nodes.insert(node);
  return node;
}

std::unique_ptr<Graph> Clone(const Graph& graph) {
  auto clone = std::make_unique<Graph>();
  for (const auto& node : graph.nodes) {
    Node* const copy = AddNode(clone.get(), node->type);
    copy->nanoseconds = node->nanoseconds;
    copy->gpu = node->gpu;
    copy->bytes = node->bytes;
    copy->pointer = node->pointer;
    copy->kernel = node->kernel;
    copy->allocation = node->allocation;
    if (node->child != nullptr) copy->child = Clone(*node->child);
  }
  return clone;
}

void Forget(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    graphs().nodes.erase(node.get());
    if (node->child != nullptr) Forget(*node->child);
  }
}

void AddSteps(const Graph& graph, GraphExec* exec) {
  for (const auto& node : graph.nodes) {
    exec->nanoseconds += node->nanoseconds;
    if (node->child != nullptr) AddSteps(*node->child, exec);
    if (node->type == kNodeMemAlloc || node->type == kNodeMemFree) {
      exec->steps.push_back({node->type, node->gpu, node->bytes, node->pointer});
    }
  }
}

extern "C" {

CUresult cuGraphCreate(CUgraph* out, unsigned flags) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    if (flags != 0) return kInvalidValue;
    auto* const graph = new Graph;
    graphs().graphs.insert(graph);
    *out = reinterpret_cast<CUgraph>(graph);
    return kSuccess;
  });
}
CUresult cuGraphDestroy(CUgraph handle) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    Graph* graph = nullptr;
    if (const CUresult found = FindGraph(handle, &graph); found != kSuccess) return found;
    Forget(*graph);
    graphs().graphs.erase(graph);
    delete graph;
    return kSuccess;
  });
}

CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode*, std::size_t,
                              const KernelNodeParams* params) {
  return InGraph(__func__, graph, out, kNodeKernel, [&](Driver&, Node& node) { return FillKernel(node, *params); });
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode*, std::size_t,
                                 const KernelNodeParamsV2* params) {
  return InGraph(__func__, graph, out, kNodeKernel, [&](Driver&, Node& node) { return FillKernel(node, *params); });
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, KernelNodeParams* params) {
  KernelNodeParamsV2 all = {};
  const CUresult result = GetKernel(__func__, node, &all);
  if (result == kSuccess) *params = all;
  return result;
}
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, KernelNodeParamsV2* params) {
  return GetKernel(__func__, node, params);
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode*, std::size_t,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return InGraph(__func__, graph, out, kNodeMemAlloc,
                 [&](Driver& driver, Node& node) { return FillAllocation(driver, node, *params); });
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    Node* node = nullptr;
    if (const CUresult found = FindNode(handle, &node); found != kSuccess) return found;
    if (node->type != kNodeMemAlloc) return kInvalidValue;
    *params = node->allocation;
    return kSuccess;
  });
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode*, std::size_t, CUdeviceptr pointer) {
  return InGraph(__func__, graph, out, kNodeMemFree, [&](Driver&, Node& node) {
    node.pointer = pointer;
    return kSuccess;
  });
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode*, std::size_t, CUgraph child) {
  return InGraph(__func__, graph, out, kNodeChildGraph, [&](Driver&, Node& node) { return FillChild(node, child); });
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph* out) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    Node* node = nullptr;
    if (const CUresult found = FindNode(handle, &node); found != kSuccess) return found;
    if (node->child == nullptr) return kInvalidValue;
    *out = reinterpret_cast<CUgraph>(node->child.get());
    return kSuccess;
  });
}
CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode*, std::size_t, CUgraphNodeParams* params) {
  return InGraph(__func__, graph, out, params->type,
                 [&](Driver& driver, Node& node) { return Fill(driver, node, params); });
}
CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode*, const void*, std::size_t,
                           CUgraphNodeParams* params) {
  return InGraph(__func__, graph, out, params->type,
                 [&](Driver& driver, Node& node) { return Fill(driver, node, params); });
}
CUresult cuGraphAddNode_v3(CUgraphNode* out, CUgraph graph, const CUgraphNode*, const void*, std::size_t,
                           CUgraphNodeParams* params) {
  return InGraph(__func__, graph, out, params->type,
                 [&](Driver& driver, Node& node) { return Fill(driver, node, params); });
}
CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, std::size_t* count) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    auto* const graph = reinterpret_cast<Graph*>(handle);
    if (graph == nullptr || count == nullptr) return kInvalidValue;  // A child's is none that FindGraph() knows.
    const std::size_t room = nodes == nullptr ? 0 : *count;
    for (std::size_t i = 0; i < room; ++i) {
      nodes[i] = i < graph->nodes.size() ? reinterpret_cast<CUgraphNode>(graph->nodes[i].get()) : nullptr;
    }
    *count = nodes == nullptr ? graph->nodes.size() : std::min(room, graph->nodes.size());
    return kSuccess;
  });
}
CUresult cuGraphNodeGetType(CUgraphNode handle, int* type) {
  return Enter(__func__, [&](Driver&) {
    Node* node = nullptr;
    const CUresult found = FindNode(handle, &node);
    if (found == kSuccess) *type = node->type;
    return found;
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
