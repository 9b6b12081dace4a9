// SPDX-License-Identifier: Apache-2.0
// What the admission plugin LimitRanger does to a new pod: containers without amounts get the defaults of their
// namespace's LimitRanges, and none may exceed their bounds.
//
// Lacks: ratios of limits to requests, claims, and the annotation that says which amounts were set.
#pragma once

#include <string>

#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

void SetDefaultResources(Json& pod, Storage& storage);
// "minimum cpu usage per Container is 100m, but request is 50m"; empty: all ranges admit the pod.
std::string LimitRangeViolation(const Json& pod, Storage& storage);

}  // namespace kube::testing
