// SPDX-License-Identifier: Apache-2.0
// Whether the rules for ElasticHorovodJobs ask enough, and not too much.
#pragma once

#include <string>
#include <vector>

namespace grus::testing {

// With the slack that a manager needs without faults (CheckRules()).
std::vector<std::string> CheckElasticRules(int& asked);

}  // namespace grus::testing
