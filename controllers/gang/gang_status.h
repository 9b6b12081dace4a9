// SPDX-License-Identifier: Apache-2.0
// What a PodGroup says of itself: phase, counts, conditions, and one sentence. Pure functions.
#pragma once

#include <string>

#include "controllers/gang/gang_plan.h"

namespace grus {

inline constexpr std::chrono::seconds kDefaultScheduleTimeout{60};
std::chrono::seconds ScheduleTimeout(const api::PodGroup& group);

// The old status with what does not depend on the plan: counts, owner, generation.
api::PodGroupStatus BaseGangStatus(const GangView& view);

// Sets phase and conditions. The three of kstatus are said together: Ready, Reconciling, Stalled.
void SetGangReason(api::PodGroupStatus& status, const GangView& view, const std::string& phase, GangReason reason,
                   const std::string& message);

// The reason of the Ready condition as it stands in the cluster; empty: none yet.
std::string GangReasonBefore(const GangView& view);

// A change whose write can wait a little, for company: counts alone, the phase on the way to Running, or lost members.
bool IsMinorGangChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after);

// Of these: a gang goes on waiting, for something that reads a little differently.
bool IsSentenceChange(const api::PodGroupStatus& before, const api::PodGroupStatus& after);

// The phases of scheduling.sigs.k8s.io: PreScheduling and Scheduled are told apart there.
std::string LegacyPhase(const api::PodGroupStatus& status, int min_member);

}  // namespace grus
