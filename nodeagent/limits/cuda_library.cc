// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/cuda_library.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>

namespace grus {
namespace {

namespace fs = std::filesystem;
using kube::Error;
using kube::ErrorCode;

constexpr mode_t kMode = 0755;  // Programs of any user load it.

std::optional<std::string> Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string content{std::istreambuf_iterator<char>(file), {}};
  return file.bad() ? std::nullopt : std::optional(std::move(content));
}

bool Is(const OwnFd& file, const std::string& content) {
  struct stat status = {};
  if (file.fd() < 0 || fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  constexpr mode_t kPermissions = 07777;
  const bool is_as_long = static_cast<std::size_t>(status.st_size) == content.size();
  if (!is_as_long || (status.st_mode & kPermissions) != kMode) return false;
  std::string present(content.size(), '\0');
  for (std::size_t done = 0; done < present.size();) {
    const ssize_t got = pread(file.fd(), present.data() + done, present.size() - done, static_cast<off_t>(done));
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return present == content;
}

std::error_code LastError() { return {errno, std::generic_category()}; }

std::error_code Write(const std::string& path, const std::string& content) {
  const OwnFd file(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file.fd() < 0) return LastError();
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t wrote = write(file.fd(), content.data() + done, content.size() - done);
    if (wrote < 0) return LastError();
    done += static_cast<std::size_t>(wrote);
  }
  return fchmod(file.fd(), kMode) == 0 ? std::error_code() : LastError();  // Whatever the umask is.
}

}  // namespace

void CudaLibrary::Keep(OwnFd file) {
  struct stat now = {}, kept = {};
  if (fstat(file.fd(), &now) != 0 || !S_ISREG(now.st_mode)) return;
  const bool is_kept =
      !kept_.empty() && fstat(kept_.back().fd(), &kept) == 0 && kept.st_dev == now.st_dev && kept.st_ino == now.st_ino;
  if (!is_kept) kept_.push_back(std::move(file));
}

bool CudaLibrary::IsInstalled(const std::string& content) {
  OwnFd file(AT_FDCWD, library().c_str(), O_RDONLY);
  const bool is_it = Is(file, content);
  Keep(std::move(file));  // Also an old one: containers that run have it.
  return is_it;
}

kube::Status CudaLibrary::Install() {
  const std::optional<std::string> content = Content(source_);
  if (!content) return Error(ErrorCode::kNotFound, "read " + source_ + ": there is no such file");
  if (content->empty()) return Error(ErrorCode::kUnavailable, "read " + source_ + ": it is empty");
  std::error_code error, ignored;
  fs::create_directories(folder_, error);
  if (error) return Error(ErrorCode::kUnavailable, "make " + folder_ + ": " + error.message());
  struct statvfs system = {};
  if (statvfs(folder_.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) != 0) {
    return Error(ErrorCode::kUnavailable,
                 folder_ +
                     " is on a file system from which nothing may be run (noexec), and so would no program of a "
                     "container load the library from there; choose another folder");
  }
  if (IsInstalled(*content)) return {};

  const std::string path = library(), next = path + ".new";
  fs::remove_all(next, error);
  if (!error) error = Write(next, *content);
  OwnFd file(AT_FDCWD, next.c_str(), O_RDONLY);  // Before any container has it.
  if (!error && file.fd() < 0) error = LastError();
  // A container runtime makes a folder where it finds no file to mount.
  if (!error && fs::is_directory(fs::symlink_status(path, ignored))) fs::remove_all(path, error);
  if (!error) fs::rename(next, path, error);
  if (error) return Error(ErrorCode::kUnavailable, "write " + path + ": " + error.message());
  Keep(std::move(file));
  return {};
}

}  // namespace grus
