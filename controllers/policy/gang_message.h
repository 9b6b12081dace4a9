// SPDX-License-Identifier: Apache-2.0
// Why a gang or job waits, in one sentence for its user: who holds what is missing, and when it may start, if known.
#pragma once

#include <string>
#include <string_view>

#include "controllers/policy/gang_planner.h"

namespace grus {

// What the user calls most of its pods, and any of its pods; and the field that says how many start together, empty if
// lowering it cannot help.
struct PendingWords {
  std::string_view member = "member", pod = "member", minimum = "minMember";
};

// What the gang needs, and WhyNoRoom(). REQUIRES: a gang that waits.
std::string WhyPending(const GangDemand& demand, const GangStanding& standing, const PendingWords& words = {});
// How many of its pods have room, who holds or keeps the rest, and until when; or why there can never be room.
std::string WhyNoRoom(const GangDemand& demand, const GangStanding& standing, const PendingWords& words);

}  // namespace grus
