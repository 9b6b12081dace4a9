// SPDX-License-Identifier: Apache-2.0
// What the admission plugin RuntimeClass does to a new pod: one that names a class gets the overhead of that class, and
// goes where its nodes are. Overhead comes from a class alone.
#pragma once

#include <string>

#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

// Takes the spec of a pod. "pod rejected: RuntimeClass "x" not found"; empty: the pod has all that its class says.
std::string ApplyRuntimeClass(Json& spec, Storage& storage);
// Of what was applied: overhead that no class has. Empty: there is none.
std::string OverheadViolation(const Json& spec, Storage& storage);

}  // namespace kube::testing
