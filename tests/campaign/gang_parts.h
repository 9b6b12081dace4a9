// SPDX-License-Identifier: Apache-2.0
// Gangs whose members ask for parts of GPUs.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

std::vector<GangStory> GangsOfParts();

}  // namespace grus::testing
