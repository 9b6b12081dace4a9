// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/gpu_time_sim.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace grus::cuda {
namespace {

constexpr std::uint64_t kStart = 1000 * kSec;  // What the clock says when a node starts.
constexpr std::uint64_t kLaunchCpu = 2 * kUs;  // CPU time of a launch,
constexpr std::uint64_t kLatency = 5 * kUs;    // and until an idle GPU runs it.
constexpr std::uint64_t kLateWake = 60 * kUs;  // A sleep ends so much late.
constexpr std::uint64_t kLongestSleep = kMs;   // And is no longer than this.
constexpr std::size_t kMostMarks = 64;         // In a context, that are not complete.
constexpr std::uint64_t kEventStep = 500;      // The resolution of events.
constexpr std::uint64_t kLookEvery = 100 * kMs;
constexpr std::int64_t kGpuClock = 987'654'321;  // The GPU's clock is behind the CPU's by so much.

std::int64_t OnGpuClock(std::uint64_t time) {
  return static_cast<std::int64_t>(time / kEventStep * kEventStep) - kGpuClock;
}

}  // namespace

struct SimNode::Container {
  std::unique_ptr<Limits> limits = std::make_unique<Limits>();
  std::unique_ptr<GpuTime> time = std::make_unique<GpuTime>();
};

struct SimNode::Process {
  struct Marked {
    Mark mark;
    SimRun run;
    bool is_told = false;
  };
  std::size_t container = 0, context = 0;
  std::unique_ptr<GpuTimeLaw> law = std::make_unique<GpuTimeLaw>();
  GpuClock clock;
  std::deque<std::unique_ptr<Marked>> marks;
};

struct SimNode::Thread {
  Process* process = nullptr;
  std::size_t stream = 0;
  SimProgram program;
  std::uint64_t next = 0, launched = 0;
  SimWork work;
  bool has_work = false, syncs = false;
};

SimNode::SimNode(std::vector<SimContainer> containers, SimGpu::Sharing sharing)
    : gpu_(sharing), next_look_(kLookEvery) {
  for (SimContainer& container : containers) {
    containers_.push_back(std::make_unique<Container>());
    Container& shared = *containers_.back();
    shared.limits->gpus[0].milli = container.milli;
    SetRate(containers_.size() - 1, container.milli);
    for (SimProcess& process : container.processes) {
      processes_.push_back(std::make_unique<Process>());
      Process& made = *processes_.back();
      made.container = containers_.size() - 1;
      made.context = gpu_.AddContext(made.container, process.programs.size());
      made.law->Bind(*shared.limits, 0, *shared.time, static_cast<std::uint32_t>(processes_.size()));
      for (SimProgram& program : process.programs) {
        const std::size_t stream = static_cast<std::size_t>(&program - process.programs.data());
        const std::uint64_t start = program.start;
        threads_.push_back(std::make_unique<Thread>(
            Thread{.process = &made, .stream = stream, .program = std::move(program), .next = start, .work = {}}));
      }
    }
  }
}

SimNode::~SimNode() = default;

std::uint32_t SimNode::milli(std::size_t container) const { return containers_[container]->limits->gpus[0].milli; }

std::uint32_t SimNode::rate(std::size_t container) const { return containers_[container]->limits->gpus[0].rate.load(); }

GpuTime& SimNode::time(std::size_t container) { return *containers_[container]->time; }

void SimNode::SetRate(std::size_t container, std::uint32_t rate) {
  containers_[container]->limits->gpus[0].rate.store(rate);
}

void SimNode::Poll(Process& process, std::uint64_t now) {
  for (auto& marked : process.marks) {
    if (marked->is_told || marked->run.end == 0 || marked->run.end > now) continue;
    const std::int64_t start = OnGpuClock(marked->run.start + kStart), end = OnGpuClock(marked->run.end + kStart);
    process.clock.Saw(marked->mark.launched, start, end, now + kStart);
    process.law->Completed(now + kStart, marked->mark, process.clock.ToCpu(start), process.clock.ToCpu(end));
    marked->is_told = true;
  }
  while (!process.marks.empty() && process.marks.front()->is_told) process.marks.pop_front();
}

// Null: it is not measured.
SimRun* SimNode::AddMark(Process& process, const Mark& mark) {
  const auto pending = std::ranges::count(process.marks, false, [](const auto& one) { return one->is_told; });
  if (static_cast<std::size_t>(pending) >= kMostMarks) {
    process.law->Dropped(mark);
    return nullptr;
  }
  ++marks_;
  process.marks.push_back(std::make_unique<Process::Marked>(Process::Marked{.mark = mark, .run = {}}));
  return &process.marks.back()->run;
}

void SimNode::Step(Thread& thread, std::uint64_t now) {
  Process& process = *thread.process;
  const SimProgram& program = thread.program;
  if (now >= program.stop) {
    thread.next = ~std::uint64_t{0};
    return;
  }
  const std::size_t queued = gpu_.Queued(process.context, thread.stream);
  if (thread.syncs && queued > 0) {
    thread.next = now + 20 * kUs;
    return;
  }
  if (std::exchange(thread.syncs, false) && program.pause > 0) {
    thread.next = now + program.pause;
    return;
  }
  if (queued >= program.queue_limit) {
    thread.next = now + 50 * kUs;
    return;
  }
  if (!thread.has_work) thread.work = program.next(thread.launched);
  thread.has_work = true;

  SimKernel kernel{.left = static_cast<double>(thread.work.ns), .width = program.width, .ready = now + kLatency};
  if (program.is_limited) {
    const std::uint64_t key = thread.work.key * 0x9E3779B97F4A7C15;
    const Admission admission = process.law->Admit(now + kStart, key, thread.stream);
    if (admission.wait > 0) {
      Poll(process, now);
      const std::uint64_t slept = std::min(admission.wait, kLongestSleep) + kLateWake;
      process.law->Waited(slept);
      thread.next = now + slept;
      return;
    }
    if (admission.mark) Poll(process, now);
    const Mark mark = process.law->Launched(now + kStart, key, thread.stream, admission);
    if (admission.mark) kernel.run = AddMark(process, mark);
  }
  gpu_.Launch(process.context, thread.stream, kernel);
  ++launches_;
  ++thread.launched;
  thread.has_work = false;
  thread.syncs = program.sync_every != 0 && thread.launched % program.sync_every == 0;
  thread.next = now + kLaunchCpu + program.gap;
}

void SimNode::RunUntil(std::uint64_t time) {
  while (true) {
    const auto& first = *std::ranges::min_element(threads_, {}, [](const auto& thread) { return thread->next; });
    const std::uint64_t next = std::min(first->next, next_look_);
    if (next >= time) break;
    gpu_.AdvanceTo(next);
    if (next_look_ <= first->next) {
      for (auto& container : containers_) container->limits->beat.store(next + kStart);
      if (agent_) agent_(next + kStart, *this);
      next_look_ += kLookEvery;
    } else {
      Step(*first, next);
    }
  }
  gpu_.AdvanceTo(time);
}

double SimNode::Points(std::size_t container, std::uint64_t from, std::uint64_t to) const {
  return 100 * static_cast<double>(gpu_.Busy(container, from, to)) / static_cast<double>(to - from);
}

double SimNode::WorstSecond(std::size_t container, std::uint64_t from, std::uint64_t to, double points) const {
  double worst = 0;
  for (std::uint64_t second = from; second < to; second += kSec) {
    const double off = Points(container, second, second + kSec) - points;
    if (std::abs(off) > std::abs(worst)) worst = off;
  }
  return worst;
}

}  // namespace grus::cuda
