// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/wait.h"

namespace kube {

bool WaitFor(const Clock& clock, Duration wait, const std::stop_token& stop) {
  std::mutex mutex;
  CondVar wake;
  std::stop_callback on_stop(stop, [&] {
    std::lock_guard lock(mutex);
    wake.NotifyAll();
  });
  const TimePoint until = clock.Now() + wait;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested() && clock.Now() < until) clock.WaitUntil(lock, wake, until);
  lock.unlock();
  return !stop.stop_requested();
}

}  // namespace kube
