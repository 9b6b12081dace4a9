// SPDX-License-Identifier: Apache-2.0
// A node as the ledger keeps it: who holds what there. A value.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/policy/fit_index.h"

namespace grus {

// Amounts on some nodes that gangs wait for.
using ReservedRoom = std::map<NodeId, Resources>;

// What one owner holds on one node.
struct NodeUse {
  OwnerId owner = 0;
  int pods = 0;
  Resources held, unbound;  // `unbound` is the part of `held` that is not bound yet.
};

struct LedgerNode {
  NodeId id = 0;
  bool is_known = false;  // False: pods are bound to it, but the node is not (or no longer) there.
  int uses = 0;           // Pods and places. An unknown node that nobody holds is forgotten.
  NodeState state;
  Resources used;      // By bound pods and by places.
  Resources reserved;  // For a gang that waits; nobody else may count on it.
  std::vector<NodeUse> by_owner;
  std::vector<ShapePtr> pods;  // Of pods and places, where the shape is known.

  Resources Taken() const;  // Used or reserved.
  // The same, without a copy where nothing is reserved; else it is `copy`.
  const Resources& TakenBy(Resources& copy) const;
  // What is reserved, but for `may_use`. Null: all of it.
  Resources ReservedBut(const ReservedRoom* may_use) const;
  // Whether the node is known, accepts such pods, and has room for one more beside `taken`.
  bool CanHold(const PodShape& shape, const Resources& taken) const;
  // Among its GPUs: as the pod says, else the node.
  PoolPlacement PlacementOf(const PodShape& shape) const { return shape.placement.value_or(state.placement); }
  // The GPU for one more such pod beside `taken`: see ChooseGpu().
  std::string GpuFor(const PodShape& shape, const Resources& taken, std::string_view preferred = {}) const;
  const NodeUse* FindUse(OwnerId owner) const;  // Null: the owner holds nothing here.
};

}  // namespace grus
