// SPDX-License-Identifier: Apache-2.0
// Text in columns, as kubectl prints it. Pure.
#pragma once

#include <string>
#include <vector>

namespace grus {

// `rows`, the header first, each as long as that: every column but the last is as wide as its widest cell and three
// blanks.
std::string TableText(const std::vector<std::vector<std::string>>& rows);

// "512", "1.5Gi", "120Mi"
std::string BytesText(double bytes);

}  // namespace grus
