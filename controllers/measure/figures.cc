// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/figures.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace grus {
namespace {

constexpr std::string_view kMicroSign = "\xc2\xb5", kGreekMu = "\xce\xbc";  // Both are written for micro.
constexpr std::size_t kLongestLabel = 48, kLongestUnit = 32, kLongestNumber = 40;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }
char At(std::string_view text, std::size_t i) { return i < text.size() ? text[i] : '\0'; }

// The end of the digits from `at` on.
std::size_t DigitsEnd(std::string_view text, std::size_t at) {
  while (IsDigit(At(text, at))) ++at;
  return at;
}

// The end of the number, date, time of day, version, address, path or name that begins at `at`. What is not a number is
// skipped as a whole.
std::size_t TokenEnd(std::string_view text, std::size_t at) {
  while (at < text.size() && (IsDigit(text[at]) || IsLetter(text[at]) || text[at] == '_' ||
                              ((text[at] == '.' || text[at] == ':' || text[at] == '-') && IsDigit(At(text, at + 1))))) {
    ++at;
  }
  return at;
}

// "12:34" and "2026-01-02" go on after the digits; so does the third part of "1.2.3".
bool GoesOnAsOther(std::string_view text, std::size_t end, bool is_whole) {
  const char c = At(text, end);
  return ((c == ':' && is_whole) || c == '-' || c == '.') && IsDigit(At(text, end + 1));
}

bool IsSeparator(char c) { return c == ',' || c == '|' || c == ';' || c == '\t' || c == '{' || c == '}'; }

// A number before "GPU(s)" belongs to the words around it: "img/sec on 8 GPU(s): 1920".
bool IsPartOfLabel(std::string_view text, std::size_t end) {
  return At(text, end) == ' ' && (text.substr(end + 1).starts_with("GPU") || text.substr(end + 1).starts_with("gpu"));
}

// The "-" of "speed: -3" and "(-3)" is a minus sign; that of "12-45" and "run-3" is not.
bool HasMinusSign(std::string_view text, std::size_t at) {
  if (at == 0 || text[at - 1] != '-') return false;
  return at == 1 || std::string_view(" \t:=([,|").find(text[at - 2]) != std::string_view::npos;
}

std::size_t SkipSpaces(std::string_view text, std::size_t at) {
  while (At(text, at) == ' ') ++at;
  return at;
}

// The number ends at `end`.
void SetLabel(std::string_view text, std::size_t from, std::size_t end, Figure& figure) {
  const auto is_space_before = [&](std::size_t at) { return at > from && text[at - 1] == ' '; };
  from = std::max(from, figure.begin - std::min(figure.begin, kLongestLabel));
  std::size_t last = figure.begin;
  if (At(text, SkipSpaces(text, end)) == '|') {
    // A cell of a table is named by the one before it: "|    fps    |   1200   |".
    while (is_space_before(last)) --last;
    if (last > from && text[last - 1] == '|') --last;
  }
  while (last > from && !IsLetter(text[last - 1]) && text[last - 1] != ')' && !IsSeparator(text[last - 1])) --last;
  std::size_t begin = last;
  while (begin > from && !IsSeparator(text[begin - 1])) --begin;
  figure.label = text.substr(begin, last - begin);
}

// "11/22 01:56:16", a date without its year, and the time of day.
bool IsDateAt(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::string_view kForm = "00/00 00:00:00";
  text = text.substr(begin, kForm.size());
  return end - begin == 5 &&
         std::ranges::equal(text, kForm, [](char c, char form) { return form == '0' ? IsDigit(c) : c == form; });
}

}  // namespace

std::size_t ReadNumber(std::string_view text, Figure& figure) {
  std::size_t end = DigitsEnd(text, 0);
  std::array<char, kLongestNumber> digits;
  if (end == 0 || end > kLongestNumber / 2) return 0;
  std::size_t size =
      static_cast<std::size_t>(std::copy(text.begin(), text.begin() + end, digits.begin()) - digits.begin());
  // Thousands: one to three digits, then groups of three.
  if (end <= 3) {
    std::size_t next = end;
    while (At(text, next) == ',' && DigitsEnd(text, next + 1) == next + 4 && size + 3 < kLongestNumber / 2) {
      std::copy_n(text.begin() + next + 1, 3, digits.begin() + size);
      size += 3;
      next += 4;
    }
    end = next;
  }
  figure.is_whole = true;
  double place = 1;
  if (At(text, end) == '.' && IsDigit(At(text, end + 1))) {
    figure.is_whole = false;
    const std::size_t fraction_end = DigitsEnd(text, end + 1);
    const std::size_t kept = std::min(fraction_end - end, kLongestNumber - 6 - size);
    std::copy_n(text.begin() + end, kept, digits.begin() + size);
    size += kept;
    place = std::pow(10.0, -static_cast<double>(kept - 1));
    end = fraction_end;
  } else if (At(text, end) == '.' && !IsLetter(At(text, end + 1))) {
    ++end;  // "10." as NumPy writes it, or the end of a sentence.
  }
  int exponent = 0;
  if ((At(text, end) | 0x20) == 'e') {
    std::size_t at = end + 1;
    if (At(text, at) == '+' || At(text, at) == '-') ++at;
    const std::size_t exponent_end = DigitsEnd(text, at);
    if (exponent_end > at && exponent_end - at <= 3) {
      std::from_chars(text.data() + at, text.data() + exponent_end, exponent);
      if (text[at - 1] == '-') exponent = -exponent;
      figure.is_whole = false;
      end = exponent_end;
    }
  }
  double value = 0;
  std::from_chars(digits.data(), digits.data() + size, value);
  const double scale = exponent == 0 ? 1 : std::pow(10.0, exponent);
  figure.value = value * scale;
  figure.resolution = place / 2 * scale;
  return end;
}

