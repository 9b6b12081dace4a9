// SPDX-License-Identifier: Apache-2.0
// Data of tests that stand in files of the tree.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace kit {

// A file or folder of the tree that the current folder is in; throws if there is none.
inline std::filesystem::path TreePath(const std::string& path) {
  for (auto folder = std::filesystem::current_path();; folder = folder.parent_path()) {
    if (std::filesystem::exists(folder / path)) return folder / path;
    if (folder == folder.parent_path()) throw std::runtime_error("no " + path + " above the current folder");
  }
}

inline std::string ReadTreeFile(const std::string& path) {
  std::ifstream file(TreePath(path));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace kit
