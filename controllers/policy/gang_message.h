// SPDX-License-Identifier: Apache-2.0
// Why a gang waits, in one sentence for its user.
#pragma once

#include <string>

#include "controllers/policy/gang_planner.h"

namespace grus {

// REQUIRES: a gang that waits. `min_member` is what its user wrote.
std::string WhyPending(const GangDemand& demand, const GangStanding& standing, int min_member);

}  // namespace grus
