// SPDX-License-Identifier: Apache-2.0
// The CPU time of a thread, which other work on the machine does not lengthen.
#pragma once

#include <ctime>

namespace bench {

inline double ThreadCpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace bench
