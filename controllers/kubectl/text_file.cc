// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "controllers/kubectl/csv.h"

namespace grus {

kube::Result<CsvText> ReadFile(const std::string& path, std::size_t max_bytes) {
  constexpr std::size_t kAtOnce = 1u << 16;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // Opening a folder succeeds; only reading fails.
  while (file && text.size() < max_bytes) {
    const std::size_t size = text.size(), wanted = std::min(kAtOnce, max_bytes - size);
    text.resize(size + wanted);
    file.read(text.data() + size, static_cast<std::streamsize>(wanted));
    text.resize(size + static_cast<std::size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad() || errno == EISDIR) {
    const int code = errno;
    return kube::Error(kube::ErrorCode::kNotFound,
                       path + ": cannot be read" + (code != 0 ? std::string(": ") + std::strerror(code) : ""));
  }
  return CsvText{path, std::move(text)};
}

kube::Result<CsvText> ReadCsvFile(const std::string& path) { return ReadFile(path, kMaxCsvBytes + 1); }

}  // namespace grus
