// SPDX-License-Identifier: Apache-2.0
// What a PodGroup says of itself: phase, counts, conditions, and one sentence. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "controllers/gang/gang_plan.h"

namespace grus {

// The old status with what does not depend on the plan: counts, owner, generation.
api::PodGroupStatus BaseGangStatus(const GangView& view);

// Sets phase and conditions. The three of kstatus are said together: Ready, Reconciling, Stalled.
void SetGangReason(api::PodGroupStatus& status, const GangView& view, const std::string& phase, GangReason reason,
                   const std::string& message);

// The type of the event for a gang that gets this reason; nullopt: it needs none.
std::optional<kube::EventType> EventOf(GangReason reason);

// The reason of the Ready condition; empty: it is not ours.
std::string GangReasonIn(const api::PodGroupStatus& status);

// Whether the write of a change may wait for others: counts alone, the phase on the way to Running, or lost members.
bool IsMinorGangChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after);

// Whether a minor change is one of the message alone: the gang still waits.
bool IsSentenceChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after);

// The phase of scheduling.sigs.k8s.io, which tells PreScheduling from Pending, and Scheduled from Scheduling.
std::string LegacyPhase(const api::PodGroupStatus& status, int min_member);

}  // namespace grus
