// SPDX-License-Identifier: Apache-2.0
// Exponential delay with jitter. A value; not thread-safe.
#pragma once

#include <cstdint>
#include <random>

#include "clientlib/base/error.h"

namespace kube {

struct BackoffPolicy {
  Duration base;
  Duration cap;
  double factor = 2.0;
  double jitter = 0.0;  // A delay d becomes d * (1 + jitter * u), u uniform in [0, 1).
};

class Backoff {
 public:
  explicit Backoff(BackoffPolicy policy, std::uint64_t seed = std::random_device{}())
      : policy_(policy), random_(seed) {}

  // The delay before the next try; each call grows it.
  Duration Next();
  void Reset() { tries_ = 0; }
  int tries() const { return tries_; }

 private:
  BackoffPolicy policy_;
  std::minstd_rand random_;
  int tries_ = 0;
};

// The `tries`-th delay (from 0) without jitter. Never overflows: it stops at `policy.cap`.
Duration ExponentialDelay(const BackoffPolicy& policy, int tries);

}  // namespace kube
