// SPDX-License-Identifier: Apache-2.0
// What must hold of TrialJobs at every revision, whatever happens to the manager. A trial is known by its configuration
// as its job has it, not by its name.
#pragma once

#include <string>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

inline constexpr char kTrialJobs[] = "trialjobs.ai.centauruscloud.io";

struct TrialSetting {
  std::int64_t gpus = 0, batch_size = 0;
  friend auto operator<=>(const TrialSetting&, const TrialSetting&) = default;
};
TrialSetting SettingOf(const Json& trial);  // A job or a pod, whose command ends with the batch size.

// No configuration is tried again, unless its try was stopped; no two jobs of one are there at a time; and no job is
// made that the status does not tell of.
kube::testing::Invariant NoSettingTwice();

// spec.budget is kept, to within one poll, by what the pods hold; status.spent says the same in the end, is the sum of
// what the trials have spent at any time, and never becomes less.
//
// `lateness`: for how long faults may keep the manager from knowing, or from ending, what is held. It may cost that
// much more than the budget, and be said to; never less than what is held.
kube::testing::Invariant BudgetIsKept(kube::Duration lateness = {});

}  // namespace grus::testing
