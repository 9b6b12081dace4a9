// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/part_uses.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace grus {
namespace {

constexpr std::size_t kMostUses = 10'000;

// Removes `start` from the text; false if it does not begin so.
bool Skip(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

// What stands in quotes, of which the first is gone; removes the last one, too. nullopt: it does not end.
std::optional<std::string> TakeQuoted(std::string_view& text) {
  std::string value;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] != '\\') {
      value += text[i];
    } else if (++i < text.size()) {
      value += text[i] == 'n' ? '\n' : text[i];
    }
  }
  return std::nullopt;
}

// `NAME="VALUE",...}` whose brace before is gone. nullopt: it makes no sense.
// Of an object, or of a GPU: what may be printed.
bool IsName(std::string_view text) {
  constexpr std::size_t kLongest = 253;
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7f; };
  return text.size() <= kLongest && std::ranges::all_of(text, is_plain);
}

std::optional<PartUser> TakeLabels(std::string_view& text) {
  PartUser user;
  while (!Skip(text, "}")) {
    const std::size_t end = text.find("=\"");
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(end + 2);
    std::optional<std::string> value = TakeQuoted(text);
    if (!value || !IsName(*value)) return std::nullopt;
    if (name == "namespace") user.pod.ns = *std::move(value);
    else if (name == "pod") user.pod.name = *std::move(value);
    else if (name == "container") user.container = *std::move(value);
    else if (name == "uuid") user.gpu = *std::move(value);
    Skip(text, ",");
  }
  if (user.pod.ns.empty() || user.pod.name.empty() || user.gpu.empty()) return std::nullopt;
  return user;
}

std::optional<double> Number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && (end == text.data() + text.size() || *end == ' ');
  return is_number && std::isfinite(number) && number >= 0 ? std::optional(number) : std::nullopt;
}

void AddLine(std::string_view line, PartUses& uses) {
  std::optional<double> PartUse::*field = nullptr;
  const bool is_partless = Skip(line, "grus_gpu_partless_");
  if (!is_partless && !Skip(line, "grus_gpu_part_")) return;
  if (Skip(line, is_partless ? "memory_bytes{" : "memory_used_bytes{")) field = &PartUse::memory_bytes;
  else if (!is_partless && Skip(line, "sm_ratio{")) field = &PartUse::sm_ratio;
  else if (!is_partless || !Skip(line, "processes{")) return;
  std::optional<PartUser> user = TakeLabels(line);
  if (!user || !Skip(line, " ")) return;
  const std::optional<double> number = Number(line);
  if (!number || (uses.size() == kMostUses && !uses.contains(*user))) return;
  PartUse& use = uses[*std::move(user)];
  use.is_partless = is_partless;
  if (field != nullptr) use.*field = number;
}

}  // namespace

PartUses ParsePartUses(std::string_view text) {
  PartUses uses;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    AddLine(text.substr(0, end), uses);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return uses;
}

}  // namespace grus
