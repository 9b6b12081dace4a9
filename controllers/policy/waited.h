// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "clientlib/base/error.h"
#include "clientlib/model/time.h"

namespace grus {

// A scheduler decides within seconds; behind a long queue, within minutes. If it says nothing of a pod for this long,
// there is no scheduler, or foreign gates keep the pod from it.
inline constexpr kube::Duration kLongestDecision = std::chrono::minutes(5);

// Whether a past moment lies further ahead than the clocks of two machines can differ.
inline bool IsAhead(const kube::Time& now, const kube::Time& moment) {
  return moment.value - now.value > std::chrono::minutes(1);
}

// How long something has waited, for waits of minutes at most. A moment far ahead was noted before the clock was set
// back: it counts as long ago, so that nobody waits for it to come again.
inline kube::Duration Waited(const kube::Time& now, const kube::Time& since) {
  if (IsAhead(now, since)) return std::chrono::hours(24);
  return std::max(now.value - since.value, kube::Duration::zero());
}

inline std::int64_t UnixSeconds(const kube::Time& time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.value.time_since_epoch()).count();
}
inline kube::Time AtUnixSeconds(std::int64_t seconds) {
  return {std::chrono::system_clock::time_point(std::chrono::seconds(seconds))};
}

}  // namespace grus
