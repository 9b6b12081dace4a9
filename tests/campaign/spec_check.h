// SPDX-License-Identifier: Apache-2.0
// One plan of edits, played and judged.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/campaign/spec_compare.h"
#include "tests/campaign/spec_run.h"

namespace grus::testing {

// Fresh deploys that were played already. Thread-safe.
class FreshDeploys {
 public:
  // At rest. `complaints`: what was wrong with it, if anything.
  struct Deploy {
    Snapshot snapshot;
    std::vector<std::string> complaints;
  };
  std::shared_ptr<const Deploy> Of(const SpecBase& base, const Json& job);

 private:
  std::mutex mutex_;  // Guards deploys_.
  std::map<std::string, std::shared_ptr<const Deploy>> deploys_;
};

struct SpecVerdict {
  int operations = 0, refused = 0, restarts = 0;
  std::vector<std::string> wrong;
};

SpecVerdict CheckPlan(const SpecPlan& plan, FreshDeploys& fresh);

}  // namespace grus::testing
