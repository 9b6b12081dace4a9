// SPDX-License-Identifier: Apache-2.0
// What a cluster looks like in the end, as text that is equal for equal ends. Pure functions.
#pragma once

#include <map>
#include <string>

#include "clientlib/testing/faults/workload.h"

namespace kube::testing {

// All objects but events and leases: "RESOURCE NAMESPACE/NAME" -> masked JSON, members sorted. UIDs, resource versions,
// generations, times, IP addresses and managedFields are taken out. Objects of which Workload::NameOf() says the same
// are joined.
std::map<std::string, std::string> EndState(const World& world, const Workload& workload);
}  // namespace kube::testing
