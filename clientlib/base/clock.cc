// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/clock.h"

namespace kube {

TimePoint SystemClock::Now() const { return std::chrono::steady_clock::now(); }

WallTime SystemClock::WallNow() const { return std::chrono::system_clock::now(); }

void SystemClock::WaitUntil(std::unique_lock<std::mutex>& lock, std::condition_variable& cv,
                            TimePoint until) const {
  if (until == TimePoint::max()) {
    cv.wait(lock);
  } else {
    cv.wait_until(lock, until);
  }
}

}  // namespace kube
