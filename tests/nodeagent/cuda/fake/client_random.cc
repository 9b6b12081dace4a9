// SPDX-License-Identifier: Apache-2.0
// random SEED CALLS MOST_BYTES, and mixed, of the same: allocates and frees plain memory, or in each of the ways that
// there are, one as often as the other. Says how many were allocated and how many refused.
#include <array>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "tests/nodeagent/cuda/fake/client_commands.h"
#include "tests/nodeagent/cuda/fake/client_driver.h"

namespace grus::cuda::fake {

namespace {

struct Way {
  CUresult (*take)(std::uint64_t bytes, std::uint64_t* handle);
  CUresult (*give)(std::uint64_t handle);
};

CUresult FreePlain(std::uint64_t pointer) { return Call<decltype(cuMemFree_v2)>("cuMemFree_v2", pointer); }

CUresult TakePlain(std::uint64_t bytes, std::uint64_t* pointer) {
  CUdeviceptr got = 0;
  const CUresult result = Call<decltype(cuMemAlloc_v2)>("cuMemAlloc_v2", &got, bytes);
  *pointer = got;
  return result;
}

CUresult TakeManaged(std::uint64_t bytes, std::uint64_t* pointer) {
  CUdeviceptr got = 0;
  const CUresult result = Call<decltype(cuMemAllocManaged)>("cuMemAllocManaged", &got, bytes, 1U);
  *pointer = got;
  return result;
}

CUresult TakePitched(std::uint64_t bytes, std::uint64_t* pointer) {
  constexpr std::size_t kRow = 1000;
  CUdeviceptr got = 0;
  std::size_t pitch = 0;
  const CUresult result =
      Call<decltype(cuMemAllocPitch_v2)>("cuMemAllocPitch_v2", &got, &pitch, kRow, bytes / kRow + 1, 4U);
  *pointer = got;
  return result;
}

CUresult TakeAsync(std::uint64_t bytes, std::uint64_t* pointer) {
  CUdeviceptr got = 0;
  const CUresult result = Call<decltype(cuMemAllocAsync)>("cuMemAllocAsync", &got, bytes, nullptr);
  *pointer = got;
  return result;
}
CUresult FreeAsync(std::uint64_t pointer) { return Call<decltype(cuMemFreeAsync)>("cuMemFreeAsync", pointer, nullptr); }

CUresult TakeCreated(std::uint64_t bytes, std::uint64_t* handle) {
  constexpr std::uint64_t kGranule = 2 << 20;
  CUmemAllocationProp prop = {};
  prop.type = 1;
  prop.location = {kLocationDevice, 0};
  CUmemGenericAllocationHandle got = 0;
  const CUresult result =
      Call<decltype(cuMemCreate)>("cuMemCreate", &got, (bytes / kGranule + 1) * kGranule, &prop, 0ULL);
  *handle = got;
  return result;
}
CUresult FreeCreated(std::uint64_t handle) { return Call<decltype(cuMemRelease)>("cuMemRelease", handle); }

CUresult TakeArray(std::uint64_t bytes, std::uint64_t* handle) {
  constexpr std::size_t kWidth = 256, kFloat = 4;
  CUarray got = nullptr;
  const CUDA_ARRAY_DESCRIPTOR wanted = {kWidth, bytes / (kWidth * kFloat) + 1, 0x20, 1};
  const CUresult result = Call<decltype(cuArrayCreate_v2)>("cuArrayCreate_v2", &got, &wanted);
  *handle = reinterpret_cast<std::uint64_t>(got);
  return result;
}
CUresult FreeArray(std::uint64_t handle) {
  return Call<decltype(cuArrayDestroy)>("cuArrayDestroy", AsHandle<CUarray>(handle));
}

CUresult TakeContext(std::uint64_t, std::uint64_t* handle) {
  CUcontext got = nullptr, popped = nullptr;
  const CUresult result = Call<decltype(cuCtxCreate_v2)>("cuCtxCreate_v2", &got, 0U, 0);
  *handle = reinterpret_cast<std::uint64_t>(got);
  return result != kSuccess ? result : Call<decltype(cuCtxPopCurrent_v2)>("cuCtxPopCurrent_v2", &popped);
}
CUresult FreeContext(std::uint64_t handle) {
  return Call<decltype(cuCtxDestroy_v2)>("cuCtxDestroy_v2", AsHandle<CUcontext>(handle));
}

constexpr std::array kWays = {
    Way{TakePlain, FreePlain}, Way{TakeManaged, FreePlain},   Way{TakePitched, FreePlain},
    Way{TakeAsync, FreeAsync}, Way{TakeAsync, FreePlain},     Way{TakeCreated, FreeCreated},
    Way{TakeArray, FreeArray}, Way{TakeContext, FreeContext},
};

std::string Walk(const Words& words, std::span<const Way> ways) {
  std::mt19937_64 random(Number(words, 0, 1));
  const std::uint64_t calls = Number(words, 1, 1000), most = Number(words, 2, 64 << 20);
  std::vector<std::pair<const Way*, std::uint64_t>> live;
  std::uint64_t refused = 0, allocated = 0;
  for (std::uint64_t i = 0; i < calls; ++i) {
    if (live.empty() || random() % 2 == 0) {
      const Way& way = ways[random() % ways.size()];
      std::uint64_t handle = 0;
      const CUresult result = way.take(1 + random() % most, &handle);
      if (result != kSuccess && result != kOutOfMemory) return Answer(result);
      if (result == kOutOfMemory) {
        ++refused;
        continue;
      }
      ++allocated;
      live.emplace_back(&way, handle);
    } else {
      std::swap(live[random() % live.size()], live.back());
      if (const CUresult result = live.back().first->give(live.back().second); result != kSuccess) {
        return Answer(result);
      }
      live.pop_back();
    }
  }
  return Answer(kSuccess, std::to_string(allocated) + " " + std::to_string(refused));
}

}  // namespace

void AddRandomCommands(Commands& commands) {
  commands["random"] = [](const Words& words) { return Walk(words, std::span(kWays).first<1>()); };
  commands["mixed"] = [](const Words& words) { return Walk(words, kWays); };
}

}  // namespace grus::cuda::fake
