// SPDX-License-Identifier: Apache-2.0
// What runs on the GPU: each launch waits until the container may use its time (gpu_time.h), and is charged for it.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "nodeagent/cuda/driver.h"
#include "nodeagent/cuda/gpu_time.h"
#include "nodeagent/cuda/graphs.h"
#include "nodeagent/cuda/hooks.h"
#include "nodeagent/cuda/launch_abi.h"
#include "nodeagent/cuda/marks.h"
#include "nodeagent/cuda/share.h"

namespace grus::cuda {
namespace {

// What a mark that completes can shorten.
constexpr std::uint64_t kLongestSleep = 1'000'000;

std::uint64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

GpuTimeLaw laws[kMostGpus];
std::atomic<int> bound[kMostGpus];  // 0: not yet; 1: somebody does; 2: done.

// Null: the time of this GPU is not limited.
GpuTimeLaw* LawOf(int gpu) {
  if (gpu == kNoGpu || TheAccount()->limits(gpu).milli == 0) return nullptr;
  std::atomic<int>& state = bound[gpu];
  if (state.load(std::memory_order_acquire) == 2) return &laws[gpu];
  int fresh = 0;
  if (!state.compare_exchange_strong(fresh, 1)) return state == 2 ? &laws[gpu] : nullptr;
  laws[gpu].Bind(TheAccount()->files(), static_cast<std::size_t>(gpu), TheAccount()->time(gpu),
                 static_cast<std::uint32_t>(getpid()));
  state.store(2, std::memory_order_release);
  return &laws[gpu];
}

void Sleep(std::uint64_t ns) {
  const timespec time = {.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(ns, kLongestSleep))};
  nanosleep(&time, nullptr);
}

using driver::StreamOf;
using driver::Zero;

template <typename F>
CUresult Limited(GpuTimeLaw& law, CUstream stream, std::uint64_t key, F&& call) {
  std::uint64_t now = Now();
  Admission admission = law.Admit(now, key, KeyOf(stream));
  while (admission.wait > 0) {
    LookAtMarks(now);
    Sleep(admission.wait);
    const std::uint64_t then = now;
    now = Now();
    law.Waited(now - then);
    admission = law.Admit(now, key, KeyOf(stream));
  }
  if (!admission.mark) {
    const CUresult result = call();
    if (result == kSuccess) law.Launched(now, key, KeyOf(stream), admission);
    return result;
  }
  LookAtMarks(now);
  MarkEvents events;
  const bool is_marked = BeginMark(stream, now, events);
  const CUresult result = call();
  Mark mark;
  if (result == kSuccess) mark = law.Launched(now, key, KeyOf(stream), admission);
  if (is_marked) EndMark(stream, events, law, mark, result == kSuccess);
  else if (result == kSuccess) law.Dropped(mark);
  return result;
}

// The GPU of the current context. Where there is one device, no context can be of another.
int LaunchingGpu() {
  static std::atomic<int> count;
  int known = count.load(std::memory_order_relaxed);
  if (known == 0 && driver::DeviceGetCount(&known) == kSuccess) count.store(known, std::memory_order_relaxed);
  return known == 1 ? GpuOf(0) : CurrentGpu();
}

template <typename F>
CUresult Launch(CUstream stream, Zero zero, const void* handle, const LaunchShape& shape, F&& call) {
  if (!IsLimited()) return call();
  GpuTimeLaw* const law = LawOf(LaunchingGpu());
  if (law == nullptr) return call();
  const CUstream real = StreamOf(stream, zero);
  if (driver::IsCaptured(real)) return call();  // It runs when its graph is launched.
  return Limited(*law, real, LaunchKey(handle, shape), call);
}

using LaunchKernel = CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              CUstream, void**, void**);
CUresult Kernel(LaunchKernel* real, Zero zero, CUfunction function, const LaunchShape& shape, unsigned shared,
                CUstream stream, void** parameters, void** extra) {
  if (real == nullptr) return kNotSupported;
  const auto& [grid, block] = shape;
  return Launch(stream, zero, function, shape, [&] {
    return real(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, parameters, extra);
  });
}

