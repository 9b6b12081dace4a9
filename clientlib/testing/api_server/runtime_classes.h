// SPDX-License-Identifier: Apache-2.0
// What the admission plugin RuntimeClass does to a new pod: a pod that names a class gets its overhead, node selector
// and tolerations. Only a class may set overhead.
#pragma once

#include <string>

#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

// Takes the spec of a pod. "pod rejected: RuntimeClass "x" not found"; empty: the class is applied.
std::string ApplyRuntimeClass(Json& spec, Storage& storage);
// Refuses overhead that does not come from the class. Empty: there is none.
std::string OverheadViolation(const Json& spec, Storage& storage);

}  // namespace kube::testing
