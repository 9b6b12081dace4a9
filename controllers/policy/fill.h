// SPDX-License-Identifier: Apache-2.0
// Which nodes to fill with copies of one shape: the inner loop of placement.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "controllers/policy/fit_index.h"

namespace grus {

// Copies that fit on a node, where the number differs from the index for now.
using FitOverrides = std::unordered_map<NodeId, int>;

// Copies that fit on all nodes, with the overrides.
std::int64_t CopiesWith(const FitIndex& index, const FitOverrides& overrides);

// Places `count` copies: nodes, and how many on each. Empty if they do not all fit.
std::vector<std::pair<NodeId, int>> Fill(const FitIndex& index, const FitOverrides& overrides, int count);

// All nodes with room, in the order in which to try them one by one for `count` copies: those that hold all of them,
// the fullest first, then the others, those with the most room first.
std::vector<NodeId> InOrder(const FitIndex& index, const FitOverrides& overrides, int count);

}  // namespace grus
