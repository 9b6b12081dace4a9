// SPDX-License-Identifier: Apache-2.0
// Modules, functions and launches. Every module has every function whose name says how long it runs: "us200" and
// "us200_of_mine" run for 200 microseconds; also ns, ms and s. How large its grid is does not matter.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tests/nodeagent/cuda/fake/families.h"

namespace grus::cuda::fake {

namespace {

struct Functions {
  std::unordered_set<CUmodule> modules;
  std::map<std::pair<CUmodule, std::string>, CUfunction> by_name;
  std::unordered_map<CUfunction, std::uint64_t> nanoseconds;
  std::uintptr_t next = 0x10000;  // Of their handles, which point to nothing.
};
Functions& functions() {
  static auto* const instance = new Functions;
  return *instance;
}

bool ReadTime(std::string_view name, std::uint64_t* nanoseconds) {
  struct Unit {
    std::string_view name;
    std::uint64_t nanoseconds;
  };
  for (const Unit& unit : {Unit{"ns", 1}, Unit{"us", 1000}, Unit{"ms", 1'000'000}, Unit{"s", 1'000'000'000}}) {
    if (!name.starts_with(unit.name)) continue;
    const std::string text(name.substr(unit.name.size()));
    char* rest = nullptr;
    *nanoseconds = std::strtoull(text.c_str(), &rest, 10) * unit.nanoseconds;
    return *nanoseconds > 0 && (*rest == '\0' || *rest == '_');
  }
  return false;
}

struct Grid {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z;
  bool IsValid() const { return std::min({grid_x, grid_y, grid_z, block_x, block_y, block_z}) > 0; }
};
constexpr Grid kOne = {1, 1, 1, 1, 1, 1};

CUresult Launch(const char* name, CUfunction function, const Grid& grid, CUstream handle, bool has_own) {
  return EnterAndWait(name, [&](Driver& driver, std::uint64_t* until) -> CUresult {
    Stream* stream = nullptr;
    std::uint64_t nanoseconds = 0;
    if (!grid.IsValid()) return kInvalidValue;
    if (!FindKernel(function, &nanoseconds)) return kInvalidHandle;
    if (const CUresult found = FindStream(driver, handle, has_own, &stream); found != kSuccess) return found;
    return Submit(driver, stream, function, nanoseconds, until);
  });
}

Grid GridOf(const CUlaunchConfig& config) {
  return {config.grid_x, config.grid_y, config.grid_z, config.block_x, config.block_y, config.block_z};
}

}  // namespace

bool FindKernel(CUfunction function, std::uint64_t* nanoseconds) {
  const auto found = functions().nanoseconds.find(function);
  if (found == functions().nanoseconds.end()) return false;
  *nanoseconds = found->second;
  return true;
}

CUresult Submit(Driver& driver, Stream* stream, CUfunction function, std::uint64_t nanoseconds, std::uint64_t* until) {
  if (stream->capture != nullptr) {
    AddKernel(stream->capture, function, nanoseconds);
    return kSuccess;
  }
  const std::uint64_t now = driver.world()->Now();
  while (!stream->queued.empty() && stream->queued.front() <= now) stream->queued.pop_front();
  if (stream->queued.size() >= kMostQueued) {
    *until = stream->queued.front();
    return kSuccess;
  }
  std::uint64_t end = std::max(now, stream->end);
  if (nanoseconds > 0) {
    const std::scoped_lock held(*driver.world());
    end = driver.world()->Queue(driver.place(), stream->context->gpu, nanoseconds, until);
    if (end == 0) return kSuccess;
  }
  stream->queued.push_back(end);
  stream->end = std::max(stream->end, end);
  return kSuccess;
}

extern "C" {

CUresult cuModuleLoadData(CUmodule* out, const void*) {
  return EnterInContext(__func__, [&](Driver&, Context&) {
    *out = reinterpret_cast<CUmodule>(functions().next += 16);
    functions().modules.insert(*out);
    return kSuccess;
  });
}
CUresult cuModuleUnload(CUmodule module) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    if (functions().modules.erase(module) == 0) return kInvalidHandle;
    std::erase_if(functions().by_name, [&](const auto& entry) {
      if (entry.first.first != module) return false;
      functions().nanoseconds.erase(entry.second);
      return true;
    });
    return kSuccess;
  });
}
CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    std::uint64_t nanoseconds = 0;
    if (!functions().modules.contains(module)) return kInvalidHandle;
    if (!ReadTime(name, &nanoseconds)) return kNotFound;
    CUfunction& function = functions().by_name[{module, name}];
    if (function == nullptr) function = reinterpret_cast<CUfunction>(functions().next += 16);
    functions().nanoseconds[function] = nanoseconds;
    *out = function;
    return kSuccess;
  });
}
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return Enter(__func__, [&](Driver&) -> CUresult {
    std::uint64_t nanoseconds = 0;
    if (!FindKernel(function, &nanoseconds)) return kInvalidHandle;
    return std::min({x, y, z}) > 0 ? kSuccess : kInvalidValue;
  });
}

CUresult cuLaunch(CUfunction function) { return Launch(__func__, function, kOne, nullptr, false); }
CUresult cuLaunchGrid(CUfunction function, int x, int y) {
  const bool is_valid = x > 0 && y > 0;
  return Launch(__func__, function, is_valid ? kOne : Grid{}, nullptr, false);
}
CUresult cuLaunchGridAsync(CUfunction function, int x, int y, CUstream stream) {
  const bool is_valid = x > 0 && y > 0;
  return Launch(__func__, function, is_valid ? kOne : Grid{}, stream, false);
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned, CUstream stream, void**, void**) {
  return Launch(__func__, function, {grid_x, grid_y, grid_z, block_x, block_y, block_z}, stream, false);
}
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned, CUstream stream, void**, void**) {
  return Launch(__func__, function, {grid_x, grid_y, grid_z, block_x, block_y, block_z}, stream, true);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void**) {
  return Launch(__func__, function, GridOf(*config), config->stream, false);
}
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void**, void**) {
  return Launch(__func__, function, GridOf(*config), config->stream, true);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned, CUstream stream,
                                   void**) {
  return Launch(__func__, function, {grid_x, grid_y, grid_z, block_x, block_y, block_z}, stream, false);
}
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned, CUstream stream,
                                        void**) {
  return Launch(__func__, function, {grid_x, grid_y, grid_z, block_x, block_y, block_z}, stream, true);
}
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count, unsigned) {
  unsigned next = 0;
  return EnterAndWait(__func__, [&](Driver& driver, std::uint64_t* until) -> CUresult {
    for (; next < count; ++next) {
      Stream* stream = nullptr;
      std::uint64_t nanoseconds = 0;
      const CUDA_LAUNCH_PARAMS& launch = launches[next];
      // Each has a stream of its own, by which its GPU is known.
      if (launch.stream == nullptr || !FindKernel(launch.function, &nanoseconds)) return kInvalidHandle;
      if (const CUresult found = FindStream(driver, launch.stream, false, &stream); found != kSuccess) return found;
      const CUresult result = Submit(driver, stream, launch.function, nanoseconds, until);
      if (result != kSuccess || *until != 0) return result;
    }
    return kSuccess;
  });
}

}  // extern "C"

}  // namespace grus::cuda::fake
