// SPDX-License-Identifier: Apache-2.0
// Random rounds. The same seed, kind and number give the same round.
#pragma once

#include <cstdint>
#include <string>

#include "bench/gang_round.h"
#include "bench/race_kinds.h"

namespace bench {

// `free`: on the nodes, before the round.
RoundPlan DrawRound(std::uint64_t seed, RaceKind kind, int round, const FreeUnits& free);
// Without nominations nothing shows the moment before the gates are lifted; the first lift is the nearest.
void DropNominations(RoundPlan& plan);
std::string Describe(const RoundPlan& plan);

}  // namespace bench
