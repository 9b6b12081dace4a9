// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/utf8.h"

#include <cstdint>
#include <cstring>

namespace kube {
namespace {

bool IsBetween(char c, unsigned low, unsigned high) {
  const unsigned byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

// The length of the valid character at the start of `text`, 0 if there is none (Unicode 15, table 3-7).
std::size_t CharacterSize(std::string_view text) {
  const unsigned first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size == 0 || text.size() < size) return 0;
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (!IsBetween(text[1], low, high)) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if (!IsBetween(text[i], 0x80, 0xBF)) return 0;
  }
  return size;
}

}  // namespace

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    if (text.size() >= 8) {
      std::uint64_t word;
      std::memcpy(&word, text.data(), 8);
      if ((word & 0x8080808080808080u) == 0) {
        text.remove_prefix(8);
        continue;
      }
    }
    const std::size_t size = CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string RepairUtf8(std::string_view text) {
  std::string repaired;
  while (!text.empty()) {
    const std::size_t size = CharacterSize(text);
    repaired.append(size == 0 ? "\xEF\xBF\xBD" : text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return repaired;
}

}  // namespace kube
