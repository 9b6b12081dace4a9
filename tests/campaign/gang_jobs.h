// SPDX-License-Identifier: Apache-2.0
// Gangs whose members are made by Jobs, and gangs that get a replacement late.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

std::vector<GangStory> GangsOfJobs();

}  // namespace grus::testing
