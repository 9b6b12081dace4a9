// SPDX-License-Identifier: Apache-2.0
// Whether the rules for gangs ask enough, and not too much.
#pragma once

#include <string>
#include <vector>

namespace grus::testing {

// Asks of each story, without faults, that it keeps the rules with the slack that a manager needs without faults, and
// of each of some wrong ways to start a gang, that it is found. Returns what is not so, and in `asked` how many it
// asked.
std::vector<std::string> CheckGangRules(int& asked);

}  // namespace grus::testing
