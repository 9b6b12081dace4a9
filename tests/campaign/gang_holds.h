// SPDX-License-Identifier: Apache-2.0
// How the nodes of a gang are held for it, by nominations or pins, while outsiders, schedulers and nodes come and go.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

std::vector<GangStory> GangHolds();

}  // namespace grus::testing
