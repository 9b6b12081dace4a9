// SPDX-License-Identifier: Apache-2.0
// Whose end a pod waits for: the victims that a scheduler was told would make room for it.
//
// The scheduler hears of their end, and tries the pod again, perhaps before grus has heard of it. Refused there, the
// pod would end others as well, though it has its room already. Each replica remembers its own answers. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/model/core_v1.h"
#include "controllers/extender/scheduler_call.h"

namespace grus {

class AwaitedVictims {
 public:
  // Whether the pod would have room on the node without these pods.
  using IsEnough = std::function<bool(const std::string& node, const std::vector<std::string>& uids)>;

  explicit AwaitedVictims(const kube::Clock& clock) : clock_(clock) {}

  void Note(const kube::Pod& pod, const std::map<std::string, PreemptCall::Victims>& victims);  // What is answered.
  // The victims on the node to which the pod was nominated are enough, once they are known to have ended. That is
  // waited for at most ten seconds from the first time it was asked: then something else is missing.
  bool AreEnough(const kube::Pod& pod, const IsEnough& is_enough);
  void Forget(const kube::Pod& pod);

 private:
  struct Awaited {
    std::map<std::string, std::vector<std::string>> uids = {};  // By node.
    std::size_t count = 0;                                      // Of them.
    std::string node = {};                                      // To which it was last nominated.
    std::uint64_t order = 0;                                    // The smallest is forgotten first.
    std::optional<kube::TimePoint> since = std::nullopt;        // When it was first asked.
  };

  using Entries = std::map<std::string, Awaited>;
  void Erase(Entries::iterator one);  // REQUIRES: mutex_; end() is nobody.

  const kube::Clock& clock_;
  std::mutex mutex_;       // Guards what follows.
  Entries by_pod_;         // By UID.
  std::size_t count_ = 0;  // Of all their victims.
  std::uint64_t orders_ = 0;
};

}  // namespace grus
