// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/node_scores.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace grus {
namespace {

struct Span {
  double low = 0, high = 0;
};

int ScoreIn(const Span& span, double rank) {
  if (rank >= span.high) return kHighestScore;
  const double share = (rank - span.low) / (span.high - span.low);
  return std::clamp(static_cast<int>(std::floor(share * kHighestScore)), 0, kHighestScore - 1);
}

}  // namespace

std::vector<int> ScoresOf(std::span<const NodeRank> ranks) {
  std::map<PoolPlacement, Span> spans;
  for (const NodeRank& one : ranks) {
    if (!one.is_known) continue;
    const auto [span, is_first] = spans.try_emplace(one.placement, Span{one.rank, one.rank});
    span->second.low = std::min(span->second.low, one.rank);
    span->second.high = std::max(span->second.high, one.rank);
  }
  std::vector<int> scores;
  scores.reserve(ranks.size());
  for (const NodeRank& one : ranks) {
    scores.push_back(one.is_known ? ScoreIn(spans.at(one.placement), one.rank) : 0);
  }
  return scores;
}

}  // namespace grus
