// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/utf8_character.h"

namespace kube {
namespace {

bool IsBetween(char c, unsigned low, unsigned high) {
  const unsigned byte = static_cast<unsigned char>(c);
  return byte >= low && byte <= high;
}

}  // namespace

// Unicode 15, table 3-7.
std::size_t Utf8CharacterSize(std::string_view text) {
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

}  // namespace kube
