// SPDX-License-Identifier: Apache-2.0
// Bodies that no scheduler sends: an extender refuses each, and nothing changes.
#pragma once

#include <random>
#include <string>

namespace grus::testing {

struct HostileCall {
  std::string verb, body;
};

// `filter` and `bind`: right bodies, to be cut, or changed. Empty: there were none yet.
HostileCall DrawHostileCall(std::mt19937_64& random, const std::string& filter, const std::string& bind);

}  // namespace grus::testing
