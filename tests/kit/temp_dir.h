// SPDX-License-Identifier: Apache-2.0
// A temporary folder for one test, removed at its end.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kube::testing {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string path(std::string_view name = {}) const;
  // Writes a file, with its folders, and returns its path.
  std::string Write(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path root_;
};

}  // namespace kube::testing
