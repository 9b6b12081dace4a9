// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/utf8.h"

#include <cstdint>
#include <cstring>

#include "clientlib/base/utf8_character.h"

namespace kube {

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
    const std::size_t size = Utf8CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string RepairUtf8(std::string_view text) {
  std::string repaired;
  while (!text.empty()) {
    const std::size_t size = Utf8CharacterSize(text);
    repaired.append(size == 0 ? "\xEF\xBF\xBD" : text.substr(0, size));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return repaired;
}

}  // namespace kube
