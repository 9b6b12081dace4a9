// SPDX-License-Identifier: Apache-2.0
// When the GPU worked for a container, of all its processes and streams, on the clock of the CPU: what ran side by side
// counts once. A slot of the ring is never more than full; what finds no room in its slots is not charged.
//
// Safe for threads and processes, without a lock; what is in the ring may be anything (a hostile program of the same
// container wrote it), and harms no more than the charge of this container.
#pragma once

#include <cstdint>

#include "nodeagent/cuda/share_files.h"

namespace grus::cuda {

// Adds `amount` of work, even over [begin, end), and returns how much of it there was room for. What lies before the
// ring's time (half a second before `end`) has room.
std::uint64_t AddBusy(GpuTime& time, std::uint64_t begin, std::uint64_t end, std::uint64_t amount);

// Times of a GPU's events on the clock of the CPU. An event is known by its distance from a base event; the two clocks'
// offset is narrowed by what cannot be: a launch that started before it was made, or ended after it was seen complete.
// One thread at a time (the one that looks after a process's marks).
class GpuClock {
 public:
  // `gpu_start`, `gpu_end`: ns since the base event, of a launch made at `launched` and seen complete at `seen`.
  void Saw(std::uint64_t launched, std::int64_t gpu_start, std::int64_t gpu_end, std::uint64_t seen);
  std::uint64_t ToCpu(std::int64_t gpu) const { return static_cast<std::uint64_t>(gpu + offset_); }
  // The base is another event now, `later` ns after the one before. (A float of milliseconds is exact to a
  // microsecond for 16 s: take a new base every 10 s.)
  void Rebase(std::int64_t later) { offset_ += later; }

 private:
  std::int64_t offset_ = 0;
  bool set_ = false;
};

}  // namespace grus::cuda
