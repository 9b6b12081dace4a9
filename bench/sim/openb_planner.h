// SPDX-License-Identifier: Apache-2.0
// Replays a trace of openb, by the rule of OpenbReplay, through what grus-manager plans with: nodes and pods are in
// ClusterLedger, with each GPU by its name, and each pod waits as a gang of one until GangPlanner places it, or is
// dropped when a pass does not.
#pragma once

#include <cstdint>

#include "bench/sim/openb_replay.h"

namespace grus {

// The nodes are told to the ledger in an order drawn from the seed.
OpenbOutcome ReplayThroughPlanner(const OpenbTrace& trace, std::uint64_t seed);

}  // namespace grus
