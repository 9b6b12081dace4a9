// SPDX-License-Identifier: Apache-2.0
// How much a change of a pod matters to its gang, and whose changes do besides. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "clientlib/model/pod.h"

namespace grus {

enum class GangNews {
  kNone,   // Nothing that the plan looks at.
  kMinor,  // A count in the status.
  kMajor,
};
// Either may be null: created, or gone.
GangNews NewsOf(const kube::Pod* before, const kube::Pod* after);

// "namespace/name" of the claims on which it depends where a member without a node can run. `kind`: the group's.
std::vector<std::string> ClaimsAwaitedBy(const kube::Kind& kind, const kube::Pod& pod);

}  // namespace grus
