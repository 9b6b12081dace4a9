// SPDX-License-Identifier: Apache-2.0
// The shares of this node's containers: a folder for each, what it may have, what its programs have and how they use
// it. Not thread-safe. Blocks for files alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/model/meta.h"
#include "nodeagent/gpu_probe.h"
#include "nodeagent/limits/kept_files.h"
#include "nodeagent/limits/lending.h"
#include "nodeagent/limits/share_folder.h"
#include "nodeagent/limits/share_use.h"
#include "nodeagent/sharing/device_ids.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

// A container's, of one GPU.
struct Share {
  PartResource resource = PartResource::kMilli;
  std::vector<PartId> ids = {};  // Sorted.
  kube::ObjectKey pod = {};      // Without name: it is not known whose it is.
  std::string container = {};
  ShareLimits limits = {};
  // As it was read last, without its timeline, and with what was refused of paged memory; none: it could not be.
  std::optional<AccountCopy::Gpu> account = {};
  std::uint64_t paged_bytes = 0;  // By the same account.
  ShareUse use = ShareUse(0);
  std::shared_ptr<KeptFiles> kept = {};
  bool is_unreadable_told = false, is_escape_told = false, is_growth_told = false, is_uncut_told = false;
};

class ShareTable {
 public:
  // A share that nobody is known to hold may be that of an init container, which the kubelet does not list.
  static constexpr kube::Duration kKept = std::chrono::minutes(10);

  // Folders of an earlier agent are kept for as long; what is not a share is left alone. `proc`: see CudaOptions. All
  // must outlive it.
  ShareTable(std::string folder, std::string proc, const kube::Clock& clock, const kube::Log& log);

  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }
  const std::map<std::string, Share>& shares() const { return shares_; }  // By name (ShareName()).
  Share* Find(const std::string& name);                                   // Null: there is none.

  // New files, for the next start of its container. Whoever had any of its ids before has ended. On an error there is
  // no such share.
  kube::Status Put(const std::string& name, Share share);
  // Somebody else got these ids: whoever had any of them has ended, or it is an init container that is yet to start,
  // whose pod gives them to its next one. So what it may have is kept for a while.
  void Drop(PartResource resource, const std::vector<PartId>& ids, const std::string& but_name = {});
  // It is held. One of an earlier agent is taken over, if its files are such as this one writes.
  void NoteHeld(const std::string& name, PartResource resource, const HeldParts& holder);
  // Those that have been held by nobody for a while go. Only after all that are held were told of.
  void RemoveOld();

  // Reads what programs say, lends what they leave, and writes what each may have.
  void Turn();
  // After each look of the probe.
  void NoteLook(const NodeSample& look);

  // Accounts are cut without a lock that others wait for: whose files there are, by share, and what came of it.
  std::map<std::string, std::shared_ptr<KeptFiles>> FilesByName() const;
  void NoteCut(const std::string& name, const KeptFiles* kept, const kube::Result<bool>& cut);

 private:
  void ReadSums(const std::string& name, Share& share);
  void Lend();
  std::optional<std::vector<DriverProcess>> ProcessesOf(const Share& share, const NodeSample& look) const;
  void TellEscape(Share& share);
  // Whoever had this name before has ended.
  void SetHolder(Share& share, const kube::ObjectKey& pod, const std::string& container);
  std::chrono::nanoseconds Now() const { return clock_.Now().time_since_epoch(); }

  const std::string folder_, proc_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::map<std::string, Share> shares_;
  std::map<std::string, Lending> lending_;         // By the UUID of the GPU.
  std::map<std::string, kube::TimePoint> needed_;  // Folders, and when they were last known to be of use.
};

}  // namespace grus
