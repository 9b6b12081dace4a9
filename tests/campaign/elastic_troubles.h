// SPDX-License-Identifier: Apache-2.0
// ElasticHorovodJobs whose pods do not do what they should: they cannot start, are refused, crash, fall silent, are all
// lost at once, or leave slowly.
#pragma once

#include <vector>

#include "tests/campaign/elastic_stories.h"

namespace grus::testing {

std::vector<ElasticStory> ElasticTroubles();

}  // namespace grus::testing
