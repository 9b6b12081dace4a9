// SPDX-License-Identifier: Apache-2.0
// A file of a folder that containers have files of: opened so that nothing waits for what they did to it.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <utility>

namespace grus {

class OwnFd {
 public:
  OwnFd() = default;
  // No link is followed. A lease that a container took is an error (EAGAIN), as is a FIFO that nobody reads.
  OwnFd(int folder, const char* name, int flags, mode_t mode = 0)
      : fd_(openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, mode)) {}
  ~OwnFd() {
    if (fd_ >= 0) close(fd_);
  }
  OwnFd(OwnFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnFd& operator=(OwnFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }  // Negative: it could not be opened; errno says why.

 private:
  int fd_ = -1;
};

}  // namespace grus
