// SPDX-License-Identifier: Apache-2.0
// The end state of a cluster, as text that is equal for equal ends. Pure functions.
#pragma once

#include <map>
#include <string>

#include "clientlib/testing/faults/workload.h"

namespace kube::testing {

// All objects but events and leases: "RESOURCE NAMESPACE/NAME" -> masked JSON, members sorted. UIDs, resource versions,
// generations, times, IP addresses and managedFields are removed. Objects with the same Workload::NameOf() are joined.
std::map<std::string, std::string> EndState(const World& world, const Workload& workload);
}  // namespace kube::testing
