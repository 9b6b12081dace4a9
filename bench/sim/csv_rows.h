// SPDX-License-Identifier: Apache-2.0
// Rows of a CSV file as structs. One list of columns says which field goes where and which numbers are allowed:
//
//   ReadCsvRows<Arrival>(path, {{"time", &Arrival::time_s, 0}, {"name", &Arrival::name}})
//
// A member `line`, if the struct has one, is set to the row's line. Columns are found by name, in any order; others are
// ignored. Errors name file, line and column and say what to write.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bench/sim/csv.h"
#include "clientlib/base/result.h"

namespace grus {

template <typename Row>
struct CsvColumn {
  std::string_view name;
  std::variant<std::string Row::*, double Row::*, int Row::*> field;
  double minimum = std::numeric_limits<double>::lowest();  // Of numbers.
  double maximum = std::numeric_limits<double>::max();
};

// A field that is not empty.
kube::Result<std::string> TextAt(const CsvTable& table, const CsvRow& row, std::size_t column);

// Error kDecode: no number from `minimum` to `maximum`; not a whole one, but `whole` says that it must be.
kube::Result<double> NumberAt(const CsvTable& table, const CsvRow& row, std::size_t column, double minimum,
                              double maximum, bool whole);

// Error: see ReadCsvFile(); a column is missing, or a field is not what it should be.
template <typename Row>
kube::Result<std::vector<Row>> ReadCsvRows(const std::string& path, const std::vector<CsvColumn<Row>>& columns) {
  const kube::Result<CsvTable> table = ReadCsvFile(path);
  if (!table) return table.error();
  std::string wanted;
  for (const auto& column : columns) wanted += (wanted.empty() ? "" : ", ") + std::string(column.name);

  std::vector<Row> rows(table->rows.size());
  if constexpr (requires(Row row) { row.line; }) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].line = table->rows[i].line;
  }
  for (const auto& [name, field, minimum, maximum] : columns) {
    const kube::Result<std::size_t> column = FindColumn(*table, name, wanted);
    if (!column) return column.error();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto put = [&](auto member) -> kube::Status {
        auto& value = rows[i].*member;
        using Value = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          kube::Result<std::string> text = TextAt(*table, table->rows[i], *column);
          if (!text) return text.error();
          value = *std::move(text);
        } else {
          const auto number = NumberAt(*table, table->rows[i], *column, minimum, maximum, std::is_integral_v<Value>);
          if (!number) return number.error();
          value = static_cast<Value>(*number);
        }
        return {};
      };
      if (const kube::Status done = std::visit(put, field); !done) return done.error();
    }
  }
  return rows;
}

}  // namespace grus
