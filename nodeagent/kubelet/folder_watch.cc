// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace grus {

namespace {

constexpr std::uint32_t kChanges =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

}  // namespace

FolderWatch::FolderWatch(std::string folder, std::set<std::string> names, std::function<void()> changed,
                         const kube::Clock& clock)
    : folder_(std::move(folder)), names_(std::move(names)), changed_(std::move(changed)) {
  inotify_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (inotify_ < 0) error_ = errno;
  stop_ = eventfd(0, EFD_CLOEXEC);
  if (stop_ < 0 && error_ == 0) error_ = errno;
  if (error_ == 0) thread_ = clock.Spawn([this](const std::stop_token&) { Read(); });
}

FolderWatch::~FolderWatch() {
  if (stop_ >= 0) eventfd_write(stop_, 1);
  thread_.Join();
  if (inotify_ >= 0) close(inotify_);
  if (stop_ >= 0) close(stop_);
}

kube::Status FolderWatch::Watch() {
  if (error_ != 0) {
    return kube::Error(kube::ErrorCode::kUnavailable, "watch " + folder_ + ": " + std::strerror(error_) +
                                                          "; raise fs.inotify.max_user_instances on this node");
  }
  // The kernel knows the folder by its inode: the same one again is no second watch.
  if (inotify_add_watch(inotify_, folder_.c_str(), kChanges) >= 0) return {};
  if (errno == ENOENT || errno == ENOTDIR) {
    return kube::Error(kube::ErrorCode::kNotFound, folder_ +
                                                       " is not there: no kubelet runs on this node, or its folder "
                                                       "is not mounted here");
  }
  return kube::Error(kube::ErrorCode::kUnavailable, "watch " + folder_ + ": " + std::strerror(errno));
}

void FolderWatch::Read() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  std::array<pollfd, 2> files = {pollfd{inotify_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
  while (true) {
    if (poll(files.data(), files.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (files[1].revents != 0) return;
    const ssize_t size = read(inotify_, buffer.data(), buffer.size());
    if (size > 0 && IsOfInterest(buffer.data(), static_cast<std::size_t>(size))) changed_();
  }
}

bool FolderWatch::IsOfInterest(const char* events, std::size_t size) const {
  for (std::size_t at = 0; at + sizeof(inotify_event) <= size;) {
    inotify_event event;
    std::memcpy(&event, events + at, sizeof event);
    // Without a name: the folder itself went, or events were lost.
    const char* name = events + at + sizeof event;
    if (event.len == 0 || names_.contains(name)) return true;
    at += sizeof event + event.len;
  }
  return false;
}

}  // namespace grus
