// SPDX-License-Identifier: Apache-2.0
// A gang that waits, as the planner keeps it: in each pool that it could run in. Part of gang_planner.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controllers/policy/cluster_queues.h"
#include "controllers/policy/gang_planner.h"
#include "controllers/policy/placement.h"

namespace grus {

// In which order gangs of one queue are tried.
struct GangRank {
  JobClass job_class;
  int minus_priority;
  bool is_extra;  // No member is needed: after gangs of this priority that wait to start.
  // Since when it waits, later by one second for each GPU second that it has had: of those that came together, the one
  // with less service is first. Nothing starves: whoever comes later than that, comes after it.
  std::int64_t served_since;
  std::string key;
  friend auto operator<=>(const GangRank&, const GangRank&) = default;
};

// The gang in one pool: those of its members that ask for GPUs go nowhere else.
struct PoolVariant {
  PoolIndex pool = kNoPool;  // kNoPool: wherever there is room.
  std::vector<ShapePtr> members;
  std::vector<GangPart> parts;
  PoolPlacement placement = PoolPlacement::kBinPack;
  std::vector<std::int64_t> milli;  // milli[n]: of the first n members together. Empty: without queues.

  // What an empty cluster has for it: see CapacityFor().
  int capacity = 0;
  bool is_missed = false;

  bool HasNodes() const;  // For each kind of member, were they empty.
};

struct PlannedGang {
  GangDemand demand;
  GangRank rank;
  std::vector<PoolVariant> variants;  // At least one.
  std::uint64_t setup_version = 0;    // Of the queues, for which `variants` hold.
  std::size_t at = 0;                 // The variant that it would start as.
  QueueIndex queue = kNoQueue;        // kNoQueue: none may start it. Set by each plan, as is what follows.
  bool was_tried = false;             // It had its turn.
  bool is_entitled = true;            // Its queue would start it, if GPUs were idle.
  GangStanding standing;
  bool is_changed = true;  // Since its standing was last told.
  bool is_constrained = false;
  std::uint64_t guards_version = 0;  // For which that holds.
  std::uint64_t nodes_version = 0;   // For which capacities hold.
  bool is_capacity_thorough = false;
  std::optional<int> searched;  // Members with a place in the last search; none: too little room for one.

  const PoolVariant& in_pool() const { return variants[at]; }
  int needed() const { return demand.needed > 1 ? demand.needed : 1; }
  bool IsExtra() const { return demand.needed <= 0; }
};

GangRank RankOf(const GangDemand& demand, const ClusterQueues& queues);
void MakeVariants(PlannedGang& gang, ClusterLedger& ledger, ClusterQueues& queues);

GangToPlace QueryOf(const PlannedGang& gang, const PoolVariant& variant, const ClusterLedger& ledger);
// Counts anew what an empty cluster has for it, if nodes have changed.
void UpdateCapacity(PlannedGang& gang, const ClusterLedger& ledger, bool is_thorough);
// Whether it would have room if these held nothing. Of a job that only shrinks nobody knows which workers go.
bool HasRoomWithout(const PlannedGang& gang, const std::set<OwnerId>& owners, const ClusterLedger& ledger);
// Of `may_end`, those that hold GPUs on a few nodes that would have room for it if these ended; empty: a few nodes are
// not enough.
std::set<std::string> OwnersInTheWay(const PlannedGang& gang, const std::set<std::string>& may_end,
                                     const ClusterLedger& ledger);

// What the needed members ask for in the pool of the variant; empty: no GPUs.
std::vector<PoolNeed> NeedsOf(const PlannedGang& gang, const PoolVariant& variant);
// Why the queues do not let it start so; nullopt: they do. Sets gang.is_entitled. REQUIRES: without queues,
// or with gang.queue.
std::optional<std::string> WhyNotAdmitted(PlannedGang& gang, const PoolVariant& variant, ClusterQueues& queues);
// Why it had no turn, and only `before` of its queue had one. REQUIRES: with queues.
std::string WhyNoTurn(const PlannedGang& gang, const std::string& before, ClusterQueues& queues);
// For whom GPUs are kept that this gang would otherwise start with; empty: nobody.
const std::string& ClaimantBefore(const PlannedGang& gang, const ClusterQueues& queues);
bool IsWithinGuarantee(const PlannedGang& gang, const PoolVariant& variant, ClusterQueues& queues);
// With how many members it may start, at least those that it needs, once it is admitted.
int MostAdmitted(const PlannedGang& gang, const PoolVariant& variant, ClusterQueues& queues);

}  // namespace grus
