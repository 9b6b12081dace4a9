// SPDX-License-Identifier: Apache-2.0
// Rows of a CSV file as structs. One list of columns says which field goes where and which numbers are allowed:
//
//   ReadCsvRows<Arrival>(path, {{"time", &Arrival::time_s, 0}, {"name", &Arrival::name}})
//
// A member `line`, if the struct has one, is set to the row's line. Columns are found by name, in any order; others are
// ignored. Errors are one line: file, line, column, what is wrong, and what to write.
#pragma once

#include <algorithm>
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

enum class CsvNeed {
  kValue,   // A value in each row.
  kColumn,  // The column; its fields may be empty.
  kNothing,
};

template <typename Row>
struct CsvColumn {
  std::string_view name;
  std::variant<std::string Row::*, double Row::*, int Row::*> field;
  double minimum = std::numeric_limits<double>::lowest();  // Of numbers.
  double maximum = std::numeric_limits<double>::max();
  CsvNeed need = CsvNeed::kValue;  // Of texts: a number is always needed.
};

// The field of that row and column is wrong: `what` says why and what to write. REQUIRES: the table has the column.
kube::Error BadFieldOf(const CsvTable& table, std::size_t row, std::string_view column, std::string_view what);

kube::Error EmptyField(const CsvTable& table, const CsvRow& row, std::size_t column);

// Error kDecode: no number from `minimum` to `maximum`; not a whole one, but `whole` says that it must be.
kube::Result<double> NumberAt(const CsvTable& table, const CsvRow& row, std::size_t column, double minimum,
                              double maximum, bool whole);

// Error kDecode: a column is missing, or a field is not what it should be.
template <typename Row>
kube::Result<std::vector<Row>> RowsOf(const CsvTable& table, const std::vector<CsvColumn<Row>>& columns) {
  std::string wanted;
  for (const auto& column : columns) {
    if (column.need != CsvNeed::kNothing) wanted += (wanted.empty() ? "" : ", ") + std::string(column.name);
  }
  std::vector<Row> rows(table.rows.size());
  if constexpr (requires(Row row) { row.line; }) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].line = table.rows[i].line;
  }
  for (const auto& [name, field, minimum, maximum, need] : columns) {
    if (need == CsvNeed::kNothing && !std::ranges::count(table.header.fields, name)) continue;
    const kube::Result<std::size_t> column = FindColumn(table, name, wanted);
    if (!column) return column.error();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto put = [&, minimum = minimum, maximum = maximum, need = need](auto member) -> kube::Status {
        auto& value = rows[i].*member;
        using Value = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          value = table.rows[i].fields[*column];
          if (value.empty() && need == CsvNeed::kValue) return EmptyField(table, table.rows[i], *column);
        } else {
          const auto number = NumberAt(table, table.rows[i], *column, minimum, maximum, std::is_integral_v<Value>);
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

// The same. Error: also as ReadCsvFile().
template <typename Row>
kube::Result<std::vector<Row>> ReadCsvRows(const std::string& path, const std::vector<CsvColumn<Row>>& columns) {
  const kube::Result<CsvTable> table = ReadCsvFile(path);
  if (!table) return table.error();
  return RowsOf(*table, columns);
}

}  // namespace grus
