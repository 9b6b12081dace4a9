// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace grus {

kube::Result<CsvText> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  // Opening a folder succeeds; only reading fails.
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || errno == EISDIR) {
    const int code = errno;
    return kube::Error(kube::ErrorCode::kNotFound,
                       path + ": cannot be read" + (code != 0 ? std::string(": ") + std::strerror(code) : ""));
  }
  return CsvText{path, text.str()};
}

}  // namespace grus
