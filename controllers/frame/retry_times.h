// SPDX-License-Identifier: Apache-2.0
// When reconcilers look again, and how long changes wait for others. A time that only one of them has a reason for
// stands with it.
#pragma once

#include <chrono>

#include "clientlib/base/error.h"

namespace grus {

// A look at everything even if no event came: what a lost event would have left is found.
inline constexpr kube::Duration kSafetyResync = std::chrono::hours(1);
// For a cache to see our own write. The event that brings it wakes the key; this is for a watch that is slow, and costs
// no request.
inline constexpr kube::Duration kCacheLag = std::chrono::milliseconds(200);

// What people watch is told at once, and, when very many change at the same time, after this long.
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
