// SPDX-License-Identifier: Apache-2.0
// What queues must know of a gang, and how it gives its nodes back. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "controllers/gang/gang_plan.h"

namespace grus {

// We lifted the member's gate, and its controller makes it again, gated, if we delete it. Others are never deleted.
bool ComesBackGated(const Member& member);
// The members to delete when the gang gives its nodes back, in this order.
std::vector<const Member*> RollBackList(const GangView& view);
// Adds those that were given up and are still there: the manager that did it died before it deleted them.
void AddGivenUp(const GangView& view, std::vector<const Member*>& end);

Holder HolderOf(const GangView& view);
// What is wrong with the group's label for its class; empty: nothing.
std::string ClassProblem(const api::PodGroup& group);

// Tells the members of `ending` the deadline of the notice, and takes it back from all others. A member that knows
// needs no note.
std::vector<DeadlineNote> DeadlineNotes(const GangView& view, const std::vector<const Member*>& ending);
// For the condition, before and after the deadline. REQUIRES: view.yield.
std::string PreemptingMessage(const GangView& view, const std::vector<const Member*>& ending);
std::string PreemptedMessage(const GangView& view, const std::vector<const Member*>& ended);

}  // namespace grus
