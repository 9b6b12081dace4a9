// SPDX-License-Identifier: Apache-2.0
// Gangs in queues and pools: each pool has its reservation and its placement, and a queue limits how long they run.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

std::vector<GangStory> GangQueues();

}  // namespace grus::testing
