// SPDX-License-Identifier: Apache-2.0
// Lives of ElasticHorovodJobs: how they start, are resized, lose what they run on, and end.
#pragma once

#include <vector>

#include "tests/campaign/elastic_stories.h"

namespace grus::testing {

std::vector<ElasticStory> ElasticLives();

}  // namespace grus::testing
