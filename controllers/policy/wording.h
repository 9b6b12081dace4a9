// SPDX-License-Identifier: Apache-2.0
// Words that messages to users share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace grus {

// "1 member", "2 members".
inline std::string Count(std::int64_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

}  // namespace grus
