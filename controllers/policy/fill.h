// SPDX-License-Identifier: Apache-2.0
// Which nodes to fill with copies of one shape: the inner loop of placement.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "controllers/policy/fit_index.h"
#include "controllers/queues/queue_spec.h"

namespace grus {

// Copies that fit on a node, where the number differs from the index for now.
using FitOverrides = std::unordered_map<NodeId, int>;

// Copies that fit on all nodes, with the overrides.
std::int64_t CopiesWith(const FitIndex& index, const FitOverrides& overrides);

// Places `count` copies: nodes, and how many on each. Empty if they do not all fit.
std::vector<std::pair<NodeId, int>> Fill(const FitIndex& index, const FitOverrides& overrides, int count,
                                         PoolPlacement placement = PoolPlacement::kBinPack);

// How free a node is for copies of a shape, while copies are spread.
struct Freeness {
  NodeId id = 0;
  std::int64_t copies = 0, capacity = 0;  // That still fit; that fit while it is empty.
  std::int64_t fullness = 0;              // See FitRank.
};
// Of `a` a larger part is free; of two equal parts, more devices.
bool IsFreer(const Freeness& a, const Freeness& b);

// All nodes with room, in the order in which to try them one by one for `count` copies: those that hold all of them,
// the fullest first, then the others, those with the most room first.
std::vector<NodeId> InOrder(const FitIndex& index, const FitOverrides& overrides, int count);

}  // namespace grus
