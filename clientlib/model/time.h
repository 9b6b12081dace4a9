// SPDX-License-Identifier: Apache-2.0
// metav1.Time: an RFC 3339 timestamp. A value.
#pragma once

#include <chrono>
#include <compare>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace kube {

struct Time {
  std::chrono::system_clock::time_point value;
  friend auto operator<=>(const Time&, const Time&) = default;
};

// metav1.MicroTime: the same, written with microseconds. Leases and events.
struct MicroTime : Time {
  friend auto operator<=>(const MicroTime&, const MicroTime&) = default;
};

std::string ToText(const Time& time);       // "2026-01-02T03:04:05Z", whole seconds as metav1.Time.
std::string ToMicroText(const Time& time);  // "2026-01-02T03:04:05.678901Z", as metav1.MicroTime.

// With or without fraction, Z or an offset, years 1900 to 2191 in UTC: the difference of any two fits into the 64 bits
// of a Duration. Second 60 counts as the second after it. Errors: kDecode.
Result<Time> ParseTime(std::string_view text);

}  // namespace kube
