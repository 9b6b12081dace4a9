// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/time.h"

#include <cstdint>

namespace kube {
namespace {

using std::chrono::nanoseconds;
using std::chrono::system_clock;

constexpr std::chrono::sys_days kFirst = std::chrono::year(1900) / 1 / 1;
constexpr std::chrono::sys_days kEnd = std::chrono::year(2192) / 1 / 1;

// Reads exactly `digits` digits at `at`; -1 if one is not a digit.
int Digits(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

void Put(std::string& text, std::size_t at, int digits, std::int64_t value) {
  for (int i = digits - 1; i >= 0; --i, value /= 10) {
    text[at + static_cast<std::size_t>(i)] = static_cast<char>('0' + value % 10);
  }
}

std::string Seconds(const Time& time, std::string pattern) {
  const auto days = std::chrono::floor<std::chrono::days>(time.value);
  const std::chrono::year_month_day date(days);
  const std::int64_t second = std::chrono::floor<std::chrono::seconds>(time.value - days).count();
  Put(pattern, 0, 4, static_cast<int>(date.year()));
  Put(pattern, 5, 2, static_cast<unsigned>(date.month()));
  Put(pattern, 8, 2, static_cast<unsigned>(date.day()));
  Put(pattern, 11, 2, second / 3600);
  Put(pattern, 14, 2, second / 60 % 60);
  Put(pattern, 17, 2, second % 60);
  return pattern;
}

Error NoTime(std::string_view text) {
  std::string message(1, '"');
  message.append(text.substr(0, 40)).append("\" is not an RFC 3339 time");
  return Error(ErrorCode::kDecode, std::move(message));
}

}  // namespace

std::string ToText(const Time& time) { return Seconds(time, "0000-00-00T00:00:00Z"); }

std::string ToMicroText(const Time& time) {
  std::string text = Seconds(time, "0000-00-00T00:00:00.000000Z");
  const auto fraction = time.value - std::chrono::floor<std::chrono::seconds>(time.value);
  Put(text, 20, 6, std::chrono::floor<std::chrono::microseconds>(fraction).count());
  return text;
}

Result<Time> ParseTime(std::string_view text) {
  const int year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  const int hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || (text[10] | 0x20) != 't' || text[13] != ':' ||
      text[16] != ':' || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
    return NoTime(text);
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (year < 0 || month < 0 || day < 0 || !date.ok()) return NoTime(text);

  std::size_t at = 19;
  std::int64_t fraction = 0;
  if (text[at] == '.') {
    std::int64_t unit = 100'000'000;
    const std::size_t start = ++at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) {
      fraction += unit * (text[at] - '0');
    }
    if (at == start) return NoTime(text);
  }
  int offset_minutes = 0;
  if (at + 1 == text.size() && (text[at] | 0x20) == 'z') {
    // UTC.
  } else if (at + 6 == text.size() && (text[at] == '+' || text[at] == '-') && text[at + 3] == ':') {
    const int hours = Digits(text, at + 1, 2), minutes = Digits(text, at + 4, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return NoTime(text);
    offset_minutes = (hours * 60 + minutes) * (text[at] == '-' ? -1 : 1);
  } else {
    return NoTime(text);
  }
  const std::int64_t seconds = (hour * 60 + minute - offset_minutes) * std::int64_t{60} + second;
  const std::chrono::sys_seconds whole = std::chrono::sys_days(date) + std::chrono::seconds(seconds);
  if (whole < kFirst || whole >= kEnd) return NoTime(text);
  return Time{system_clock::time_point(whole) + nanoseconds(fraction)};
}

}  // namespace kube
