// SPDX-License-Identifier: Apache-2.0
// Jobs of two queues that share GPUs: who borrows, who yields, and that limits hold.
#pragma once

#include <vector>

#include "tests/campaign/elastic_stories.h"

namespace grus::testing {

std::vector<ElasticStory> ElasticQueues();

}  // namespace grus::testing
