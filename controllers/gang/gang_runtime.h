// SPDX-License-Identifier: Apache-2.0
// How long a gang has run, and may run: the spec.maximumRuntimeSeconds of its queue. Pure.
//
// A gang runs while a member has a node. All runs of the same owners count together, so that a gang that was preempted
// goes on where it stopped. Only a gang whose members all come back gated can be ended: others have no limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "controllers/gang/gang_view.h"

namespace grus {

// Keeps in the status for how long the gang has run, while its queue limits that.
void NoteRun(const GangView& view, api::PodGroupStatus& status);
// nullopt: it may take any time. Zero or less: it must end now.
std::optional<kube::Duration> TimeUntilDeadline(const GangView& view);
// It must end now, or was ended so.
bool IsOverdue(const GangView& view);
std::string OverdueMessage(const GangView& view);  // REQUIRES: view.runtime_limit.
// How many seconds it may run once it starts, by its queue and its own expectedRuntimeSeconds. The same while it waits.
std::optional<std::int64_t> LongestRun(const GangView& view);
// When it ends at the latest, by both, in Unix seconds; nullopt: not known.
std::optional<std::int64_t> LatestEnd(const GangView& view);

}  // namespace grus
