// SPDX-License-Identifier: Apache-2.0
// The memory of graphs. A GPU has one such for a process, in chunks as pools are: a launch or an upload takes what is
// missing, and only cuDeviceGraphMemTrim() or the end of a context gives back. What a graph allocates and does not free
// is an allocation like others from its launch on, and must be freed before it is launched again.
#include <algorithm>

#include "tests/nodeagent/cuda/fake/graphs.h"

namespace grus::cuda::fake {

namespace {

struct GraphMemory {
  std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
};
GraphMemory& MemoryOf(int gpu) {
  static auto* const memory = new GraphMemory[kMostGpus];
  return memory[gpu];
}

void Release(Driver&, const Block& block) { static_cast<GraphMemory*>(block.from)->used -= block.bytes; }

bool IsOf(const GraphExec& exec, CUdeviceptr pointer) {
  return std::any_of(exec.steps.begin(), exec.steps.end(),
                     [&](const Step& step) { return step.type == kNodeMemAlloc && step.pointer == pointer; });
}

// The most that is used while its steps run, by GPU.
std::vector<std::uint64_t> MostUsed(const Driver& driver, const GraphExec& exec) {
  std::vector<std::uint64_t> used(kMostGpus), most(kMostGpus);
  std::unordered_map<CUdeviceptr, std::uint64_t> live;
  for (int gpu = 0; gpu < static_cast<int>(kMostGpus); ++gpu) used[static_cast<std::size_t>(gpu)] = MemoryOf(gpu).used;
  for (const auto& [pointer, block] : driver.blocks) {
    if (block.release != &Release) continue;
    live[pointer] = block.bytes;
    if (exec.frees_on_launch && IsOf(exec, pointer)) used[static_cast<std::size_t>(block.gpu)] -= block.bytes;
  }
  most = used;
  for (const Step& step : exec.steps) {
    const auto gpu = static_cast<std::size_t>(step.gpu);
    if (step.type == kNodeMemAlloc) {
      used[gpu] += live[step.pointer] = step.bytes;
      most[gpu] = std::max(most[gpu], used[gpu]);
    } else {
      used[gpu] -= live[step.pointer];
      live.erase(step.pointer);
    }
  }
  return most;
}

}  // namespace

void TrimGraphMemory(Driver& driver, int gpu) {
  GraphMemory& memory = MemoryOf(gpu);
  const std::uint64_t wanted = RoundUp(memory.used, driver.state().pool_chunk);
  if (wanted < memory.reserved) driver.GiveBack(gpu, memory.reserved - wanted);
  memory.reserved = std::min(memory.reserved, wanted);
}

CUresult ReserveFor(Driver& driver, const GraphExec& exec) {
  for (const Step& step : exec.steps) {
    const bool is_live = driver.blocks.contains(step.pointer);
    if (step.type == kNodeMemAlloc && is_live && !exec.frees_on_launch) return kInvalidValue;
    if (step.type == kNodeMemFree && !is_live && !IsOf(exec, step.pointer)) return kInvalidValue;
  }
  if (exec.steps.empty()) return kSuccess;
  const std::vector<std::uint64_t> most = MostUsed(driver, exec);
  for (int gpu = 0; gpu < static_cast<int>(driver.state().gpu_count); ++gpu) {
    GraphMemory& memory = MemoryOf(gpu);
    const std::uint64_t wanted = RoundUp(most[static_cast<std::size_t>(gpu)], driver.state().pool_chunk);
    if (wanted <= memory.reserved) continue;
    if (!driver.Charge(gpu, wanted - memory.reserved)) return kOutOfMemory;
    memory.reserved = wanted;
    memory.reserved_high = std::max(memory.reserved_high, wanted);
  }
  return kSuccess;
}

void Apply(Driver& driver, const GraphExec& exec, Context* context) {
  if (exec.steps.empty()) return;
  const std::vector<std::uint64_t> most = MostUsed(driver, exec);
  for (int gpu = 0; gpu < static_cast<int>(kMostGpus); ++gpu) {
    MemoryOf(gpu).used_high = std::max(MemoryOf(gpu).used_high, most[static_cast<std::size_t>(gpu)]);
  }
  for (const Step& step : exec.steps) {
    driver.FreeBlock(step.pointer);  // Of an allocation: that of the launch before.
    if (step.type != kNodeMemAlloc) continue;
    GraphMemory& memory = MemoryOf(step.gpu);
    memory.used += step.bytes;
    driver.blocks[step.pointer] = {
        .gpu = step.gpu, .bytes = step.bytes, .owner = context, .from = &memory, .release = &Release};
  }
}

extern "C" {

CUresult cuDeviceGetGraphMemAttribute(CUdevice gpu, int attribute, void* value) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    const GraphMemory& memory = MemoryOf(gpu);
    auto* const number = static_cast<std::uint64_t*>(value);
    switch (attribute) {
      case kGraphMemUsed: *number = memory.used; return kSuccess;
      case kGraphMemUsedHigh: *number = memory.used_high; return kSuccess;
      case kGraphMemReserved: *number = memory.reserved; return kSuccess;
      case kGraphMemReservedHigh: *number = memory.reserved_high; return kSuccess;
      default: return kInvalidValue;
    }
  });
}
CUresult cuDeviceSetGraphMemAttribute(CUdevice gpu, int attribute, void* value) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    if (*static_cast<std::uint64_t*>(value) != 0) return kInvalidValue;
    GraphMemory& memory = MemoryOf(gpu);
    switch (attribute) {
      case kGraphMemUsedHigh: memory.used_high = memory.used; return kSuccess;
      case kGraphMemReservedHigh: memory.reserved_high = memory.reserved; return kSuccess;
      default: return kInvalidValue;
    }
  });
}
CUresult cuDeviceGraphMemTrim(CUdevice gpu) {
  return Enter(__func__, [&](Driver& driver) -> CUresult {
    if (!driver.HasGpu(gpu)) return kInvalidDevice;
    if (const CUresult refused = CheckCaptures(); refused != kSuccess) return refused;
    TrimGraphMemory(driver, gpu);
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
