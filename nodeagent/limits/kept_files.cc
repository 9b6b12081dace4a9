// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/kept_files.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "nodeagent/cuda/share_files.h"

namespace grus {

KeptFiles::KeptFiles(const std::string& folder)
    : account_path_(folder + "/" + cuda::kAccountFile),
      account_(AT_FDCWD, account_path_.c_str(), O_WRONLY),
      limits_(AT_FDCWD, (folder + "/" + cuda::kLimitsFile).c_str(), O_WRONLY) {}

kube::Result<bool> KeptFiles::CutAccount() {
  constexpr auto kLength = static_cast<off_t>(sizeof(cuda::Account));
  const auto failed = [&](int reason) {
    return kube::Error(kube::ErrorCode::kUnavailable,
                       "cut " + account_path_ + ": " + std::generic_category().message(reason));
  };
  if (account_.fd() < 0) account_ = OwnFd(AT_FDCWD, account_path_.c_str(), O_WRONLY);
  const int not_opened = account_.fd() < 0 ? errno : 0;
  struct stat status = {};
  const int known = not_opened != 0 ? lstat(account_path_.c_str(), &status) : fstat(account_.fd(), &status);
  if (known != 0 || !S_ISREG(status.st_mode) || status.st_size <= kLength) return false;
  if (not_opened != 0) return failed(not_opened);
  if (ftruncate(account_.fd(), kLength) != 0) return failed(errno);
  return true;
}

}  // namespace grus
