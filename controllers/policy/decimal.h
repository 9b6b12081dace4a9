// SPDX-License-Identifier: Apache-2.0
// The decimal strings of the API, api::kDecimalPattern: "812.4". Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace grus {

// Nullopt if `text` is none.
std::optional<double> ParseDecimal(std::string_view text);
std::optional<double> ParsePositive(std::string_view text);
std::optional<std::int64_t> ParseInteger(std::string_view text);

// Rounded to `digits` significant digits, but never before the point; at most nine behind it. Empty, which the API
// takes for not known, if `value` is negative, not a number, or has more than 15 digits before the point.
std::string ToDecimal(double value, int digits = 4);

}  // namespace grus
