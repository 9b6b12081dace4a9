// SPDX-License-Identifier: Apache-2.0
// Holds what a container uses of a GPU to its share of the GPU's time. One object a process and GPU; the processes of a
// container share a balance (GpuTime in `account`).
//
// The balance fills with time at the container's rate, up to a tenth of a second's worth, 50 ms at most. A launch is
// charged what its key is thought to cost, at once. Some launches are marked: the caller records an event before and
// one after, in the launch's stream, and tells the law when both are complete; then the charge for all launches since
// the mark before is replaced by what was measured (busy_time.h: what ran side by side is charged once). A balance
// below zero is debt: launches wait until it is paid back. Long launches are all marked, short ones one in 128. While
// the container may have the whole GPU, though it is guaranteed a part, the balance bounds what it has queued there.
//
// Threads: all functions but Completed() may be called by any at once, and take no lock; Completed() by one at a time.
// Time is CLOCK_MONOTONIC in ns and a parameter; nothing here waits. Errors of the estimates are bounded by what is
// measured; the measure is wall time, so it counts in full what a program of another container took in between. The
// agent knows that overlap and grants a higher rate for it (nodeagent/limits/lending.h). The law is not told of copies,
// waits for events and the like: a launch that waits behind those, or for another container's turn, is charged for that
// time only if launches of its own stream were before it.
//
//   for (;;) {
//     admission = law.Admit(now, key, stream);
//     if (admission.wait == 0) break;
//     <complete marks whose events are complete>; <sleep admission.wait, at most>; law.Waited(slept);
//   }
//   if (admission.mark) <record event>
//   <launch; if it failed, stop here>
//   mark = law.Launched(now, key, stream, admission);
//   if (admission.mark) <record event; keep both events with `mark`>
#pragma once

#include <atomic>
#include <cstdint>

#include "nodeagent/cuda/busy_time.h"
#include "nodeagent/cuda/launch_costs.h"
#include "nodeagent/cuda/share_files.h"

namespace grus::cuda {

struct Admission {
  std::uint64_t wait = 0;    // 0: go; else ask again after so many ns, or once a mark is complete.
  std::uint64_t took = 0;    // What it is thought to take,
  std::uint64_t cost = 0;    // and what it will be charged: less while others run as well.
  std::uint32_t one_in = 0;  // How many launches like it there are to one that is marked.
  bool mark = false;
  bool count = false;     // The key is not well known yet.
  bool is_new = false;    // It was never measured.
  bool was_held = false;  // It is the first after launches waited.
};

// A launch that is measured. A value: the caller keeps it with the events, in the order of launches.
struct Mark {
  std::uint64_t key = 0, stream = 0, launched = 0;
  std::uint64_t took = 0;     // What the launch was thought to take,
  std::uint64_t before = 0;   // and those since the mark before it in the stream,
  std::uint64_t charged = 0;  // and what was charged for all of these,
  std::uint64_t begin = 0;    // the first of which was at this time,
  std::uint64_t last = 0;     // and the last at this.
  std::uint32_t one_in = 1;
  bool is_new = false;    // The launch's key was never measured.
  bool was_held = false;  // The launch is the first after launches waited.
};

class GpuTimeLaw {
 public:
  // Holds the GPU at `gpu` of the container's files. `process`: a number that no other process of the container has,
  // not 0. REQUIRES: both live as long as this; called once, before all others.
  void Bind(const Limits& limits, std::size_t gpu, GpuTime& time, std::uint32_t process);

  Admission Admit(std::uint64_t now, std::uint64_t key, std::uint64_t stream);
  // `stream`: any number that is the stream's (and its context's) own: work of one stream runs in its order.
  Mark Launched(std::uint64_t now, std::uint64_t key, std::uint64_t stream, const Admission& admission);
  // The marked launch ran from `start` to `end` (CLOCK_MONOTONIC). Of one stream in the order of launches.
  void Completed(std::uint64_t now, const Mark& mark, std::uint64_t start, std::uint64_t end);
  // The launch cannot be measured (an event failed): its estimate stands.
  void Dropped(const Mark& mark);
  void Waited(std::uint64_t ns) { time_->waited.fetch_add(ns, std::memory_order_relaxed); }

  LaunchCosts& costs() { return costs_; }

 private:
  // Launches since the last mark of a stream (of several, where their numbers fall together).
  struct alignas(64) Unmarked {
    std::atomic<std::uint64_t> charged, took, begin, last;
    std::uint64_t measured_until;  // The end of its last completed mark.
    std::int64_t carried;          // What marks said of launches before them, and that found no room there.
  };
  static constexpr std::size_t kStreams = 32;

  struct Used {
    std::uint64_t took, charged;  // Charged is less where others ran as well.
  };

  void Learn(const Mark& mark, std::uint64_t took);
  void ChargeBefore(const Mark& mark, std::uint64_t start, std::uint64_t took, Used& used);
  Unmarked& Of(std::uint64_t stream);
  std::uint32_t Rate(std::uint64_t now) const;
  std::int64_t Fill(std::uint64_t now, std::uint32_t rate);
  void Charge(std::int64_t ns);
  void ForgetDebt(std::uint64_t now);

  // All start as zeroes, so that objects of static storage take no room in the library's file.
  const Limits* files_ = nullptr;
  const GpuLimits* limits_ = nullptr;
  GpuTime* time_ = nullptr;
  std::uint32_t process_ = 0;
  std::atomic<std::uint64_t> marked_ = 0;   // Charged for marks that are not complete.
  std::atomic<std::uint32_t> overlap_ = 0;  // Of a launch's time, the part in which others ran as well, of 1,024.
  std::atomic<std::uint64_t> pause_ = 0;    // In debt: launches wait until what is earned in so long is there.
  Unmarked unmarked_[kStreams] = {};
  LaunchCosts costs_;
};

}  // namespace grus::cuda
