// SPDX-License-Identifier: Apache-2.0
// A file system that one test alone sees.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

namespace grus::testing {

enum class OwnMount { kHolds, kDoesNotHold, kMayNot };

// Whether `check` holds in a child that has a file system in memory over `folder`, which may have no files that are
// needed. kMayNot: this user may not mount. `flags`, `options`: as mount(2) takes them.
inline OwnMount HoldsWithMount(const std::string& folder, unsigned long flags, const char* options,
                               const std::function<bool()>& check) {
  constexpr int kMayNot = 77;
  const pid_t child = fork();
  if (child == 0) {
    const std::string me = std::to_string(geteuid());
    if (unshare(CLONE_NEWNS) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) _exit(kMayNot);
      std::ofstream("/proc/self/uid_map") << "0 " << me << " 1";
    }
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(kMayNot);
    if (mount("none", folder.c_str(), "tmpfs", flags, options) != 0) _exit(kMayNot);
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return OwnMount::kHolds;
  return WEXITSTATUS(status) == kMayNot ? OwnMount::kMayNot : OwnMount::kDoesNotHold;
}

}  // namespace grus::testing
