// SPDX-License-Identifier: Apache-2.0
// A Job's podFailurePolicy (KEP-3329). Pure functions. Lacks FailIndex, which is for indexed jobs.
#pragma once

#include <string>

#include "clientlib/model/json.h"

namespace kube::testing {

struct FailureVerdict {
  enum class Action { kCount, kIgnore, kFailJob };
  Action action = Action::kCount;
  std::string message = {};  // Of the job's end, if it fails.
};

// What the first rule that matches says about a failed pod; kCount if there is none.
FailureVerdict JudgeFailure(const Json& job, const Json& failed_pod);

}  // namespace kube::testing
