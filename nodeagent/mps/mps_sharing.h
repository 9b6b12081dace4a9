// SPDX-License-Identifier: Apache-2.0
// Holds containers to their parts of GPUs by CUDA's MPS, where the node's label asks for it.
//
// A daemon runs for each shared GPU that works (mps_daemon.h). While it is not up, no part of its GPU may be given, and
// no container may start that was given one under MPS: it would not be held. When the label goes, or the mode, what
// runs keeps what it has: a daemon ends when no container holds a part that was given under MPS (given_record.h). When
// the agent ends, daemons go on.
//
// Once a second it looks at the daemons and at what their logs say: a fault is told to each pod that has a part of the
// GPU under MPS, counted and logged. Time comes from `clock`. Thread-safe, but for LookOnce().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/runtime/metrics.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/mps/mps_daemon.h"
#include "nodeagent/mps/mps_log.h"
#include "nodeagent/sharing/given_record.h"
#include "nodeagent/sharing/part_enforcer.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

struct MpsOptions {
  std::string program = {};                               // nvidia-cuda-mps-control; empty: it is not set up.
  std::string folder = "/run/grus/mps", shm_folder = {};  // At the same paths on the node; see AddMps().
  std::int64_t reserve_mib = 500;                         // Of each GPU.
  // Told of each pod that shares a GPU of which a fault is reported, and what to say. Null: nobody is told.
  std::function<void(const kube::ObjectKey& pod, const std::string& note)> on_fault = {};
};

class MpsSharing final : public PartEnforcer {
 public:
  // All must outlive it.
  MpsSharing(MpsOptions options, DeviceHolders& holders, const kube::Clock& clock, const kube::Log& log);

  // Whether the label asks for it, in a mode that can have it. What is given from now on is given so.
  void Want(bool is_wanted);
  void See(const NodeSample& look);       // After each look of the probe.
  void Run(const std::stop_token& stop);  // Blocks until `stop`.
  void LookOnce();
  void AddMetrics(kube::Registry& registry) const;  // REQUIRES: the registry is gone before this is.

  bool MayGive(const std::string& gpu) const override;
  kube::Status Give(const PartToGive& part, ContainerSetup& setup) override;
  kube::Status MayStart(PartResource resource, const std::vector<PartId>& ids, const HeldParts* holder) override;
  Enforcement WayOf(const HeldParts& part) const override;

 private:
  struct OfGpu {
    MpsDaemon daemon;
    MpsLog log;
    std::int64_t memory_mib = 0;                       // That its clients may have; 0: not known.
    kube::TimePoint told_at = kube::TimePoint::min();  // Of the last fault.
  };
  struct Seen {
    int index = 0;
    bool has_daemon = false, is_up = false;
    std::uint64_t faults = 0;
  };

  std::string FolderOf(const std::string& gpu) const { return options_.folder + "/" + gpu; }
  OfGpu& DaemonOf(const std::string& gpu);
  bool HasProgram();
  void FollowDaemons();
  void FollowLogs();
  // Of which GPUs containers hold parts that were given under MPS; and which pods. None: the kubelet does not say.
  std::optional<std::map<std::string, std::set<kube::ObjectKey>>> Holders();
  void TellFault(const std::string& gpu, const std::string& line);
  kube::Registry::Samples Each(double (*number)(const Seen&)) const;

  const MpsOptions options_;
  DeviceHolders& holders_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  GivenRecord record_;
  std::map<std::string, std::unique_ptr<OfGpu>> daemons_;  // By UUID; of LookOnce() alone, as the next four are.
  bool is_absence_told_ = false;                           // That the program is not there.
  std::set<std::string> wanted_;                           // GPUs whose daemons shall run, for what is given next.
  std::optional<std::set<std::string>> used_;              // GPUs of which parts are held under MPS; none: not known.
  kube::TimePoint ask_at_ = kube::TimePoint::min();        // For these: not before.

  mutable std::mutex mutex_;       // Guards what follows.
  std::optional<bool> is_wanted_;  // None: it is not known so far, and no daemon starts or ends.
  SharedGpus inventory_;
  std::vector<SharedGpu> gpus_;
  std::map<std::string, Seen> seen_;  // By UUID.
};

}  // namespace grus
