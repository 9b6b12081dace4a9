// SPDX-License-Identifier: Apache-2.0
// Counts the changes of a plugin's devices, so that those who list them know whether they have listed the newest.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace grus {

class DeviceChanges {
 public:
  explicit DeviceChanges(const kube::Clock& clock) : clock_(clock) {}

  void Add() {
    std::lock_guard lock(mutex_);
    ++count_;
    changed_.NotifyAll();
  }
  std::uint64_t count() const {
    std::lock_guard lock(mutex_);
    return count_;
  }
  // Waits for a change after the `seen`-th, at most for `limit`.
  void AwaitAfter(std::uint64_t seen, kube::Duration limit) {
    const kube::TimePoint until = clock_.Now() + limit;
    std::unique_lock lock(mutex_);
    while (count_ == seen && clock_.Now() < until) clock_.WaitUntil(lock, changed_, until);
  }

 private:
  const kube::Clock& clock_;
  mutable std::mutex mutex_;  // Guards what follows.
  kube::CondVar changed_;
  std::uint64_t count_ = 0;
};

}  // namespace grus
