// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/temp_dir.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace kube::testing {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "grus-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  root_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string TempDir::path(std::string_view name) const {
  return name.empty() ? root_.string() : (root_ / name).string();
}

std::string TempDir::Write(std::string_view name, std::string_view content) const {
  const std::filesystem::path file = root_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  return file.string();
}

}  // namespace kube::testing
