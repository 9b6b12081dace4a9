// SPDX-License-Identifier: Apache-2.0
// What a gang still needs of the ledger, which member gets which place, and since when the gang has looked for its
// nodes. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <unordered_set>
#include <vector>

#include "controllers/gang/gang_view.h"

namespace grus {

// Which unbound member gets which place: first the place on the node of its pin or nomination, then in order.
struct Assignment {
  const Member* member;  // Points into the view.
  Place place;
};
std::vector<Assignment> Assign(const GangView& view);
std::unordered_set<const Member*> MembersOf(const std::vector<Assignment>& assigned);

// The gang came together and was not rolled back since: lost members are replaced one by one.
bool IsReplacing(const GangView& view, const Tally& tally);
// How many members the gang needs to go on. A running gang needs no more than the minimum it started with.
int MinimumToRun(const GangView& view, const Tally& tally);
// Whether the time of the next try is still to come: a try of the whole gang below its minimum, else of its extras.
bool IsBackingOff(const GangView& view, const Tally& tally);
// The wait before the next try.
std::chrono::seconds BackoffAfter(int attempts);

// How long a gang may stay below its minimum once its gates are lifted.
std::chrono::seconds ScheduleTimeout(const api::PodGroup& group);
// When the time limit of a gang below its minimum began; nullopt: it has not. A time far ahead of our clock, from
// another leader or from before our clock was set back, is replaced by the status's start time, or by now.
std::optional<kube::Time> TimeLimitStart(const GangView& view, const Tally& tally);

// What to ask the ledger for; nullopt: nothing. Uses `view.places`, but nothing that follows from the answer.
std::optional<GangDemand> NeedsOf(const GangView& view);

}  // namespace grus
