// SPDX-License-Identifier: Apache-2.0
// How many workers elastic jobs should have, by what a GPU is worth in each of them.
//
// It decides about jobs whose speed is known by size (Holder::curve), among those of one queue in one pool, with the
// GPUs that they have and the idle ones that their queue may use: by Allocate(). All other jobs take what there is.
// A job that should be smaller gets a notice to yield; one that should be larger grows when its cooldown is over.
//
// Pure data structure: no I/O, clock or lock; the owner serialises access and passes the time in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "controllers/policy/allocation.h"
#include "controllers/policy/cluster_queues.h"

namespace grus {

class SizePlanner {
 public:
  SizePlanner(const ClusterLedger& ledger, ClusterQueues& queues) : ledger_(ledger), queues_(queues) {}

  // How long a training stands still when its number of workers changes: it must pay for that. 20 s unless told.
  void SetResizeSeconds(double seconds) { resize_seconds_ = seconds; }

  // Within how many seconds to decide anew although nothing happens: with time, a change may be worth its cost.
  // nullopt: there are no jobs to decide about.
  std::optional<double> LookAgainSeconds() const;

  // Decides anew: ClusterQueues::TargetOf(). Returns the owners whose target or notice has changed.
  std::vector<std::string> Update(std::int64_t now);

 private:
  using Targets = std::map<std::string, int>;

  AllocationSnapshot SnapshotOf(QueueIndex queue, PoolIndex pool, std::span<const SizedJob> jobs,
                                std::int64_t now) const;
  void Decide(const AllocationSnapshot& snapshot, std::int64_t now, Targets& targets);

  const ClusterLedger& ledger_;
  ClusterQueues& queues_;
  double resize_seconds_ = 20;
  bool has_jobs_ = false;          // In the last decision.
  std::vector<std::string> told_;  // To yield, by this update.
};

}  // namespace grus
