// SPDX-License-Identifier: Apache-2.0
// SIGTERM and SIGINT as a stop token.
//
// The first signal requests a stop; the second ends the process at once with status 128 + signal, for a
// person or a kubelet that has waited long enough. SIGPIPE is ignored: a write to a closed socket is an error
// value.
#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace kube {

class SignalStop {
 public:
  // REQUIRES: no other thread runs yet, and no other SignalStop lives: threads inherit the blocked signals, so that
  // only this object's thread takes them.
  SignalStop();
  // Joins, and restores the calling thread's signal mask.
  ~SignalStop();
  SignalStop(const SignalStop&) = delete;
  SignalStop& operator=(const SignalStop&) = delete;

  // Its callbacks run on the thread that takes the signals: they must not block.
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void TakeSignals();

  sigset_t signals_{};
  sigset_t mask_before_{};
  std::stop_source stop_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace kube
