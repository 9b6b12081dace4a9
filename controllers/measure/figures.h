// SPDX-License-Identifier: Apache-2.0
// The numbers of a text, each with the words around it.
//
// "Iter [50/7330] time: 0.5123, 1.2e3 img/s" holds 50 of 7330 with the label "Iter", 0.5123 with the label "time" and
// 1200 with the unit "img/s". Exponents and thousands separators are part of a number; times of day, dates, versions
// and addresses are not numbers. A text may contain any bytes.
//
// Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace grus {

struct Figure {
  double value = 0;           // Below zero if a minus sign stands before it: "lr: -1", not "12 - 45ms".
  double resolution = 0;      // Half a unit of the last place.
  double total = 0;           // m of "n/m", else 0.
  bool is_whole = false;      // Written without a fraction or an exponent.
  bool is_bracketed = false;  // "[" stands before it.
  std::string_view label;     // What stands before it, back to a separator or the number before.
  std::string_view unit;      // What stands behind it, up to a separator or the next number.
  std::size_t begin = 0;      // Where it stands in the text.
};

constexpr std::size_t kMostFigures = 48;
using Figures = std::array<Figure, kMostFigures>;

// The first numbers of a text.
std::span<Figure> FindFigures(std::string_view text, Figures& figures);

// Reads the number that begins the text. Returns its length; 0: no number begins there.
std::size_t ReadNumber(std::string_view text, Figure& figure);

// Seconds of the "45s", "1:23" or "1:02:03" that begins the text; 0: it begins with anything else.
double ReadDuration(std::string_view text);

// The words of a label or a unit in lower case: "SamplesPerSec", "samples_per_sec" and "samples/sec" are
// "samples", "per", "sec". At most the last kMost ones.
class Words {
 public:
  static constexpr std::size_t kMost = 12;
  explicit Words(std::string_view text);
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view operator[](std::size_t i) const { return words_[i]; }
  std::string_view last(std::size_t back = 0) const {  // The last, the one before it, ...; empty if there is none.
    return back < size_ ? words_[size_ - 1 - back] : std::string_view();
  }
  bool has(std::string_view word) const;

 private:
  void Add(std::string_view word);

  std::array<std::string_view, kMost> words_;
  std::size_t size_ = 0;
  std::array<char, 64> buffer_;
};

}  // namespace grus
