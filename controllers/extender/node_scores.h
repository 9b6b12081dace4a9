// SPDX-License-Identifier: Apache-2.0
// From ranks to the scores that a scheduler reads from an extender. Pure.
#pragma once

#include <span>
#include <vector>

#include "controllers/cluster/pod_placer.h"

namespace grus {

inline constexpr int kHighestScore = 10;  // MaxExtenderPriority of kube-scheduler; it multiplies by the weight and 10.

// Nodes of one placement are compared with each other only. The best of them have kHighestScore, the worst 0, and only
// equals of the best have as much, so that the score decides; nodes of which nothing is known have 0. Where all are
// equal, all that are known have kHighestScore.
std::vector<int> ScoresOf(std::span<const NodeRank> ranks);

}  // namespace grus
