// SPDX-License-Identifier: Apache-2.0
// Whether rules ask enough, and not too much.
#pragma once

#include <string>
#include <vector>

#include "clientlib/testing/faults/campaign.h"

namespace grus::testing {

// A wrong way to do things, and what is said about it.
struct Mutant {
  kube::testing::Workloads::value_type workload;
  const char* complaint;
};

// Asks of each story, without faults, that it keeps its rules, and of each mutant that it is found. Returns what is not
// so, and adds to `asked` how many it asked.
std::vector<std::string> CheckRules(const kube::testing::Workloads& stories, const std::vector<Mutant>& mutants,
                                    int& asked);

}  // namespace grus::testing
