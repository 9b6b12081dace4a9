// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/backoff.h"

#include <algorithm>
#include <cmath>

namespace kube {

Duration ExponentialDelay(const BackoffPolicy& policy, int tries) {
  if (policy.base <= Duration::zero()) return Duration::zero();  // Zero times infinity is NaN.
  const double delay = static_cast<double>(policy.base.count()) * std::pow(policy.factor, tries);
  const double cap = static_cast<double>(policy.cap.count());
  // Compared as doubles: for large `tries` the product is infinite, and a cast of that is undefined.
  return delay >= cap ? policy.cap : Duration(static_cast<Duration::rep>(delay));
}

Duration Backoff::Next() {
  const Duration delay = ExponentialDelay(policy_, tries_);
  if (tries_ < 1000) ++tries_;
  if (policy_.jitter <= 0) return delay;
  const double u = std::uniform_real_distribution<double>(0.0, 1.0)(random_);
  return Duration(static_cast<Duration::rep>(static_cast<double>(delay.count()) * (1.0 + policy_.jitter * u)));
}

}  // namespace kube
