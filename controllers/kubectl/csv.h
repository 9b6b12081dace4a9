// SPDX-License-Identifier: Apache-2.0
// Reads comma-separated values with a header line (RFC 4180). Errors say where the text is wrong.
//
// Quoted fields may hold commas, quotes and line breaks. Blank lines, a byte order mark, and spaces around unquoted
// fields are ignored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

struct CsvRow {
  int line = 0;  // In the file, from 1.
  std::vector<std::string> fields;
};

struct CsvTable {
  std::string name;  // Of the file, for messages.
  CsvRow header;
  std::vector<CsvRow> rows;  // Each with as many fields as the header.
};

inline constexpr std::size_t kMaxCsvBytes = 16u << 20;

// Error kDecode: the message starts with NAME:LINE.
kube::Result<CsvTable> ParseCsv(std::string_view text, const std::string& name);

// Index of the column of that name. Error kDecode: there is none, or several; `wanted` says which the file must have.
kube::Result<std::size_t> FindColumn(const CsvTable& table, std::string_view column, std::string_view wanted);

// "NAME:LINE: column COLUMN: "VALUE" WHAT", as an error.
kube::Error BadField(const CsvTable& table, const CsvRow& row, std::size_t column, std::string_view what);

// The whole text is a finite number: nothing stands around it.
bool ParseNumber(std::string_view text, double& number);

// With six significant digits.
std::string Number(double value);

}  // namespace grus
