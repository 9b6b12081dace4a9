// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/user_patterns.h"

#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "controllers/measure/figures.h"

namespace grus {
namespace {

constexpr std::int64_t kMostRegexBytes = 1 << 20;  // Of a compiled one.
constexpr std::size_t kLongestRegex = 4096;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "-0.5", "1,234.5", "1e-3" and nothing else. Negative numbers are read, too: SpeedSeries refuses them.
bool ReadWholeNumber(std::string_view text, Reading& reading) {
  text = Trimmed(text);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  Figure figure;
  if (text.empty() || ReadNumber(text, figure) != text.size()) return false;
  reading.value = is_negative ? -figure.value : figure.value;
  reading.resolution = figure.resolution;
  return true;
}

kube::Error Wrong(const SpeedPattern& pattern, const std::string& what) {
  return kube::Error(kube::ErrorCode::kInvalidArgument, "pattern \"" + pattern.name + "\": " + what);
}

}  // namespace

UserPatterns::UserPatterns() = default;
UserPatterns::~UserPatterns() = default;
UserPatterns::UserPatterns(UserPatterns&&) noexcept = default;
UserPatterns& UserPatterns::operator=(UserPatterns&&) noexcept = default;

kube::Result<UserPatterns> UserPatterns::Make(const std::vector<SpeedPattern>& patterns) {
  if (patterns.size() > LineReadings::kMost) {
    return kube::Error(kube::ErrorCode::kInvalidArgument,
                       "at most " + std::to_string(LineReadings::kMost) + " patterns are read");
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMostRegexBytes);
  UserPatterns made;
  for (const SpeedPattern& pattern : patterns) {
    if (pattern.regex.size() > kLongestRegex) {
      return Wrong(pattern, "it is longer than " + std::to_string(kLongestRegex) + " bytes");
    }
    auto regex = std::make_unique<re2::RE2>(pattern.regex, options);
    if (!regex->ok()) {
      // RE2 returns the part that is wrong, or the whole pattern; look up where the part begins.
      const std::string& part = regex->error_arg();
      const std::size_t at = part.empty() || part == pattern.regex ? std::string::npos : pattern.regex.find(part);
      const std::string place = at == std::string::npos ? "" : " (at character " + std::to_string(at + 1) + ")";
      return Wrong(pattern, regex->error() + place);
    }
    if (regex->NumberOfCapturingGroups() < 1) {
      return Wrong(pattern, "no group in parentheses around the number in \"" + pattern.regex + "\"");
    }
    if (pattern.measure == Measure::kSamplesPerStep && pattern.scope == Scope::kNotSaid) {
      return Wrong(pattern, "it needs a scope: PerGpu, PerProcess or PerJob");
    }
    const std::uint32_t series = SeriesOf(pattern.name);
    made.compiled_.push_back({std::move(regex), pattern.measure, pattern.scope, series});
  }
  return made;
}

std::string UserPatterns::RegexFor(std::string_view line, std::size_t at) {
  constexpr std::size_t kMostBefore = 24, kMostBehind = 12;
  constexpr std::string_view kNumber = "([0-9][0-9.,]*)", kSeparators = ",|;{}[]\t";
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  // The text as it is, but with any spaces and any numbers.
  const auto quoted = [&](std::string_view text) {
    std::string regex;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') regex += regex.ends_with(" *") ? "" : " *";
      else if (static_cast<unsigned char>(text[i]) >= 0x80) regex += regex.ends_with(".*") ? "" : ".*";
      else if (is_digit(text[i])) regex += regex.ends_with("[0-9.]+") ? "" : "[0-9.]+";
      else if (text[i] == '\'') regex += '.';  // It stands between quotes.
      else if (std::string_view(".\\+*?()|[]{}^$").find(text[i]) != std::string_view::npos) regex += {'\\', text[i]};
      else regex += text[i];
    }
    return regex;
  };
  at = std::min(at, line.size());
  std::size_t from = at;
  while (from > 0 && at - from < kMostBefore && kSeparators.find(line[from - 1]) == std::string_view::npos) --from;
  const std::string_view before = Trimmed(line.substr(from, at - from));
  if (std::any_of(before.begin(), before.end(), is_letter)) return quoted(before) + " *" + std::string(kNumber);
  std::size_t behind = at;
  while (behind < line.size() && (is_digit(line[behind]) || line[behind] == '.' || line[behind] == ',')) ++behind;
  std::size_t end = behind;
  while (end < line.size() && end - behind < kMostBehind && !is_digit(line[end]) &&
         kSeparators.find(line[end]) == std::string_view::npos) {
    ++end;
  }
  return std::string(kNumber) + quoted(line.substr(behind, end - behind));
}

void UserPatterns::Read(std::string_view text, LineReadings& readings, std::int64_t& not_numbers) const {
  for (const Compiled& compiled : compiled_) {
    re2::StringPiece groups[2];
    const re2::StringPiece line(text.data(), text.size());
    if (!compiled.regex->Match(line, 0, line.size(), re2::RE2::UNANCHORED, groups, 2)) continue;
    Reading reading;
    reading.measure = compiled.measure;
    reading.trust = Trust::kPattern;
    reading.scope = compiled.scope;
    reading.series = compiled.series;
    reading.at = static_cast<std::uint32_t>(groups[1].data() - text.data());
    if (!ReadWholeNumber({groups[1].data(), groups[1].size()}, reading)) {
      ++not_numbers;
    } else if (reading.measure == Measure::kSamplesPerStep) {
      readings.samples_per_step = reading.value;
      readings.batch_scope = reading.scope;
    } else {
      readings.Add(reading);
    }
  }
}

}  // namespace grus
