// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/wiped_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace grus::cuda {
namespace {

// What the kernel does not wipe. One process maps a few at most.
constexpr int kMost = 16;
struct Area {
  std::atomic<void*> start;
  std::atomic<std::size_t> bytes;
};
constinit Area areas[kMost] = {};
constinit std::atomic<int> area_count = 0;

void WipeAll() {
  for (Area& area : areas) {
    void* const start = area.start.load(std::memory_order_acquire);
    if (start != nullptr) std::memset(start, 0, area.bytes.load(std::memory_order_relaxed));
  }
}

bool WipeByHandler(void* start, std::size_t bytes) {
  const int index = area_count.fetch_add(1);
  if (index >= kMost || (index == 0 && pthread_atfork(nullptr, nullptr, WipeAll) != 0)) return false;
  areas[index].bytes.store(bytes, std::memory_order_relaxed);
  areas[index].start.store(start, std::memory_order_release);
  return true;
}

}  // namespace

void* MapWipedOnFork(std::size_t bytes) {
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  if (madvise(start, bytes, MADV_WIPEONFORK) == 0 || WipeByHandler(start, bytes)) return start;
  munmap(start, bytes);
  return nullptr;
}

}  // namespace grus::cuda
