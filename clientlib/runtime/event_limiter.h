// SPDX-License-Identifier: Apache-2.0
// Limits the events written (rule V2): about each object a burst of 25, then one more every five minutes, as client-go;
// in each namespace a burst of 2,500, then ten a second, so that one that has too many keeps those of others waiting
// for its burst only. Who has a full burst again is not remembered. Beyond 4096 objects or namespaces the least
// recently used one is forgotten, and has a full burst again. Not thread-safe.
#pragma once

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube {

class EventLimiter {
 public:
  struct Limit {
    int burst;
    Duration refill;  // The time in which one more is allowed.
  };
  static constexpr Limit kOfObject{25, std::chrono::seconds(300)};
  static constexpr Limit kOfNamespace{2500, std::chrono::milliseconds(100)};
  static constexpr std::size_t kMaxKeys = 4096;

  explicit EventLimiter(Limit limit) : limit_(limit) {}

  // True if one more event may be written about what `key` names. REQUIRES: `now` never goes back.
  bool Take(const std::string& key, TimePoint now);

  std::size_t size() const { return recent_.size(); }  // How many are remembered.

 private:
  void ForgetLast();
  struct Bucket {
    std::string key;
    TimePoint full_at;  // When the burst is complete again.
  };
  const Limit limit_;
  std::list<Bucket> recent_;                                                  // Most recent first.
  std::unordered_map<std::string_view, std::list<Bucket>::iterator> by_key_;  // Keys live in `recent_`.
};

}  // namespace kube
