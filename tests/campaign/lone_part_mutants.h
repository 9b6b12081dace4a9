// SPDX-License-Identifier: Apache-2.0
// Whether the rules for lone pods with parts of GPUs ask enough, and not too much.
#pragma once

#include <string>
#include <vector>

namespace grus::testing {

std::vector<std::string> CheckLonePartRules(int& asked);  // CheckRules().

}  // namespace grus::testing
