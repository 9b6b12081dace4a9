// SPDX-License-Identifier: Apache-2.0
// resource.Quantity: "500m" cores, "1.5Gi" bytes, "8" GPUs.
//
// Exact for up to 18 significant digits down to 10^-9; finer fractions are rounded away from zero, and larger numbers
// saturate at 2^63-1, as in Kubernetes. Compared by value: "0.5" equals "500m", "1Gi" equals "1073741824". A value of
// 16 bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/compact_string.h"

namespace kube {

__extension__ typedef __int128 Wide;  // Wide enough for 2^63 * 10^18.

class Quantity {
 public:
  enum class Format : std::uint8_t { kDecimalSi, kBinarySi, kDecimalExponent };

  Quantity() = default;
  Quantity(std::int64_t value, Format format = Format::kDecimalSi)  // NOLINT: implicit on purpose
      : number_(value), format_(format) {
    Reduce();
  }
  static Quantity OfMilli(std::int64_t milli);

  std::int64_t Value() const;       // Rounded away from zero to a whole number, as Kubernetes does.
  std::int64_t MilliValue() const;  // Likewise, in thousandths; saturates.
  double AsDouble() const;
  bool is_zero() const { return number_ == 0; }

  // Saturate; the left operand's format stays.
  friend Quantity operator+(const Quantity& a, const Quantity& b);
  friend Quantity operator-(const Quantity& a, const Quantity& b);

  friend bool operator==(const Quantity& a, const Quantity& b) {
    return a.number_ == b.number_ && a.scale_ == b.scale_;
  }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b);

 private:
  friend Result<Quantity> ParseQuantity(std::string_view text);
  friend std::string ToText(const Quantity& quantity);

  // The quantity number * 10^scale, rounded and saturated as said above.
  static Quantity Make(Wide number, int scale, Format format);
  void Reduce();  // To the form in which equal quantities have equal members.

  std::int64_t number_ = 0;  // The quantity is number_ * 10^scale_.
  std::int8_t scale_ = 0;    // -9..0; the largest possible.
  Format format_ = Format::kDecimalSi;
};

// Errors: kDecode.
Result<Quantity> ParseQuantity(std::string_view text);
// The canonical form: no fraction, the largest suffix that loses nothing: "1500m", "1536Mi", "1e3".
std::string ToText(const Quantity& quantity);

// Amounts by resource name; sorted where it was read. Few entries, many objects: a vector.
using ResourceList = std::vector<std::pair<CompactString, Quantity>>;
// The amount of `name`; null if missing.
const Quantity* FindResource(const ResourceList& list, std::string_view name);

}  // namespace kube
