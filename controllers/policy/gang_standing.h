// SPDX-License-Identifier: Apache-2.0
// The standing of a gang that waits: how many members have room, what is missing, who holds it. Pure functions.
#pragma once

#include <map>
#include <vector>

#include "controllers/policy/gang_planner.h"
#include "controllers/policy/placement.h"

namespace grus {

// What the nodes of an index have for its shape, as if nothing were reserved. Computed once a pass.
struct IndexFacts {
  std::vector<DeviceUse> uses;   // The largest, of GPUs on its nodes.
  std::int64_t copies = 0;       // That fit.
  std::vector<kube::Wide> free;  // By amount.
};

class FactsCache {
 public:
  explicit FactsCache(const ClusterLedger& ledger) : ledger_(ledger) {}
  const IndexFacts& Of(const FitIndex& index);

 private:
  const ClusterLedger& ledger_;
  std::map<const FitIndex*, IndexFacts> facts_;
};

// What an empty cluster has for a gang.
struct GangCapacity {
  int members = 0;         // How many of the first could be there: never too few.
  bool is_missed = false;  // So many are enough, but PlaceGang() finds no places for them.
};

// Counts each kind of member alone: too many if kinds compete, or if constraints between pods go beyond one pod a node.
// `is_thorough` also looks whether the kinds can be there together: exactly for two kinds, otherwise for each two of
// them. Slow on large clusters.
GangCapacity CapacityFor(const ClusterLedger& ledger, const GangToPlace& gang, bool is_thorough);

// Sets a field; true if it had another value.
template <typename T, typename Value>
bool Update(T& field, const Value& value) {
  if (field == value) return false;
  field = value;
  return true;
}

// Sets how many members fit, what is lacking, where, and who holds it. `searched`: how many members a search found a
// place for, if there was a search. True if anything changed.
bool Describe(const ClusterLedger& ledger, const GangToPlace& gang, std::optional<int> searched, FactsCache& facts,
              GangStanding& standing);

}  // namespace grus
