// SPDX-License-Identifier: Apache-2.0
// A node in virtual time: a GPU (sim_gpu.h), programs in containers that launch through the law as libgrus-cuda does
// (launches.cc, marks.cc), and the agent that lends. Deterministic.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nodeagent/cuda/gpu_time.h"
#include "tests/nodeagent/cuda/sim_gpu.h"

namespace grus::cuda {

struct SimWork {
  std::uint64_t key = 1;  // As the program sees it: its function and grid, or its graph.
  std::uint64_t ns = 0;   // GPU time, if alone.
};

// A thread that launches into a stream of its own.
struct SimProgram {
  std::function<SimWork(std::uint64_t number)> next;  // The number-th launch.
  double width = 1;
  std::uint64_t gap = 0;  // CPU time between launches, beside what a launch itself takes.
  std::uint64_t start = 0, stop = ~std::uint64_t{0};
  std::size_t sync_every = 0;      // Waits for its stream after so many launches; 0: never.
  std::uint64_t pause = 0;         // And then does something else for so long.
  std::size_t queue_limit = 1024;  // As the driver's: a launch blocks while so many are queued.
  bool is_limited = true;          // Not: it escaped, its launches are not seen by the law.
};

struct SimProcess {
  std::vector<SimProgram> programs;
};

struct SimContainer {
  std::uint32_t milli = 0;
  std::vector<SimProcess> processes;
};

class SimNode {
 public:
  SimNode(std::vector<SimContainer> containers, SimGpu::Sharing sharing = SimGpu::Sharing::kTimeSlices);
  ~SimNode();
  // Called every 100 ms; sets rates. None: each container has its `milli`.
  using Agent = std::function<void(std::uint64_t now, SimNode& node)>;
  void SetAgent(Agent agent) { agent_ = std::move(agent); }
  void RunUntil(std::uint64_t time);

  std::size_t size() const { return containers_.size(); }
  std::uint32_t milli(std::size_t container) const;
  GpuTime& time(std::size_t container);
  std::uint32_t rate(std::size_t container) const;
  void SetRate(std::size_t container, std::uint32_t rate);
  const SimGpu& gpu() const { return gpu_; }
  // The container's part of the GPU between two times, in points (100: all of it).
  double Points(std::size_t container, std::uint64_t from, std::uint64_t to) const;
  // How far the worst of the seconds in [from, to) is from `points`.
  double WorstSecond(std::size_t container, std::uint64_t from, std::uint64_t to, double points) const;
  std::uint64_t launches() const { return launches_; }
  std::uint64_t marks() const { return marks_; }

 private:
  struct Process;
  struct Thread;
  struct Container;
  void Step(Thread& thread, std::uint64_t now);
  void Poll(Process& process, std::uint64_t now);
  SimRun* AddMark(Process& process, const Mark& mark);

  SimGpu gpu_;
  std::vector<std::unique_ptr<Container>> containers_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Agent agent_;
  std::uint64_t next_look_ = 0, launches_ = 0, marks_ = 0;
};

}  // namespace grus::cuda
