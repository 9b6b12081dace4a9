// SPDX-License-Identifier: Apache-2.0
// Looks at the GPUs of this node and at the processes on them once a second.
//
// A machine without a driver has no GPUs. A driver or a GPU that is lost is named once in the log and asked again
// later, after 5 seconds to 5 minutes; until then its numbers are left out. newest() is thread-safe, the rest is not.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/backoff.h"
#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "nodeagent/gpu_faults.h"
#include "nodeagent/gpu_library.h"
#include "nodeagent/process_owner.h"
#include "nodeagent/sample_ring.h"

namespace grus {

struct ProcessSample {
  GpuProcess usage;
  std::shared_ptr<const Owner> owner;  // Never null.
};

struct GpuState {
  Gpu gpu;
  std::optional<GpuSample> sample = {};  // None: the GPU or the driver is lost.
  std::vector<ProcessSample> processes = {};
  std::size_t unmapped = 0;  // Processes of which it is not known whose they were: they ended during the look.
  std::optional<double> mean_utilization_percent = {};       // Of the last minute.
  std::optional<std::uint64_t> peak_memory_used_bytes = {};  // Of the last ten minutes.
  // Of the last two minutes.
  std::optional<std::uint32_t> peak_utilization_percent = {}, peak_memory_controller_percent = {};
  std::optional<std::uint64_t> fault_xid = {};  // The last Xid that no application causes (gpu_faults.h).
};

struct NodeSample {
  kube::TimePoint at;
  std::vector<GpuState> gpus = {};  // All that were seen so far, but those in whose place there is another one now.
  std::size_t never_seen = 0;       // GPUs that the driver counts, and that have been lost since the agent began.
  bool is_open = false;             // The driver answers.

  bool is_complete() const;  // It answers for all of them.
};

class GpuProbe {
 public:
  using NowTicks = std::function<ProcessOwners::Ticks()>;

  // All must outlive it.
  GpuProbe(GpuLibrary& library, ProcessOwners& owners, GpuFaults& faults, const kube::Clock& clock,
           const kube::Log& log, NowTicks now_ticks = ProcessOwners::NowTicks);

  void Run(const std::stop_token& stop);  // A look each second. Blocks until `stop`.
  void LookOnce();
  std::shared_ptr<const NodeSample> newest() const;  // Null: before the first look.

 private:
  struct Tracked {
    Gpu gpu;
    std::optional<std::size_t> place = {};  // In what the library opened; none: lost.
    bool is_told = false;                   // In the log, that it is lost.
    PcieRates pcie = {};
    std::optional<std::uint64_t> last_xid = {};
    SampleRing ring = {};
  };

  void OpenIfDue(kube::TimePoint now);
  void Match(const std::vector<Gpu>& found);
  Tracked& Replaced(int index);  // The lost GPU that had this index, emptied, or a new one.
  void LookAtBus();
  void LookAtGpus(NodeSample& look);
  void LookAtProcesses(NodeSample& look);
  // What follows from an error of the library about this GPU.
  void Note(const kube::Error& error, Tracked& tracked);
  void Lose(Tracked& tracked, const std::string& reason);
  void FinishLook(const NodeSample& look);
  bool MissesSomething() const;

  GpuLibrary& library_;
  ProcessOwners& owners_;
  GpuFaults& faults_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const NowTicks now_ticks_;

  std::vector<Tracked> gpus_;
  std::size_t never_seen_ = 0;
  bool is_open_ = false;
  bool is_told_ = false;  // In the log, that it is not open.
  kube::Backoff retry_;
  kube::TimePoint retry_at_ = kube::TimePoint::min();
  std::size_t turn_ = 0;  // Whose part of the bus is looked at next.

  mutable std::mutex mutex_;  // Guards newest_.
  std::shared_ptr<const NodeSample> newest_;
};

}  // namespace grus
