// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/csv_rows.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace grus {
namespace {

std::optional<double> ParseDouble(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string Plain(double value) {
  char buffer[32];
  const auto format = std::abs(value) < 1e15 ? std::chars_format::fixed : std::chars_format::general;
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value, format);
  return {buffer, end};
}

std::string RangeText(double minimum, double maximum) {
  if (maximum != std::numeric_limits<double>::max()) return " from " + Plain(minimum) + " to " + Plain(maximum);
  return minimum == std::numeric_limits<double>::lowest() ? "" : " of " + Plain(minimum) + " or more";
}

}  // namespace

kube::Error BadFieldOf(const CsvTable& table, std::size_t row, std::string_view column, std::string_view what) {
  return BadField(table, table.rows[row], *FindColumn(table, column, ""), what);
}

kube::Error EmptyField(const CsvTable& table, const CsvRow& row, std::size_t column) {
  return BadField(table, row, column, "is empty; write a value");
}

kube::Result<double> NumberAt(const CsvTable& table, const CsvRow& row, std::size_t column, double minimum,
                              double maximum, bool whole) {
  const std::optional<double> value = ParseDouble(row.fields[column]);
  const bool is_whole = value && std::floor(*value) == *value && std::abs(*value) <= std::numeric_limits<int>::max();
  if (value && (is_whole || !whole) && *value >= minimum && *value <= maximum) return *value;
  return BadField(
      table, row, column,
      std::string("is wrong; write a ") + (whole ? "whole number" : "number") + RangeText(minimum, maximum));
}

}  // namespace grus
