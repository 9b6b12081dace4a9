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

// How many of the first members an empty cluster could hold. Never too few; too many only where pods keep each other
// off in other ways than one a node. `is_thorough` also tries kinds of members together: slow on large clusters.
int CapacityFor(const ClusterLedger& ledger, const GangToPlace& gang, bool is_thorough);

// Gives a field its value; true if it had another one.
template <typename T, typename Value>
bool Update(T& field, const Value& value) {
  if (field == value) return false;
  field = value;
  return true;
}

// Sets fitting, and what is lacking, where and by whom it is held. `searched`: how many members the search found a
// place for, if there was one. True if something is another one than before.
bool Describe(const ClusterLedger& ledger, const GangToPlace& gang, std::optional<int> searched, FactsCache& facts,
              GangStanding& standing);

}  // namespace grus
