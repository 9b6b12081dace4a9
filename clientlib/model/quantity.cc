// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/quantity.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace kube {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr int kMinScale = -9;
// More digits cannot change a saturated or rounded result, but could overflow Wide.
constexpr int kMaxDigits = 27;

constexpr std::string_view kDecimalSuffixes[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};  // 10^-9..10^18
constexpr std::string_view kBinarySuffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

Wide Power10(int exponent) {
  Wide power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

Wide DivideAwayFromZero(Wide number, Wide by) {
  const Wide rest = number % by;
  return number / by + (rest > 0 ? 1 : rest < 0 ? -1 : 0);
}

std::int64_t Saturate(Wide number) {
  if (number > kMax) return kMax;
  if (number < -Wide{kMax}) return -kMax;
  return static_cast<std::int64_t>(number);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

struct Suffix {
  int exponent10 = 0;
  int exponent1024 = 0;
  Quantity::Format format = Quantity::Format::kDecimalSi;
};

bool ParseSuffix(std::string_view text, Suffix& suffix) {
  for (int i = 1; i < static_cast<int>(std::size(kBinarySuffixes)); ++i) {
    if (text == kBinarySuffixes[i]) {
      suffix = {.exponent1024 = i, .format = Quantity::Format::kBinarySi};
      return true;
    }
  }
  for (int i = 0; i < static_cast<int>(std::size(kDecimalSuffixes)); ++i) {
    if (text == kDecimalSuffixes[i]) {
      suffix = {.exponent10 = i * 3 + kMinScale};
      return true;
    }
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return false;
  suffix.format = Quantity::Format::kDecimalExponent;
  std::size_t at = 1;
  const bool is_negative = text[at] == '-';
  if (text[at] == '-' || text[at] == '+') ++at;
  if (at == text.size()) return false;
  for (; at < text.size(); ++at) {
    if (!IsDigit(text[at])) return false;
    suffix.exponent10 = std::min(suffix.exponent10 * 10 + (text[at] - '0'), 10000);
  }
  if (is_negative) suffix.exponent10 = -suffix.exponent10;
  return true;
}

}  // namespace

Quantity Quantity::Make(Wide number, int scale, Format format) {
  Quantity made;
  made.format_ = format;
  if (number == 0) return made;
  if (scale < kMinScale) {
    number = kMinScale - scale > kMaxDigits + 10 ? (number > 0 ? 1 : -1)
                                                 : DivideAwayFromZero(number, Power10(kMinScale - scale));
    scale = kMinScale;
  }
  for (; scale > 0; --scale) {
    number *= 10;
    if (number > kMax || number < -Wide{kMax}) break;
  }
  // Drop digits of the fraction from the right until the number fits.
  for (; scale < 0 && (number > kMax || number < -Wide{kMax}); ++scale) number = DivideAwayFromZero(number, 10);
  made.number_ = Saturate(number);
  made.scale_ = static_cast<std::int8_t>(std::min(scale, 0));
  made.Reduce();
  return made;
}

void Quantity::Reduce() {
  if (number_ == std::numeric_limits<std::int64_t>::min()) number_ = -kMax;
  if (number_ == 0) scale_ = 0;
  for (; scale_ < 0 && number_ % 10 == 0; ++scale_) number_ /= 10;
}

Quantity Quantity::OfMilli(std::int64_t milli) { return Make(milli, -3, Format::kDecimalSi); }

std::int64_t Quantity::Value() const { return Saturate(DivideAwayFromZero(number_, Power10(-scale_))); }

std::int64_t Quantity::MilliValue() const {
  return Saturate(DivideAwayFromZero(Wide{number_} * 1000, Power10(-scale_)));
}

double Quantity::AsDouble() const { return static_cast<double>(number_) / static_cast<double>(Power10(-scale_)); }

Quantity operator+(const Quantity& a, const Quantity& b) {
  const int scale = std::min(a.scale_, b.scale_);
  return Quantity::Make(a.number_ * Power10(a.scale_ - scale) + b.number_ * Power10(b.scale_ - scale), scale,
                        a.format_);
}

Quantity operator-(const Quantity& a, const Quantity& b) {
  Quantity negative = b;
  negative.number_ = -negative.number_;
  return a + negative;
}

std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
  const Wide left = a.number_ * Power10(a.scale_ - kMinScale);
  const Wide right = b.number_ * Power10(b.scale_ - kMinScale);
  return left < right   ? std::strong_ordering::less
         : left > right ? std::strong_ordering::greater
                        : std::strong_ordering::equal;
}

Result<Quantity> ParseQuantity(std::string_view text) {
  const auto bad = [&] {
    std::string message(1, '"');
    message.append(text.substr(0, 40)).append("\" is not a quantity");
    return Error(ErrorCode::kDecode, std::move(message));
  };
  std::size_t at = 0;
  const bool is_negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++at;

  Wide number = 0;
  int scale = 0, digits = 0;
  bool has_digit = false, has_point = false, has_rest = false;
  for (; at < text.size(); ++at) {
    if (text[at] == '.') {
      if (has_point) return bad();
      has_point = true;
      continue;
    }
    if (!IsDigit(text[at])) break;
    has_digit = true;
    if (digits < kMaxDigits) {
      number = number * 10 + (text[at] - '0');
      if (number != 0) ++digits;
      if (has_point) --scale;
    } else {
      has_rest |= text[at] != '0';
      if (!has_point) ++scale;
    }
  }
  Suffix suffix;
  if (!has_digit || !ParseSuffix(text.substr(at), suffix)) return bad();

  if (has_rest) ++number;  // Rounded away from zero.
  // 27 digits times 1024^6 would overflow; 18 digits are kept then.
  for (int i = 0; i < suffix.exponent1024; ++i) {
    if (number > Wide{kMax} * 1'000'000'000) {
      number = DivideAwayFromZero(number, 10000);
      scale += 4;
    }
    number *= 1024;
  }
  return Quantity::Make(is_negative ? -number : number, scale + suffix.exponent10, suffix.format);
}

std::string ToText(const Quantity& quantity) {
  if (quantity.number_ == 0) return "0";
  std::int64_t number = quantity.number_;
  const bool is_small = number > -1024 && number < 1024;
  if (quantity.format_ == Quantity::Format::kBinarySi && quantity.scale_ == 0 && !is_small) {
    std::size_t suffix = 0;
    for (; number % 1024 == 0 && suffix + 1 < std::size(kBinarySuffixes); ++suffix) number /= 1024;
    return std::to_string(number).append(kBinarySuffixes[suffix]);
  }
  // scale_ -1 and -2 are written in thousandths, -4 and -5 in millionths, and so on.
  int scale = quantity.scale_;
  Wide wide = number;
  for (; scale % 3 != 0; --scale) wide *= 10;
  for (; wide % 1000 == 0 && scale < 18; scale += 3) wide /= 1000;
  std::string digits;
  for (Wide rest = wide < 0 ? -wide : wide; rest != 0; rest /= 10) {
    digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  if (wide < 0) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  if (quantity.format_ == Quantity::Format::kDecimalExponent) {
    return scale == 0 ? digits : digits + "e" + std::to_string(scale);
  }
  return digits.append(kDecimalSuffixes[(scale - kMinScale) / 3]);
}

const Quantity* FindResource(const ResourceList& list, std::string_view name) {
  for (const auto& [key, amount] : list) {
    if (key == name) return &amount;
  }
  return nullptr;
}

}  // namespace kube
