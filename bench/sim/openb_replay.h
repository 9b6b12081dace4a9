// SPDX-License-Identifier: Apache-2.0
// Replays a trace of openb by the rule of its published runs: the pods arrive in random order until they have asked
// for 130 % of the GPUs; each is placed at once or dropped; nobody departs.
//
// Everything random comes from the seed. The order of arrival depends on nothing else, so policies are compared on the
// same arrivals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/sim/openb_policies.h"
#include "bench/sim/openb_trace.h"

namespace grus {

// Pods that arrive, as indices into the trace: its pods in random order, followed by random ones of them, as long as
// they ask for no more than 130 % of the cluster's GPUs.
std::vector<std::size_t> OpenbArrivals(const OpenbTrace& trace, std::uint64_t seed);

struct OpenbPlacement {
  std::size_t pod = 0, node = 0;  // Indices into the trace.
  std::vector<int> devices;
};

struct OpenbOutcome {
  std::size_t arrived = 0;
  std::vector<OpenbPlacement> placed;  // In the order of arrival; all others are dropped.
  // Of the cluster's GPUs, once pods that ask for 100 % and 130 % of them have arrived.
  double allocated_percent_100 = 0, allocated_percent_130 = 0;
};

// The nodes by the names that the seed draws for them, as indices into the trace.
std::vector<std::size_t> OpenbNodeOrder(const OpenbTrace& trace, std::uint64_t seed);

// Lets the pods arrive; `place` is asked once for each, and answers nullopt if it has no room.
OpenbOutcome PlaceArrivals(const OpenbTrace& trace, std::uint64_t seed,
                           const std::function<std::optional<OpenbPlacement>(std::size_t pod)>& place);

OpenbOutcome ReplayOpenb(const OpenbTrace& trace, const OpenbPolicy& policy, Ties ties, std::uint64_t seed);

}  // namespace grus
