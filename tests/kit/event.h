// SPDX-License-Identifier: Apache-2.0
// Something that happens once, and that threads wait for instead of sleeping.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace kube::testing {

class Event {
 public:
  void Set() {
    // Notifies under the lock: who has waited may destroy this at once.
    std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }

  // False if it did not happen in time: far longer than any test needs.
  [[nodiscard]] bool Wait(std::chrono::seconds limit = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return is_set_; });
  }

 private:
  std::mutex mutex_;  // Guards is_set_.
  std::condition_variable changed_;
  bool is_set_ = false;
};

}  // namespace kube::testing
