// SPDX-License-Identifier: Apache-2.0
// A Job's podFailurePolicy (KEP-3329). Pure functions.
#pragma once

#include "clientlib/model/json.h"

namespace kube::testing {

enum class FailureAction { kCount, kIgnore, kFailJob };

// What the first rule that matches says about a failed pod; kCount if there is none.
FailureAction ActionFor(const Json& job, const Json& failed_pod);

}  // namespace kube::testing
