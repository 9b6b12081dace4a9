// SPDX-License-Identifier: Apache-2.0
// Edits of every field of a live job, from several places it may be in: each edit must bring it to where a fresh deploy
// of the edited spec is, and undoing it to where it was.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"

namespace grus::testing {

struct SpecCampaignOptions {
  int operations = 1500;   // At least: all single edits and their undoing, then chains by chance.
  std::uint64_t seed = 1;  // Of the chains.
  int threads = 0;         // 0: one for each core.
};

struct SpecCampaignReport {
  int plans = 0, failed = 0;
  int operations = 0;                 // Edits and undoings that reached a live job.
  int refused = 0;                    // Of these, by the API server; nothing changed.
  int skipped = 0;                    // Edits that break a rule in CEL, which the fake server does not evaluate.
  int restarts = 0;                   // Looks at a job after its pods, older than their templates, were made again.
  std::string table;                  // By field.
  std::vector<std::string> failures;  // A plan that ReplaySpec() plays again, then what was wrong, indented.
  double seconds = 0;
};

// `progress` is called now and then with a line, one at a time.
SpecCampaignReport RunSpecCampaign(const SpecCampaignOptions& options,
                                   const std::function<void(const std::string&)>& progress);

// What is wrong with one plan, "base=running seed=1 spec.workersSpec.maxReplicas=8"; empty: nothing.
kube::Result<std::vector<std::string>> ReplaySpec(std::string_view plan);

}  // namespace grus::testing
