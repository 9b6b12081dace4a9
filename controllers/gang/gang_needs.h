// SPDX-License-Identifier: Apache-2.0
// What a gang still needs of the ledger, which of its members a place is for, and how long it has had for finding its
// nodes. Pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <unordered_set>
#include <vector>

#include "controllers/gang/gang_view.h"

namespace grus {

// Which place is for which unbound member: that of its own pin or nomination first, then in order.
struct Assignment {
  const Member* member;  // Points into the view.
  Place place;
};
std::vector<Assignment> Assign(const GangView& view);
std::unordered_set<const Member*> MembersOf(const std::vector<Assignment>& assigned);

// It came together once and was not rolled back since: what it lost is replaced member by member.
bool IsReplacing(const GangView& view, const Tally& tally);
// How many members it needs to go on; a gang that runs needs no more than it started with.
int MinimumToRun(const GangView& view, const Tally& tally);
// Whether the time of its next try is still to come: for all of it below its minimum, for its extras while it runs.
bool IsBackingOff(const GangView& view, const Tally& tally);
// Until the next try.
std::chrono::seconds BackoffAfter(int attempts);

// How long it may stay below its minimum once it was let go.
std::chrono::seconds ScheduleTimeout(const api::PodGroup& group);
// When the time of a gang below its minimum began to run; nullopt: it does not run. What a clock far ahead of ours has
// stamped, another leader's or our own before it was set back, counts from when the status first said so.
std::optional<kube::Time> StartOf(const GangView& view, const Tally& tally);

// What the ledger is to be asked for; nullopt: nothing. Uses `view.places`, not what follows from the answer.
std::optional<GangDemand> NeedsOf(const GangView& view);

}  // namespace grus
