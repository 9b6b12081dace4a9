// SPDX-License-Identifier: Apache-2.0
// The world of the fake driver, as it lies in the file that the processes of a test share: its GPUs, what each process
// has of them and has queued on them, and the faults that a test asked for.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace grus::cuda::fake {

inline constexpr std::size_t kMostGpus = 16, kMostProcesses = 1100, kMostFaults = 64, kMostShared = 1024,
                             kMostImports = 8, kMostIntervals = 8192;
inline constexpr std::uint64_t kMagic = 0x31646c726f576b46, kMiB = 1 << 20;
inline constexpr std::int32_t kNobody = -1;

// Time on a GPU that is given to a process: kernels of one process that follow each other are one interval.
struct Interval {
  std::uint64_t begin, end;
  std::int32_t place;  // In WorldState::processes; kNobody: it has died.
  std::uint32_t unused;
};

struct FakeGpu {
  unsigned char uuid[16];
  char name[48];
  // Bytes; the sums over all processes. Together they are never more than `total`.
  std::uint64_t total, used, resident;
  std::uint64_t busy;  // Nanoseconds, of intervals that are over.
  std::uint32_t first, intervals;
  Interval queue[kMostIntervals];  // A ring.
};

// The place of a process that has called cuInit(). It holds a lock of fcntl() on the file's byte of the same number, so
// that the place is known to be free once the process has ended, in whatever way, or has become another by exec().
struct FakeProcess {
  std::int32_t pid;  // 0: free.
  std::uint32_t unused;
  std::uint64_t started;  // In the kernel's ticks since boot.
  std::uint64_t used[kMostGpus], busy[kMostGpus];
  // Of managed memory, and what of it lies on the GPU; the rest is in the host's memory.
  std::uint64_t managed[kMostGpus], resident[kMostGpus];
};

struct FakeFault {
  char name[64];
  std::uint32_t is_missing;  // cuGetProcAddress() does not find it; a call is not supported.
  std::uint32_t nth;         // The call that fails, from 1, of all processes together; 0: each.
  std::int32_t code;         // With which.
  std::atomic<std::uint32_t> calls;
  // The next call alone, which stays where it is until it is let go.
  std::uint32_t is_hold_before, is_hold_after;
  std::atomic<std::uint32_t> is_held, is_let_go;
};

// Memory that may be in use by several processes: exported, or allocated so that it can be.
struct SharedMemory {
  std::uint64_t id = 0;  // 0: free.
  std::uint64_t bytes = 0;
  std::int32_t gpu = 0, owner = 0;  // Who pays; a place.
  std::uint32_t is_held = 0;        // By its owner, or by a descriptor.
  std::uint32_t unused = 0;
  struct {
    std::int32_t place = 0;
    std::uint32_t count = 0;  // 0: free.
  } imports[kMostImports] = {};
};

struct WorldState {
  std::uint64_t magic;
  pthread_mutex_t mutex;  // Robust. Guards everything below but what is atomic or is only set before anybody looks.
  std::int32_t driver_version;
  std::uint32_t gpu_count, is_virtual, reuses_addresses, can_move_managed;
  std::atomic<std::uint32_t> fault_count;
  std::uint64_t context_bytes, granularity, rounding, pool_chunk;
  std::atomic<std::uint64_t> virtual_now;
  std::uint64_t next_id;
  FakeFault faults[kMostFaults];
  FakeGpu gpus[kMostGpus];
  FakeProcess processes[kMostProcesses];
  SharedMemory shared[kMostShared];
};

}  // namespace grus::cuda::fake