using LaunchKernelEx = CUresult(const CUlaunchConfig*, CUfunction, void**, void**);
CUresult KernelEx(LaunchKernelEx* real, Zero zero, const CUlaunchConfig* config, CUfunction function, void** parameters,
                  void** extra) {
  if (real == nullptr) return kNotSupported;
  const auto call = [&] { return real(config, function, parameters, extra); };
  if (config == nullptr) return call();
  const LaunchShape shape = {.grid = {config->grid_x, config->grid_y, config->grid_z},
                             .block = {config->block_x, config->block_y, config->block_z}};
  return Launch(config->stream, zero, function, shape, call);
}

using LaunchCooperative = CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream, void**);
CUresult Cooperative(LaunchCooperative* real, Zero zero, CUfunction function, const LaunchShape& shape, unsigned shared,
                     CUstream stream, void** parameters) {
  if (real == nullptr) return kNotSupported;
  const auto& [grid, block] = shape;
  return Launch(stream, zero, function, shape, [&] {
    return real(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, parameters);
  });
}

CUresult Graph(CUresult (*real)(CUgraphExec, CUstream), Zero zero, CUgraphExec graph, CUstream stream) {
  if (real == nullptr) return kNotSupported;
  return Launch(stream, zero, graph, {}, [&] { return CountedLaunch(graph, real, stream); });
}

}  // namespace

GRUS_EXPORT CUresult cuLaunch(CUfunction function) {
  auto* const real = GRUS_REAL(cuLaunch);
  if (real == nullptr) return kNotSupported;
  return Launch(nullptr, Zero::kLegacy, function, {}, [&] { return real(function); });
}
GRUS_EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  auto* const real = GRUS_REAL(cuLaunchGrid);
  if (real == nullptr) return kNotSupported;
  const LaunchShape shape = {.grid = {static_cast<unsigned>(width), static_cast<unsigned>(height), 1}, .block = {}};
  return Launch(nullptr, Zero::kLegacy, function, shape, [&] { return real(function, width, height); });
}
GRUS_EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  auto* const real = GRUS_REAL(cuLaunchGridAsync);
  if (real == nullptr) return kNotSupported;
  const LaunchShape shape = {.grid = {static_cast<unsigned>(width), static_cast<unsigned>(height), 1}, .block = {}};
  return Launch(stream, Zero::kLegacy, function, shape, [&] { return real(function, width, height, stream); });
}

GRUS_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                    unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters,
                                    void** extra) {
  return Kernel(GRUS_REAL(cuLaunchKernel), Zero::kLegacy, function, {{gx, gy, gz}, {bx, by, bz}}, shared, stream,
                parameters, extra);
}
GRUS_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                         unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters,
                                         void** extra) {
  return Kernel(GRUS_REAL(cuLaunchKernel_ptsz), Zero::kPerThread, function, {{gx, gy, gz}, {bx, by, bz}}, shared,
                stream, parameters, extra);
}
GRUS_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                      void** extra) {
  return KernelEx(GRUS_REAL(cuLaunchKernelEx), Zero::kLegacy, config, function, parameters, extra);
}
GRUS_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** parameters,
                                           void** extra) {
  return KernelEx(GRUS_REAL(cuLaunchKernelEx_ptsz), Zero::kPerThread, config, function, parameters, extra);
}
GRUS_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                               unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                               void** parameters) {
  return Cooperative(GRUS_REAL(cuLaunchCooperativeKernel), Zero::kLegacy, function, {{gx, gy, gz}, {bx, by, bz}},
                     shared, stream, parameters);
}
GRUS_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                                    unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                                    CUstream stream, void** parameters) {
  return Cooperative(GRUS_REAL(cuLaunchCooperativeKernel_ptsz), Zero::kPerThread, function,
                     {{gx, gy, gz}, {bx, by, bz}}, shared, stream, parameters);
}
// One kernel on several GPUs; the current one is charged.
GRUS_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count,
                                                          unsigned flags) {
  auto* const real = GRUS_REAL(cuLaunchCooperativeKernelMultiDevice);
  if (real == nullptr) return kNotSupported;
  const auto call = [&] { return real(launches, count, flags); };
  if (launches == nullptr || count == 0) return call();
  return Launch(launches[0].stream, Zero::kLegacy, launches[0].function, {}, call);
}

GRUS_EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return Graph(GRUS_REAL(cuGraphLaunch), Zero::kLegacy, graph, stream);
}
GRUS_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return Graph(GRUS_REAL(cuGraphLaunch_ptsz), Zero::kPerThread, graph, stream);
}

}  // namespace grus::cuda
