// SPDX-License-Identifier: Apache-2.0
// Holds containers to their parts of GPUs by libgrus-cuda.so, a library that programs in them load, where the node's
// label asks for it.
//
// A container gets the library, a file that makes the loader load it, and the two files of its share: what it may have,
// and what its programs say that they have (nodeagent/cuda/share_files.h). Each start gets new ones. While the library
// cannot be put on the node, no part is given, and no container starts that was given one so: it would not be held.
// When the label goes, what runs keeps what it has.
//
// Ten times a second it reads the accounts, lends the time of those that are idle to others of their GPU, and writes
// what each may have now. Once a second it compares the accounts with what the driver says (share_use.h): what a
// container has beside its account counts against its part, and a program that goes round the library is told in the
// log. All that containers write is taken for what any program may have written. While no agent runs, each container
// has the time that it is guaranteed, and its memory.
//
// Time comes from `clock`. Thread-safe, but that each of LookOnce(), AskOnce() and CutOnce() is for one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "clientlib/runtime/metrics.h"
#include "nodeagent/kubelet/held_devices.h"
#include "nodeagent/limits/cuda_library.h"
#include "nodeagent/limits/share_table.h"
#include "nodeagent/sharing/given_record.h"
#include "nodeagent/sharing/part_enforcer.h"
#include "nodeagent/sharing/shared_gpus.h"

namespace grus {

struct CudaOptions {
  std::string library = {};  // libgrus-cuda.so in the agent's image; empty: it is not set up.
  // Of the node, at the same paths. In the second are the shares: it should be in memory, as programs write there
  // whenever they launch something.
  std::string folder = "/var/lib/grus/cuda", shares = "/run/grus/cuda";
  std::int64_t reserve_mib = 500;  // Of each GPU.
  std::int64_t context_mib = 0;    // What a context takes of a GPU; 0: it is counted when the driver tells of it.
  std::string proc = "/proc";
};

class CudaSharing final : public PartEnforcer {
 public:
  using NewestLook = std::function<std::shared_ptr<const NodeSample>()>;  // Null: none so far.

  // All must outlive it.
  CudaSharing(CudaOptions options, DeviceHolders& holders, NewestLook newest_look, const kube::Clock& clock,
              const kube::Log& log);

  // Whether the label asks for it, in a mode that can have it. What is given from now on is given so.
  void Want(bool is_wanted);
  void Run(const std::stop_token& stop);  // Blocks until `stop`.
  void LookOnce();
  void AskOnce();  // Who holds what: on a thread of its own, as the kubelet may take seconds to answer.
  void CutOnce();  // Accounts that containers made longer: likewise, as a call of a container may hold it up.
  void AddMetrics(kube::Registry& registry) const;  // REQUIRES: the registry is gone before this is.

  bool MayGive(const std::string& gpu) const override;
  kube::Status Give(const PartToGive& part, ContainerSetup& setup) override;
  kube::Status MayStart(PartResource resource, const std::vector<PartId>& ids, const HeldParts* holder) override;
  Enforcement WayOf(const HeldParts& part) const override;

 private:
  // The answer for one resource of a container, of which the other one may be about to come.
  struct Half {
    PartResource resource = PartResource::kMemory;
    std::string gpu = {}, share = {};  // The share's name, of memory.
    std::uint32_t milli = 0;           // Of compute.
    kube::TimePoint at = {};
  };

  // Somebody is to be held so, or may be since before the label went.
  bool HasWork() const;
  void FollowLibrary();
  // The time that comes with this memory, or goes to memory that was given before. REQUIRES: mutex_ is held.
  std::uint32_t MatchHalves(Half half);
  // That a share had, by this agent or one before. REQUIRES: mutex_ is held.
  std::optional<ShareLimits> LastLimits(const std::string& name, const std::string& gpu);
  kube::Registry::Samples Each(const std::function<std::optional<double>(const Share&)>& number) const;

  const CudaOptions options_;
  DeviceHolders& holders_;
  const NewestLook newest_look_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  CudaLibrary library_;  // LookOnce() alone installs it.
  GivenRecord record_;
  std::shared_ptr<const NodeSample> seen_;               // Of LookOnce() alone, as the next two are.
  kube::TimePoint install_at_ = kube::TimePoint::min();  // Whether the library is there: not before.
  kube::FailureNews news_;

  mutable std::mutex mutex_;  // Guards what follows, and the files of shares.
  bool is_wanted_ = false, is_installed_ = false;
  SharedGpus inventory_;
  std::vector<SharedGpu> gpus_;
  std::optional<Half> last_;
  ShareTable shares_;
};

}  // namespace grus
