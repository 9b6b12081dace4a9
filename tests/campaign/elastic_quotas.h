// SPDX-License-Identifier: Apache-2.0
// ElasticHorovodJobs in a namespace with a ResourceQuota: they wait without keeping anything from others, run on what
// is admitted, and go on when it is more.
#pragma once

#include <vector>

#include "tests/campaign/elastic_stories.h"

namespace grus::testing {

std::vector<ElasticStory> ElasticQuotas();

}  // namespace grus::testing
