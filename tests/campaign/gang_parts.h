// SPDX-License-Identifier: Apache-2.0
// Gangs whose members ask for parts of GPUs.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

// A gang of one StatefulSet, whose pods ask for so many thousandths each.
void SubmitParts(World& world, const std::string& name, int replicas, int milli);

std::vector<GangStory> GangsOfParts();

}  // namespace grus::testing
