// SPDX-License-Identifier: Apache-2.0
// Hand-over of values between threads with a limit.
//
// Put() refuses when the queue is full: the producer states what that means (a dropped event, a stream that
// is given up). Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "clientlib/base/clock.h"

namespace kube {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t limit) : limit_(limit) {}

  // False if the queue is full or closed; `value` is then dropped.
  bool Put(T value) {
    {
      std::lock_guard lock(mutex_);
      if (is_closed_ || items_.size() >= limit_) return false;
      items_.push_back(std::move(value));
    }
    ready_.NotifyOne();
    return true;
  }

  // Waits for a value until `until` on `clock`. nullopt: none came, or closed and drained.
  std::optional<T> Take(const Clock& clock, TimePoint until = TimePoint::max()) {
    std::unique_lock lock(mutex_);
    while (items_.empty() && !is_closed_) {
      if (clock.Now() >= until) return std::nullopt;
      clock.WaitUntil(lock, ready_, until);
    }
    if (items_.empty()) return std::nullopt;
    std::optional<T> value(std::move(items_.front()));
    items_.pop_front();
    return value;
  }

  // No more Put(); what is queued can still be taken.
  void Close() {
    {
      std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    ready_.NotifyAll();
  }

  std::size_t size() const {
    std::lock_guard lock(mutex_);
    return items_.size();
  }
  bool is_closed() const {
    std::lock_guard lock(mutex_);
    return is_closed_;
  }

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;  // Guards items_ and is_closed_.
  CondVar ready_;
  std::deque<T> items_;
  bool is_closed_ = false;
};

}  // namespace kube
