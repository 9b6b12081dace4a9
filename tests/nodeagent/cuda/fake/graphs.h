// SPDX-License-Identifier: Apache-2.0
// Graphs of the fake driver: their nodes run one after the other, in the order in which they were added.
//
// Guarded by the driver's lock. A graph that was instantiated is a list of steps, which lives without the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

struct Node {
  int type = kNodeKernel;
  std::uint64_t nanoseconds = 0;
  int gpu = 0;
  std::uint64_t bytes = 0;  // Of an allocation.
  CUdeviceptr pointer = 0;  // What it allocates or frees.
  std::unique_ptr<Graph> child;
  KernelNodeParamsV2 kernel = {};
  CUDA_MEM_ALLOC_NODE_PARAMS allocation = {};
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  std::uint64_t capture_id = 0;
  int capture_mode = kCaptureGlobal;
  std::thread::id capture_thread = {};  // That began it.
  bool is_invalid = false;              // A call spoilt the capture.
};

struct Step {
  int type;
  int gpu;
  std::uint64_t bytes;
  CUdeviceptr pointer;
};

struct GraphExec {
  std::uint64_t nanoseconds = 0;
  std::vector<Step> steps;  // Only of memory.
  bool frees_on_launch = false;
};

struct Graphs {
  std::unordered_set<Graph*> graphs;  // Not those that are children.
  std::unordered_set<Node*> nodes;    // Those of children too.
  std::unordered_set<GraphExec*> execs;
  std::uint64_t next_capture = 1;
};
Graphs& graphs();

CUresult FindGraph(CUgraph handle, Graph** graph);
CUresult FindNode(CUgraphNode handle, Node** node);
Node* AddNode(Graph* graph, int type);
std::unique_ptr<Graph> Clone(const Graph& graph);
void Forget(const Graph& graph);  // Its nodes are no handles any more.
void AddSteps(const Graph& graph, GraphExec* exec);

// Takes from the GPUs what the graph needs at most, beside what graphs use now. Says why it cannot be launched now.
CUresult ReserveFor(Driver& driver, const GraphExec& exec);
// What its steps leave. REQUIRES: ReserveFor() succeeded just now.
void Apply(Driver& driver, const GraphExec& exec, Context* context);

}  // namespace grus::cuda::fake
