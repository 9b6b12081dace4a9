// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/csv.h"

#include <filesystem>
#include <fstream>
#include <iterator>

namespace grus {

kube::Result<CsvTable> ReadCsvFile(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored)) {
    return kube::Error(kube::ErrorCode::kNotFound, path + ": cannot be read; give the path of a CSV file");
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  kube::Result<CsvTable> table = ParseCsv(text, path);
  if (table && table->rows.empty()) {
    return kube::Error(kube::ErrorCode::kDecode, path + ":1: there are no rows below the header; add at least one");
  }
  return table;
}

}  // namespace grus
