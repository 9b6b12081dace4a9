// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/int_or_string.h"

#include <charconv>

namespace kube {

std::string IntOrString::ToString() const {
  if (const std::int32_t* number = AsInt()) return std::to_string(*number);
  return *AsString();
}

std::optional<std::int64_t> IntOrString::ScaledTo(std::int64_t total, bool round_up) const {
  if (const std::int32_t* number = AsInt()) return *number;
  const std::string& text = *AsString();
  std::int32_t percent = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || percent < 0 || rest + 1 != end || *rest != '%') return std::nullopt;
  // In two parts, as total * percent may not fit.
  const std::int64_t whole = total / 100 * percent;
  const std::int64_t part = total % 100 * percent;
  return whole + (round_up ? (part + 99) / 100 : part / 100);
}

}  // namespace kube
