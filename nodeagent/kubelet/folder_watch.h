// SPDX-License-Identifier: Apache-2.0
// Tells when files of some names come into a folder or leave it, or the folder itself goes (inotify).
//
// It tells on a thread of its own, which waits without a timeout. Watch() is for one thread.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "clientlib/base/clock.h"
#include "clientlib/base/result.h"

namespace grus {

class FolderWatch {
 public:
  // `changed` is called once for each batch of changes, and must not block.
  FolderWatch(std::string folder, std::set<std::string> names, std::function<void()> changed, const kube::Clock& clock);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // From now on the folder that has this path now is watched; no effect if it is watched already. kNotFound: there is
  // none. kUnavailable: this machine lets nobody watch.
  kube::Status Watch();

 private:
  void Read();
  bool IsOfInterest(const char* events, std::size_t size) const;

  const std::string folder_;
  const std::set<std::string> names_;
  const std::function<void()> changed_;
  int inotify_ = -1, stop_ = -1;
  int error_ = 0;  // Why `inotify_` could not be opened.
  kube::Thread thread_;
};

}  // namespace grus
