// SPDX-License-Identifier: Apache-2.0
// When reconcilers look again, and how long changes wait for others. Times of only one reconciler stand with it.
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

// A pass over each object even if no event came: it repairs what a lost event left undone.
inline constexpr kube::Duration kSafetyResync = std::chrono::hours(1);
// For a cache to see our own write. The watch event wakes the key anyway; this is the fallback for a slow watch, and
// costs no request.
inline constexpr kube::Duration kCacheLag = std::chrono::milliseconds(200);

// For what people watch: written at once, or after this long at most when very many objects change together.
inline constexpr kube::Duration kSoonWait = std::chrono::milliseconds(400);
// For changes that decide nothing: they wait for others, so that one pass and one write of the status serve many.
inline constexpr kube::Duration kMinorChangeWait = std::chrono::seconds(3);
// For the message of a waiting object: it can change with every pod that comes or goes, and only people read it.
inline constexpr kube::Duration kSentenceWait = std::chrono::seconds(30);

// No event reports that a permission was granted, a foreign object deleted or an admission check changed. Some refusals
// end soon: when a webhook has restarted, for example.
inline constexpr kube::Duration kRefusedRetry = std::chrono::seconds(15);
// After a second refusal for the same reason: each try costs writes, and a user has to act.
inline constexpr kube::Duration kRefusedAgainRetry = std::chrono::minutes(5);

}  // namespace grus
