// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/printable.h"

#include <cstdint>

#include "clientlib/base/utf8_character.h"

namespace kube {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

// REQUIRES: a valid character.
std::uint32_t CodePoint(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0x7Fu >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3F);
  return code;
}

bool IsSafe(std::uint32_t code) {
  const bool is_control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
  const bool is_separator = code == 0x2028 || code == 0x2029;
  const bool is_direction = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                            (code >= 0x2066 && code <= 0x2069);
  return !is_control && !is_separator && !is_direction;
}

void AppendEscape(std::string& out, std::uint32_t code) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (code) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  out += "\\u";
  for (const int shift : {12, 8, 4, 0}) out += kHex[code >> shift & 0xF];
}

// Calls `take(character, code, is_valid)` for each character of `text`. A byte that is none counts as kReplacement.
template <typename Take>
void ForEachCharacter(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t size = Utf8CharacterSize(text);
    const std::string_view character = text.substr(0, size == 0 ? 1 : size);
    take(character, size == 0 ? kReplacement : CodePoint(character), size != 0);
    text.remove_prefix(character.size());
  }
}

}  // namespace

void AppendPrintable(std::string& out, std::string_view text, std::string_view quoted) {
  ForEachCharacter(text, [&](std::string_view character, std::uint32_t code, bool is_valid) {
    if (!is_valid || !IsSafe(code)) return AppendEscape(out, code);
    if (quoted.find(character) != std::string_view::npos) out += '\\';
    out += character;
  });
}

std::string Printable(std::string_view text) {
  std::string safe;
  AppendPrintable(safe, text);
  return safe;
}

std::string PrintableLines(std::string_view text) {
  std::string safe;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    AppendPrintable(safe, text.substr(at, end - at));
    if (end == std::string_view::npos) break;
    safe += '\n';
    at = end + 1;
  }
  return safe;
}

bool IsPrintable(std::string_view text) {
  bool is_printable = true;
  ForEachCharacter(text, [&](std::string_view, std::uint32_t code, bool is_valid) {
    is_printable = is_printable && is_valid && IsSafe(code);
  });
  return is_printable;
}

}  // namespace kube