double ReadDuration(std::string_view text) {
  double seconds = 0;
  for (int parts = 1; parts <= 3; ++parts) {
    Figure figure;
    const std::size_t length = ReadNumber(text, figure);
    if (length == 0) return 0;
    seconds = seconds * 60 + figure.value;
    text.remove_prefix(length);
    if (!text.starts_with(':')) return parts > 1 || text.starts_with('s') ? seconds : 0;
    text.remove_prefix(1);
  }
  return 0;
}

std::span<Figure> FindFigures(std::string_view text, Figures& figures) {
  std::size_t size = 0, label_from = 0;
  for (std::size_t at = 0; at < text.size() && size < kMostFigures;) {
    if (!IsDigit(text[at])) {
      if (!IsLetter(text[at]) && text[at] != '_') {
        ++at;
        continue;
      }
      // A name with digits in it, like "ResNet50", "gpu0" or "v1.2", has no number.
      while (at < text.size() && (IsLetter(text[at]) || text[at] == '_')) ++at;
      if (at < text.size() && IsDigit(text[at])) at = TokenEnd(text, at);
      continue;
    }
    Figure figure;
    figure.begin = at;
    std::size_t end = at + ReadNumber(text.substr(at), figure);
    if (end == at || GoesOnAsOther(text, end, figure.is_whole)) {
      at = std::max(TokenEnd(text, at), at + 1);
      label_from = at;
      continue;
    }
    if (HasMinusSign(text, at)) figure.value = -figure.value;
    if (IsPartOfLabel(text, end)) {
      at = end;
      continue;
    }
    std::size_t before = at;
    while (before > 0 && text[before - 1] == ' ') --before;
    figure.is_bracketed = before > 0 && text[before - 1] == '[';
    SetLabel(text, label_from, end, figure);
    const std::size_t slash = SkipSpaces(text, end);  // "10/ 5005" as well.
    if (figure.is_whole && At(text, slash) == '/') {
      const std::size_t next = SkipSpaces(text, slash + 1);
      Figure total;
      const std::size_t length = next < text.size() ? ReadNumber(text.substr(next), total) : 0;
      const std::size_t total_end = next + length;
      const bool is_date = At(text, total_end) == '/' || (figure.label.empty() && IsDateAt(text, at, total_end));
      if (length > 0 && !is_date && !GoesOnAsOther(text, total_end, true)) {
        figure.total = total.value;
        end = total_end;
      } else if (length > 0) {
        at = label_from = TokenEnd(text, total_end + 1);
        continue;
      }
    }
    std::size_t unit_end = end;
    while (unit_end < text.size() && unit_end - end < kLongestUnit && !IsDigit(text[unit_end]) &&
           !IsSeparator(text[unit_end])) {
      ++unit_end;
    }
    figure.unit = text.substr(end, unit_end - end);
    figures[size++] = figure;
    // "3s/epoch - 45ms/step": the unit belongs to no other number.
    at = end;
    while (at < text.size() && (IsLetter(text[at]) || text[at] == '/')) ++at;
    label_from = at;
  }
  return std::span(figures).first(size);
}

Words::Words(std::string_view text) {
  if (text.size() > buffer_.size()) text.remove_prefix(text.size() - buffer_.size());
  std::size_t begin = 0, end = 0;  // Of the current word in the buffer.
  const auto end_word = [&] {
    if (end > begin) Add({buffer_.data() + begin, end - begin});
    begin = end;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i).starts_with(kMicroSign) || text.substr(i).starts_with(kGreekMu)) {
      end_word();
      buffer_[end++] = 'u';
      ++i;
    } else if (!IsLetter(c)) {
      end_word();
      if (c == '/') Add("per");
    } else {
      if (IsUpper(c) && i > 0 && IsLetter(text[i - 1]) && !IsUpper(text[i - 1])) end_word();  // camelCase
      buffer_[end++] = static_cast<char>(c | 0x20);
    }
  }
  end_word();
}

void Words::Add(std::string_view word) {
  if (size_ == kMost) {
    std::move(words_.begin() + 1, words_.end(), words_.begin());
    --size_;
  }
  words_[size_++] = word;
}

bool Words::has(std::string_view word) const {
  const auto end = words_.begin() + size_;
  return std::find(words_.begin(), end, word) != end;
}

}  // namespace grus
