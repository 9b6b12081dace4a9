// SPDX-License-Identifier: Apache-2.0
// Lower case of ASCII letters, whatever the locale; all else stays as it is. Pure functions on values.
#pragma once

#include <string>
#include <string_view>

namespace kube {

constexpr char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerCase(c);
  return lower;
}

// "Connection refused" as a part of a sentence.
inline std::string LowerFirst(std::string_view text) {
  std::string lower(text);
  if (!lower.empty()) lower[0] = LowerCase(lower[0]);
  return lower;
}

}  // namespace kube
