// SPDX-License-Identifier: Apache-2.0
// A process that takes a lease on a file, as root in a container can on those that are mounted there.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

namespace grus::testing {

class LeaseHolder {
 public:
  // `type`: F_WRLCK, with which whoever opens the file waits; or F_RDLCK, with which whoever writes it does.
  LeaseHolder(const std::string& path, int type) {
    int ends[2] = {};
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      signal(SIGIO, SIG_IGN);  // It is asked to give the lease back, and does not.
      const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      const int error = file >= 0 && fcntl(file, F_SETLEASE, type) == 0 ? 0 : errno;
      if (write(ends[1], &error, sizeof(error)) != sizeof(error)) _exit(1);
      while (true) pause();
    }
    if (read(ends[0], &error_, sizeof(error_)) != sizeof(error_)) error_ = EIO;
    close(ends[0]);
    close(ends[1]);
  }
  ~LeaseHolder() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  LeaseHolder(const LeaseHolder&) = delete;
  LeaseHolder& operator=(const LeaseHolder&) = delete;

  int error() const { return error_; }  // 0: it has it. EAGAIN: others have the file open.

 private:
  pid_t child_ = -1;
  int error_ = EIO;
};

}  // namespace grus::testing
