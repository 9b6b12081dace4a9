// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "clientlib/base/lower_case.h"

namespace kube {
namespace {

constexpr std::size_t kMaxBytes = 16UL << 20;

Error FileError(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT   ? ErrorCode::kNotFound
                         : error == EACCES ? ErrorCode::kForbidden
                                           : ErrorCode::kUnavailable;
  return Error(code, "read " + path + ": " + SystemMessage(error));
}

}  // namespace

std::string SystemMessage(int error) { return LowerFirst(std::generic_category().message(error)); }

Result<std::string> ReadSmallFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError(path, errno);
  std::string content;
  char bytes[16384];
  ssize_t got = 0;
  while (content.size() <= kMaxBytes && ((got = read(fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR))) {
    if (got > 0) content.append(bytes, static_cast<std::size_t>(got));
  }
  const int error = errno;
  close(fd);
  if (content.size() > kMaxBytes) {
    return Error(ErrorCode::kTooLarge, "read " + path + ": larger than " + std::to_string(kMaxBytes) + " bytes");
  }
  if (got < 0) return FileError(path, error);
  return content;
}

Result<std::string> CleanToken(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return Error(ErrorCode::kInvalidArgument, "token is empty");
  text = text.substr(first, text.find_last_not_of(kSpace) - first + 1);
  const auto is_odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), is_odd)) {
    return Error(ErrorCode::kInvalidArgument, "token contains a space or control character");
  }
  return std::string(text);
}

}  // namespace kube
