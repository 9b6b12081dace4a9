// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/rule_check.h"

#include <algorithm>

#include "clientlib/testing/faults/fault_run.h"

namespace grus::testing {

std::vector<std::string> CheckRules(const kube::testing::Workloads& stories, const std::vector<Mutant>& mutants,
                                    int& asked) {
  std::vector<std::string> wrong;
  constexpr std::uint64_t kSeeds = 40;  // Of chance that a mutant may need.
  for (const auto& story : stories) {
    ++asked;
    for (const std::string& complaint : Run(*story, {std::string(story->name()), 1, {}}).complaints) {
      wrong.push_back(std::string(story->name()) + " without faults: " + complaint);
    }
  }
  for (const Mutant& mutant : mutants) {
    ++asked;
    const std::string name(mutant.workload->name());
    const auto is_found = [&](std::uint64_t seed) {
      const std::vector<std::string> complaints = Run(*mutant.workload, {name, seed, {}}).complaints;
      return std::any_of(complaints.begin(), complaints.end(),
                         [&](const std::string& text) { return text.find(mutant.complaint) != std::string::npos; });
    };
    bool was_found = false;
    for (std::uint64_t seed = 1; seed <= kSeeds && !was_found; ++seed) was_found = is_found(seed);
    if (!was_found) wrong.push_back(name + " is wrong, but nobody says that it \"" + mutant.complaint + "\"");
  }
  return wrong;
}

}  // namespace grus::testing
