// SPDX-License-Identifier: Apache-2.0
// A process that a bench starts, and what the kernel says of it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace bench {

class ChildProcess {
 public:
  // Output goes to `log_path`. Exits the bench with a message if the program cannot be started.
  ChildProcess(const std::vector<std::string>& arguments, const std::string& log_path);
  ~ChildProcess();  // SIGTERM, and waits.

  bool IsRunning();
  double CpuSeconds() const;     // User and system, so far.
  double PeakMemoryMib() const;  // VmHWM.
  double MemoryMib() const;      // VmRSS.
  int Stop();                    // SIGTERM and wait: the exit status, 128 + signal if it was killed.

 private:
  double MemoryField(const char* name) const;

  pid_t pid_ = -1;
};

}  // namespace bench
