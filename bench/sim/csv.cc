// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/csv.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "controllers/policy/decimal.h"

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

kube::Result<std::int64_t> WholeNumberAt(const CsvTable& table, const CsvRow& row, std::size_t column, std::int64_t min,
                                         std::int64_t max, std::string_view where) {
  const std::optional<std::int64_t> number = ParseInteger(row.fields[column]);
  if (number && *number >= min && *number <= max) return *number;
  std::string remedy = "is wrong; ";
  if (!where.empty()) remedy += std::string(where) + " ";
  remedy += min == max ? "give " + std::to_string(min)
                       : "give a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  return BadField(table, row, column, remedy);
}

}  // namespace grus
