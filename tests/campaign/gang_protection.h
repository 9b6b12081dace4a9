// SPDX-License-Identifier: Apache-2.0
// How the places of a gang are protected, by nominations or pins, while outsiders, schedulers and nodes come and go.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

std::vector<GangStory> GangProtection();

}  // namespace grus::testing
