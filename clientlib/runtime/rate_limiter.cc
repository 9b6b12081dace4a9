// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/rate_limiter.h"

#include <algorithm>

namespace kube {

RateLimiter::RateLimiter(const Clock& clock, RateLimits limits, std::uint64_t seed)
    : clock_(clock), limits_(limits), random_(seed), tokens_(limits.bucket_size), filled_at_(clock.Now()) {}

Duration RateLimiter::When(const ObjectKey& key) {
  std::lock_guard lock(mutex_);
  int& failures = failures_[key];
  Duration delay = ExponentialDelay(limits_.per_key, failures);
  if (failures < 1000) ++failures;
  const double u = std::uniform_real_distribution<double>(0.0, 1.0)(random_);
  delay += Duration(static_cast<Duration::rep>(static_cast<double>(delay.count()) * limits_.per_key.jitter * u));

  const TimePoint now = clock_.Now();
  const double passed = std::chrono::duration<double>(now - filled_at_).count();
  tokens_ = std::min(limits_.bucket_size, tokens_ + passed * limits_.bucket_per_second);
  filled_at_ = now;
  tokens_ -= 1;
  if (tokens_ < 0) {
    const std::chrono::duration<double> owed(-tokens_ / limits_.bucket_per_second);
    delay = std::max(delay, std::chrono::duration_cast<Duration>(owed));
  }
  return delay;
}

void RateLimiter::Forget(const ObjectKey& key) {
  std::lock_guard lock(mutex_);
  failures_.erase(key);
}

int RateLimiter::Failures(const ObjectKey& key) const {
  std::lock_guard lock(mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

}  // namespace kube
