// SPDX-License-Identifier: Apache-2.0
// Which nodes to fill with copies of one shape: the inner loop of placement.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "controllers/policy/fit_index.h"

namespace grus {

// Nodes on which, for now, another number of copies fits than the index says.
using FitOverrides = std::unordered_map<NodeId, int>;

// Copies that fit, with the overrides.
std::int64_t CopiesWith(const FitIndex& index, const FitOverrides& overrides);

// Places `count` copies: nodes, and how many on each. Empty if they do not all fit.
std::vector<std::pair<NodeId, int>> Fill(const FitIndex& index, const FitOverrides& overrides, int count);

// All nodes with room, in the order in which to try them one by one for `count` copies: those that hold all of them,
// the fullest first, then the others, those with the most room first.
std::vector<NodeId> InOrder(const FitIndex& index, const FitOverrides& overrides, int count);

}  // namespace grus
