// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/shutdown.h"

#include <pthread.h>
#include <unistd.h>

namespace kube {

SignalStop::SignalStop() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  thread_ = std::thread([this] { TakeSignals(); });
}

SignalStop::~SignalStop() {
  is_ending_ = true;
  // Sent to this thread alone, the signal stays pending until sigwait() takes it: it cannot be missed.
  pthread_kill(thread_.native_handle(), SIGINT);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void SignalStop::TakeSignals() {
  for (;;) {
    int signal = 0;
    if (sigwait(&signals_, &signal) != 0) continue;
    if (is_ending_) return;
    if (!stop_.request_stop()) _exit(128 + signal);
  }
}

}  // namespace kube
