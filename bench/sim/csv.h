// SPDX-License-Identifier: Apache-2.0
// CSV files of traces. Each error is one line: file, line, column, what is wrong, and what to do about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"
#include "controllers/kubectl/csv.h"

namespace grus {

// Error kNotFound: the file cannot be read; kDecode or kTooLarge: as ParseCsv() says, or there is no row.
kube::Result<CsvTable> ReadCsvFile(const std::string& path);

// Error kDecode: the field is no whole number from `min` to `max`. `where` says when these limits hold, if not always.
kube::Result<std::int64_t> WholeNumberAt(const CsvTable& table, const CsvRow& row, std::size_t column, std::int64_t min,
                                         std::int64_t max, std::string_view where = {});

}  // namespace grus
