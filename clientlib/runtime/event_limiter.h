// SPDX-License-Identifier: Apache-2.0
// Limits the events written about each object: a burst of 25, then one more every five minutes (rule V2, client-go's
// numbers). Beyond 4096 objects the least recently used one is forgotten, and has a full burst again. Not thread-safe.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "clientlib/base/clock.h"

namespace kube {

class EventLimiter {
 public:
  static constexpr int kBurst = 25;
  static constexpr std::chrono::seconds kRefill{300};
  static constexpr std::size_t kMaxObjects = 4096;

  // True if one more event may be written about the object of `key`. REQUIRES: `now` never goes back.
  bool Take(const std::string& key, TimePoint now);

 private:
  struct Bucket {
    std::string key;
    TimePoint full_at;  // When the burst is complete again.
  };
  std::list<Bucket> recent_;                                                  // Most recent first.
  std::unordered_map<std::string_view, std::list<Bucket>::iterator> by_key_;  // Keys live in `recent_`.
};

}  // namespace kube
