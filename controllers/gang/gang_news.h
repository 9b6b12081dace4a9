// SPDX-License-Identifier: Apache-2.0
// How much a change of a pod matters to its gang. Pure functions.
#pragma once

#include "clientlib/model/pod.h"

namespace grus {

enum class GangNews {
  kNone,   // Nothing that the plan looks at.
  kMinor,  // A count in the status.
  kMajor,
};
// Either may be null: created, or gone.
GangNews NewsOf(const kube::Pod* before, const kube::Pod* after);

}  // namespace grus
