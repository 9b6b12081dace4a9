// SPDX-License-Identifier: Apache-2.0
// The two files by which the agent and the programs of one container share a GPU. Both are made by the agent, whole,
// before the container starts, and lie in a folder of its own.
//
// `limits`: what the container may have. The agent alone writes it; in the container it is read-only.
// `account`: what each of its processes has. They write it; the agent reads copies of it, believes nothing, and takes
// no lock in it.
//
// All numbers are little-endian, aligned, of fixed size. Another kVersion means other meanings. Sizes in bytes, times
// in nanoseconds. Includes nothing but C's headers (see driver_abi.h).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace grus::cuda {

inline constexpr char kFolderInContainer[] = "/run/grus/cuda";
inline constexpr char kLimitsFile[] = "limits", kAccountFile[] = "account";

inline constexpr std::uint64_t kLimitsMagic = 0x3173746d694c7547, kAccountMagic = 0x3174636341754755;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kMostGpus = 16, kMostProcesses = 1024;
inline constexpr std::uint32_t kWholeGpu = 1000;  // Thousandths.

struct GpuLimits {
  unsigned char uuid[16];
  std::uint64_t memory;               // What all processes of the container may have together; 0: no limit.
  std::uint64_t context;              // What a context takes beside what its program asks for, as far as is known.
  std::atomic<std::uint64_t> beside;  // What the driver says the container has, and its account does not.
  std::uint32_t milli;                // Guaranteed GPU time, in thousandths; 0: time is not limited.
  std::atomic<std::uint32_t> rate;    // Thousandths that it may have now: more than `milli` while others are idle.
  // What it may have past `memory`, which the driver moves to the host's memory when others need the GPU's: the number,
  // from 1, of a later entry of the same GPU, in which `memory` is that limit and all else is 0. 0: there is none.
  std::uint32_t paged, unused;
};
static_assert(sizeof(GpuLimits) == 56);

struct Limits {
  std::uint64_t magic;
  std::uint32_t version, gpu_count;
  std::atomic<std::uint64_t> beat;  // CLOCK_MONOTONIC when the agent last wrote; long ago: it has gone.
  std::uint64_t unused;
  GpuLimits gpus[kMostGpus];
};
static_assert(sizeof(Limits) == 32 + 56 * kMostGpus);

// A process, by its number as the container counts, and when it started, in the kernel's ticks since boot: no two have
// both in common. pid 0: the place is free.
struct ProcessAccount {
  std::int32_t pid;
  std::uint32_t unused;
  std::uint64_t started;
  std::uint64_t memory[kMostGpus];  // In the order of `limits`, of entries for what is paged too.
};
static_assert(sizeof(ProcessAccount) == 16 + 8 * kMostGpus);

// When the GPU worked for a container: a ring of slots of 2^17 ns (an eighth of a millisecond), half a second in all.
// A slot: which round of the ring it belongs to (14 bits), and how much of it was busy (18 bits, ns). See busy_time.h.
inline constexpr std::uint32_t kBusySlotShift = 17, kBusyBits = 18;
inline constexpr std::size_t kBusySlots = 4096;

// The GPU time of a container, of all its processes: what was charged for what they launched. See gpu_time.h.
struct GpuTime {
  std::atomic<std::int64_t> balance;          // What may still be spent; negative: debt.
  std::atomic<std::uint64_t> filled;          // CLOCK_MONOTONIC until when `balance` was filled up.
  std::atomic<std::uint64_t> charged;         // All that was spent, as far as is known: it may run back when measured.
  std::atomic<std::uint64_t> waited;          // How long launches waited, of all threads together.
  std::atomic<std::uint64_t> launcher_since;  // Since when no other process than this launched anything.
  std::atomic<std::uint32_t> launcher, unused;
  std::atomic<std::uint32_t> busy[kBusySlots];
};

struct Account {
  std::uint64_t magic;
  std::uint32_t version, unused;
  // Guards what follows, but for `time`. Robust and shared between processes; the agent makes it.
  alignas(64) pthread_mutex_t mutex;
  alignas(64) std::uint64_t memory[kMostGpus];  // The sum over all processes.
  std::uint64_t most_memory[kMostGpus];         // That this ever was.
  std::uint64_t refused[kMostGpus];             // How many allocations were, for lack of room.
  alignas(64) GpuTime time[kMostGpus];
  ProcessAccount processes[kMostProcesses];
};

}  // namespace grus::cuda
