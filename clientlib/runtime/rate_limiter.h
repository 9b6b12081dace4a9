// SPDX-License-Identifier: Apache-2.0
// How long a failed key waits: exponential for each key, and a token bucket over all of them (rule Q3).
// Thread-safe.
#pragma once

#include <mutex>
#include <random>
#include <unordered_map>

#include "clientlib/base/backoff.h"
#include "clientlib/base/clock.h"
#include "clientlib/model/meta.h"

namespace kube {

struct RateLimits {
  BackoffPolicy per_key{std::chrono::milliseconds(5), std::chrono::seconds(1000), 2.0, 0.1};
  double bucket_per_second = 10;
  double bucket_size = 100;
};

class RateLimiter {
 public:
  RateLimiter(const Clock& clock, RateLimits limits, std::uint64_t seed);

  // The delay before the next try of `key`; counts one failure and takes one token.
  Duration When(const ObjectKey& key);
  void Forget(const ObjectKey& key);
  int Failures(const ObjectKey& key) const;

 private:
  const Clock& clock_;
  const RateLimits limits_;
  mutable std::mutex mutex_;  // Guards everything below.
  std::minstd_rand random_;
  std::unordered_map<ObjectKey, int> failures_;
  double tokens_;  // Below zero: that many are owed.
  TimePoint filled_at_;
};

}  // namespace kube
