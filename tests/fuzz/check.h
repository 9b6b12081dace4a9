// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share. A target feeds the fuzzer's bytes to one parser and then checks a rule about
// what it made of them: a crash, a finding of a sanitizer and a broken rule are all found alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fuzz {

inline std::string_view Text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The text up to the first `separator`, which is cut off `text` with it; all of it if there is none.
inline std::string_view Cut(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return head;
}

// Ends the run as a crash unless the rule holds.
inline void Require(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "broken rule: %s\n", rule);
  std::abort();
}

}  // namespace fuzz
