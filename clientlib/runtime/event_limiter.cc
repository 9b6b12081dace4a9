// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/event_limiter.h"

#include <algorithm>

namespace kube {

void EventLimiter::ForgetLast() {
  by_key_.erase(recent_.back().key);
  recent_.pop_back();
}

bool EventLimiter::Take(const std::string& key, TimePoint now) {
  while (!recent_.empty() && recent_.back().full_at <= now) ForgetLast();
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    if (recent_.size() >= kMaxKeys) ForgetLast();
    recent_.push_front({key, now + limit_.refill});
    by_key_.emplace(recent_.front().key, recent_.begin());
    return true;
  }
  recent_.splice(recent_.begin(), recent_, found->second);
  Bucket& bucket = recent_.front();
  const TimePoint full_at = std::max(bucket.full_at, now) + limit_.refill;
  if (full_at > now + limit_.burst * limit_.refill) return false;
  bucket.full_at = full_at;
  return true;
}

}  // namespace kube
