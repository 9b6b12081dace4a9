// SPDX-License-Identifier: Apache-2.0
// Lives of gangs: they fit or wait, lose members and nodes, contend, and their users change their minds.
#pragma once

#include "tests/campaign/gang_stories.h"

namespace grus::testing {

std::vector<GangStory> GangLives();

}  // namespace grus::testing
