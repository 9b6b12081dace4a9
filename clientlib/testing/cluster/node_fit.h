// SPDX-License-Identifier: Apache-2.0
// Whether a pod fits on a node, as the default scheduler's filters see it. Pure functions.
//
// Lacks: pod affinity and anti-affinity, topology spread, host ports, volumes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/json.h"

namespace kube::testing {

using Amounts = std::map<std::string, std::int64_t, std::less<>>;  // By resource, in thousandths.

// What the pod's containers ask for, also at its start by init containers, and "pods": 1.
Amounts RequestsOf(const Json& pod);
Amounts AllocatableOf(const Json& node);
void Add(Amounts& to, const Amounts& what, int sign = 1);

// The toleration of the pod that lets it live with `taint`; null if there is none.
const Json* TolerationOf(const Json& pod, const Json& taint);

struct Misfit {
  std::vector<std::string> reasons;  // In the scheduler's words; empty: it fits.
  bool is_final = false;             // Would not fit either if all other pods went.
};
// `used`: by the pods that are on the node.
Misfit FitOf(const Json& pod, const Amounts& requests, const Json& node, const Amounts& allocatable,
             const Amounts& used);

// "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. ..." REQUIRES: none fits.
std::string UnschedulableMessage(const std::vector<Misfit>& nodes);

}  // namespace kube::testing
