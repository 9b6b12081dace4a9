// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/retry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace kube {
namespace {

// Caps waits: a sum with a time point must not overflow.
constexpr std::chrono::hours kLongestWait(24);

std::optional<int> Number(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<unsigned> Month(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<unsigned>(found - kNames.begin()) + 1;
}

// "Sun, 06 Nov 1994 08:49:37 GMT": the only form servers have been allowed to send since 1999.
std::optional<std::chrono::sys_seconds> ParseHttpDate(std::string_view text) {
  constexpr std::string_view kForm = "Sun, 06 Nov 1994 08:49:37 GMT";
  if (text.size() != kForm.size() || !text.ends_with(" GMT") || text[3] != ',' || text[19] != ':' || text[22] != ':') {
    return std::nullopt;
  }
  const auto day = Number(text.substr(5, 2));
  const auto month = Month(text.substr(8, 3));
  const auto year = Number(text.substr(12, 4));
  const auto hour = Number(text.substr(17, 2));
  const auto minute = Number(text.substr(20, 2));
  const auto second = Number(text.substr(23, 2));
  if (!day || !month || !year || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

}  // namespace

std::optional<Duration> ParseRetryAfter(std::string_view value, WallTime now) {
  const bool is_number =
      !value.empty() && std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) {
    // A number too long for an int is still a number.
    const std::chrono::seconds wait(Number(value).value_or(std::numeric_limits<int>::max()));
    return std::min<Duration>(wait, kLongestWait);
  }
  const std::optional<std::chrono::sys_seconds> date = ParseHttpDate(value);
  if (!date) return std::nullopt;
  // In seconds: neither the year 1 nor 9999 fits into a WallTime.
  const std::chrono::seconds wait = *date - std::chrono::floor<std::chrono::seconds>(now);
  return std::clamp<std::chrono::seconds>(wait, std::chrono::seconds::zero(), kLongestWait);
}

std::optional<Duration> RetryDelay(std::string_view method, const Result<HttpResponse>& outcome, int tries,
                                   Duration backoff, WallTime now) {
  if (tries >= kMaxTries) return std::nullopt;
  if (!outcome) {
    const bool may_repeat = method == "GET" || method == "HEAD";
    if (may_repeat && outcome.error().reason() == kConnectionLost) return backoff;
    return std::nullopt;
  }
  if (outcome->status != 429 && outcome->status < 500) return std::nullopt;
  const std::optional<Duration> asked = ParseRetryAfter(outcome->Header("retry-after"), now);
  if (!asked) return std::nullopt;
  return std::max(*asked, backoff);
}

}  // namespace kube
