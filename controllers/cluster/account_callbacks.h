// SPDX-License-Identifier: Apache-2.0
// Whom the account tells of changes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace grus {

// REQUIRES: register before the informers start. Callbacks run without the lock of the account, on the thread that made
// the change.
class AccountCallbacks {
 public:
  // Called once, before anything is planned: it calls AddPlace() for what an earlier process promised, PutHolder() for
  // all that runs, and Enqueue() for what that process began.
  void BeforePlanning(std::function<void()> callback) { before_planning_.push_back(std::move(callback)); }
  void OnFreed(std::function<void()> callback) { on_freed_.push_back(std::move(callback)); }
  // Gets the key of a gang whose standing changed. Urgent: the gang was placed, got the reservation or lost places, its
  // device claims changed, or competition threatens its start. Otherwise only its status text is stale.
  void OnStanding(std::function<void(const std::string& gang, bool is_urgent)> callback) {
    on_standing_.push_back(std::move(callback));
  }
  // Called whenever what Queues() says may have changed: often.
  void OnQueues(std::function<void()> callback) { on_queues_.push_back(std::move(callback)); }
  // Gets the owner whose YieldOf() or TargetOf() has changed.
  void OnYield(std::function<void(const std::string& owner)> callback) { on_yield_.push_back(std::move(callback)); }

 protected:
  // Whom to tell of a change.
  struct Effects {
    std::vector<std::string> urgent = {}, stale = {};  // Gangs, for OnStanding().
    bool has_freed = false;                            // Room, for OnFreed().
    bool has_used = false;                             // GPUs are used or waited for otherwise, for OnQueues().
    std::vector<std::string> yielding = {};            // Owners, for OnYield().
  };
  void Tell(const Effects& effects) const;
  void TellBeforePlanning() const {
    for (const auto& prepare : before_planning_) prepare();
  }

 private:
  std::vector<std::function<void()>> before_planning_, on_freed_, on_queues_;
  std::vector<std::function<void(const std::string&, bool)>> on_standing_;
  std::vector<std::function<void(const std::string&)>> on_yield_;
};

}  // namespace grus
