// SPDX-License-Identifier: Apache-2.0
// A thread of control that a Clock started (Clock::Spawn): a thread of the operating system, or a fiber of a
// simulation (clientlib/testing/simulation). Moved, not copied; destroying one asks it to stop and waits for its end.
// Not thread-safe.
#pragma once

#include <memory>
#include <utility>

namespace kube {

class Thread {
 public:
  class Impl {
   public:
    virtual ~Impl() = default;
    virtual void RequestStop() = 0;
    virtual void Join() = 0;
  };

  Thread() = default;
  explicit Thread(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&& other) noexcept {
    End();
    impl_ = std::move(other.impl_);
    return *this;
  }
  ~Thread() { End(); }

  void RequestStop() {
    if (impl_) impl_->RequestStop();
  }
  // Waits until it has ended; at once if it never began.
  void Join() {
    if (impl_) impl_->Join();
    impl_.reset();
  }

 private:
  void End() {
    RequestStop();
    Join();
  }

  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
