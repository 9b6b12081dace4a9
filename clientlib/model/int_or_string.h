// SPDX-License-Identifier: Apache-2.0
// intstr.IntOrString: a port by number or name, a count or a percentage. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace kube {

struct IntOrString {
  std::variant<std::int32_t, std::string> value;

  IntOrString() = default;
  IntOrString(std::int32_t number) : value(number) {}          // NOLINT: implicit on purpose
  IntOrString(std::string text) : value(std::move(text)) {}    // NOLINT
  IntOrString(const char* text) : value(std::string(text)) {}  // NOLINT

  const std::int32_t* AsInt() const { return std::get_if<std::int32_t>(&value); }
  const std::string* AsString() const { return std::get_if<std::string>(&value); }
  std::string ToString() const;

  // A number as it is, "25%" as that share of `total`. nullopt: neither. REQUIRES: total >= 0.
  std::optional<std::int64_t> ScaledTo(std::int64_t total, bool round_up) const;

  friend bool operator==(const IntOrString&, const IntOrString&) = default;
};

}  // namespace kube
