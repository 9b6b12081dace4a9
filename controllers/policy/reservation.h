// SPDX-License-Identifier: Apache-2.0
// Where a gang that waits can start soonest, and when.
//
// It looks at what is free now and at what ends at a known time. If that is not enough, the rest ends at an unknown
// time: then the nodes with the most room are picked, which only get emptier while nobody else may enter them.
// Constraints between pods are looked at only so far: pods that keep each other off a node need one each.
//
// Pure functions.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "controllers/policy/placement.h"

namespace grus {

struct Reservation {
  std::map<NodeId, Resources> nodes;  // What the gang needs on each.
  std::optional<std::int64_t> start;  // Unix seconds; nullopt: something that must end first did not say when.
};

// For the first gang.needed members, were there no other reservation. Without nodes: they would not fit even then.
// `ends`: by OwnerId, when it is expected to end; 0: unknown.
Reservation FindReservation(const ClusterLedger& ledger, const GangToPlace& gang, const std::vector<std::int64_t>& ends,
                            std::int64_t now);

// How many pods of the shape one node can take, by the shape's own ports and anti-affinity.
int MostOnOneNode(const PodShape& shape);

}  // namespace grus
