// SPDX-License-Identifier: Apache-2.0
// Which changes are worth a pass. Pure functions, for handlers of informers.
#pragma once

#include "clientlib/cache/store.h"

namespace kube {

// More than a change of status, labels or annotations: the object is new, gone, another one of the same name
// (its UID differs, whatever its generation), or about to go; or its generation moved, or its kind has none
// (rule Q9). Who filters by it also needs a periodic pass (rule Q10): nobody tells of a status that somebody
// wiped.
bool IsSpecChange(const Change& change);

}  // namespace kube
