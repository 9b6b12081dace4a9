// SPDX-License-Identifier: Apache-2.0
// Namespaces take turns, so that what one of them has much of does not keep others waiting. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace grus {

// Puts the first one of each namespace first, then the second ones, and so on; those of a namespace stay in their
// order.
template <typename Things, typename NamespaceOf>
void TakeTurns(Things& things, const NamespaceOf& namespace_of) {
  using Thing = typename Things::value_type;
  std::map<std::string, std::size_t> seen;
  std::vector<std::pair<std::size_t, Thing>> by_turn;
  by_turn.reserve(things.size());
  for (Thing& thing : things) {
    const std::size_t turn = seen[namespace_of(thing)]++;
    by_turn.emplace_back(turn, std::move(thing));
  }
  std::ranges::stable_sort(by_turn, {}, &std::pair<std::size_t, Thing>::first);
  std::ranges::transform(by_turn, things.begin(), [](auto& entry) { return std::move(entry.second); });
}

}  // namespace grus
