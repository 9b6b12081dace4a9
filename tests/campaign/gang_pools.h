// SPDX-License-Identifier: Apache-2.0
// Gangs in pools of nodes: each pool has its reservation, and its placement.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

std::vector<GangStory> GangPools();

}  // namespace grus::testing
