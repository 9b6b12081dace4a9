// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "clientlib/base/error.h"
#include "clientlib/model/time.h"

namespace grus {

// How long something has waited, for waits of minutes at most. A moment that lies far ahead was noted before the clock
// was set back: it counts as long ago, for nobody would wait for it to come again.
inline kube::Duration Waited(const kube::Time& now, const kube::Time& since) {
  constexpr kube::Duration kSkew = std::chrono::minutes(1);  // Two machines may differ by so much.
  const kube::Duration waited = now.value - since.value;
  if (waited < -kSkew) return std::chrono::hours(24);
  return std::max(waited, kube::Duration::zero());
}

}  // namespace grus
