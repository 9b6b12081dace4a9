// SPDX-License-Identifier: Apache-2.0
// What a gang still needs of the ledger, and which of its members a place is for. Pure functions.
#pragma once

#include <optional>
#include <unordered_set>
#include <vector>

#include "controllers/gang/gang_view.h"

namespace grus {

inline constexpr std::chrono::seconds kLongestGangBackoff{600};

// Which place is for which unbound member: that of its own pin or nomination first, then in order.
struct Assignment {
  const Member* member;  // Points into the view.
  Place place;
};
std::vector<Assignment> Assign(const GangView& view);
std::unordered_set<const Member*> MembersOf(const std::vector<Assignment>& assigned);

// It came together once and was not rolled back since: what it lost is replaced member by member.
bool IsReplacing(const GangView& view, const Tally& tally);
// How many it must have to go on: of one that runs, not more than it came together with.
int MinimumToRun(const GangView& view, const Tally& tally);
// Rolled back, and not to be tried again yet: all of it below its minimum, its extras while it runs.
bool IsBackingOff(const GangView& view, const Tally& tally);

// What the ledger is to be asked for; nullopt: nothing. Uses `view.places`, not what follows from the answer.
std::optional<GangDemand> NeedsOf(const GangView& view);

}  // namespace grus
