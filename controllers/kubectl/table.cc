// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/table.h"

#include <algorithm>

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

}  // namespace grus
