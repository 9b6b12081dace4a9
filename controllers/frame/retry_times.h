// SPDX-License-Identifier: Apache-2.0
// When reconcilers look again, and how long changes wait for others. A time that only one of them has a reason for
// stands with it.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "clientlib/base/error.h"

namespace grus {

// Brings `look_again` forward to `delay`; nullopt: no reason to look again.
inline void LookAgain(std::optional<kube::Duration>& look_again, std::optional<kube::Duration> delay) {
  if (delay) look_again = std::min(look_again.value_or(*delay), *delay);
}

// A pass over each object even if no event came, which finds what a lost event left undone.
inline constexpr kube::Duration kSafetyResync = std::chrono::hours(1);
// For a cache to see our own write. The event that brings it wakes the key; this is for a watch that is slow, and costs
// no request.
inline constexpr kube::Duration kCacheLag = std::chrono::milliseconds(200);

// What people watch is written at once, but after this long when very many objects change at the same time.
inline constexpr kube::Duration kSoonWait = std::chrono::milliseconds(400);
// Changes that decide nothing wait this long for others: one pass, and one write of the status, for many.
inline constexpr kube::Duration kMinorChangeWait = std::chrono::seconds(3);
// The sentence of one that waits may change with every pod that comes or goes, and is read by people.
inline constexpr kube::Duration kSentenceWait = std::chrono::seconds(30);

// No event tells when a permission is given, a foreign object goes, or an admission check changes its mind. Some do at
// once: a webhook that is restarted.
inline constexpr kube::Duration kRefusedRetry = std::chrono::seconds(15);
// What was refused twice for the same reason: each try costs writes, and a user has to act.
inline constexpr kube::Duration kRefusedAgainRetry = std::chrono::minutes(5);

}  // namespace grus
