// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/table.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace grus {

std::string TableText(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return {};
  const std::size_t last = rows.front().size() - 1;
  std::vector<std::size_t> widths(last);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < last; ++i) widths[i] = std::max(widths[i], row[i].size() + 3);
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < last; ++i) text += row[i] + std::string(widths[i] - row[i].size(), ' ');
    text += row[last] + "\n";
  }
  return text;
}

std::string BytesText(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"", "Ki", "Mi", "Gi", "Ti"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 || bytes >= 100 ? "%.0f%s" : "%.1f%s", bytes, kUnits[unit]);
  return text;
}

}  // namespace grus
