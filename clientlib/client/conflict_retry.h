// SPDX-License-Identifier: Apache-2.0
// Retries a write after a conflict with another writer. Thread-safe; blocks.
#pragma once

#include <functional>
#include <stop_token>

#include "clientlib/base/backoff.h"
#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"

namespace kube {

struct ConflictRetry {
  int tries = 5;
  BackoffPolicy wait{std::chrono::milliseconds(10), std::chrono::milliseconds(10), 1.0, 0.1};
};

// For objects with many writers.
inline constexpr ConflictRetry kContended{4,
                                          {std::chrono::milliseconds(10), std::chrono::milliseconds(1250), 5.0, 0.1}};

// Calls `attempt` until it returns anything but kConflict, at most `retry.tries` times. REQUIRES: each attempt reads
// the object again and computes its write from that (rule F5). In a reconciler prefer to return the error: the work
// queue tries again, from a fresh cache. Blocks.
Status RetryOnConflict(const Clock& clock, const std::function<Status()>& attempt, std::stop_token stop = {},
                       const ConflictRetry& retry = {});

}  // namespace kube
