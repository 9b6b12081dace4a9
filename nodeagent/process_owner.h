// SPDX-License-Identifier: Apache-2.0
// Whose a process is, by its PID: for a driver that knows processes by PID alone, and is asked before /proc is.
//
// A PID may end and be given to another process at any time. So the caller notes the time (NowTicks()), asks the
// driver, and then asks here: a process that began before that time and is still there is the one that the driver saw.
// Any other is not told, however it looks. Start times have a resolution of 10 ms; when in doubt, nobody is named.
//
// What is found is remembered as long as the process lives, so that a look costs one small read of /proc. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "nodeagent/pod_names.h"

namespace grus {

struct Owner {
  PodOfProcess pod = {};  // Empty: in no pod.
  PodName name = {};      // Empty: not known.
  bool is_pod() const { return !pod.pod_uid.empty(); }
};

class ProcessOwners {
 public:
  // Clock ticks since the machine started, as /proc counts them.
  using Ticks = std::uint64_t;
  static Ticks NowTicks();

  // `proc`: where the /proc of the GPUs' PID namespace is mounted. `names` must outlive it.
  ProcessOwners(std::string proc, const PodNames& names) : proc_(std::move(proc)), names_(names) {}

  // A round looks at all processes that are of interest; those that it does not look at are forgotten.
  void BeginRound(Ticks asked_at);
  struct Found {
    std::shared_ptr<const Owner> owner = nullptr;  // Null: it ended, or it began after the driver was asked.
    bool was_there = false;                        // The same process was found in the round before.
  };
  Found Find(int pid);
  void EndRound();

 private:
  struct Process {
    Ticks start = 0;
    std::shared_ptr<const Owner> owner;
    std::uint64_t round = 0;  // The last one that found it.
    bool was_there = false;   // In the one before.
  };
  std::shared_ptr<const Owner> Name(const PodOfProcess& pod) const;

  const std::string proc_;
  const PodNames& names_;
  std::map<int, Process> processes_;
  std::uint64_t round_ = 0;
  Ticks asked_at_ = 0;
};

}  // namespace grus
