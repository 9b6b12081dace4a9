// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/decimal.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace grus {
namespace {

// nullopt unless all of `text` is the number.
template <typename Number>
std::optional<Number> Parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<double> ParseDecimal(std::string_view text) {
  const bool is_decimal = text.find_first_not_of("0123456789.") == std::string_view::npos;
  return is_decimal ? Parse<double>(text) : std::nullopt;
}

std::optional<double> ParsePositive(std::string_view text) {
  const std::optional<double> value = ParseDecimal(text);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<std::int64_t> ParseInteger(std::string_view text) { return Parse<std::int64_t>(text); }

std::string ToDecimal(double value, int digits) {
  constexpr double kLimit = 1e15;
  constexpr int kMostBehindPoint = 9;
  if (!std::isfinite(value) || value < 0 || value >= kLimit - 1) return "";
  const int before = value > 0 ? static_cast<int>(std::floor(std::log10(value))) + 1 : 1;  // Digits before the point.
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", std::clamp(digits - before, 0, kMostBehindPoint), value);
  std::string decimal = text;
  if (decimal.find('.') == std::string::npos) return decimal;
  decimal.erase(decimal.find_last_not_of('0') + 1);
  if (decimal.back() == '.') decimal.pop_back();
  return decimal;
}

}  // namespace grus
