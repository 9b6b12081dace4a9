// SPDX-License-Identifier: Apache-2.0
// ParseQuantity() on one quantity a line. Rules: a quantity written and read again is equal; written twice it
// is written the same; order agrees with the difference.
#include "clientlib/model/quantity.h"
#include "tests/fuzz/check.h"

namespace {

using kube::Quantity;
using kube::Result;

void CheckAlone(const Quantity& quantity) {
  const std::string text = kube::ToText(quantity);
  const Result<Quantity> again = kube::ParseQuantity(text);
  fuzz::Require(again.ok(), "what was written can be read");
  fuzz::Require(*again == quantity, "what is read again is equal");
  // "62.5Ki" is written "64000", as Kubernetes does, and that is decimal: "64k".
  const std::string second = kube::ToText(*again);
  const Result<Quantity> third = kube::ParseQuantity(second);
  fuzz::Require(third && kube::ToText(*third) == second, "a quantity is written the same from then on");
  fuzz::Require((quantity - quantity).is_zero(), "a quantity less itself is nothing");
  fuzz::Require(quantity + Quantity() == quantity, "nothing added changes nothing");
  fuzz::Require((quantity.AsDouble() < 0) == (quantity < Quantity()), "both forms agree on the sign");
  fuzz::Require((quantity.Value() == 0) == quantity.is_zero(), "rounding goes away from zero");
  fuzz::Require((quantity.MilliValue() == 0) == quantity.is_zero(), "rounding of thousandths goes away from zero");
}

void CheckPair(const Quantity& a, const Quantity& b) {
  fuzz::Require((a < b) == (b > a), "a is less than b as b is more than a");
  fuzz::Require((a == b) == ((a <=> b) == 0), "equal is neither less nor more");
  if (a < b) fuzz::Require((a - b) <= Quantity(), "the smaller less the larger is no more than nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::Text(data, size);
  const Result<Quantity> a = kube::ParseQuantity(fuzz::Cut(rest, '\n')), b = kube::ParseQuantity(rest);
  if (a) CheckAlone(*a);
  if (b) CheckAlone(*b);
  if (a && b) CheckPair(*a, *b);
  return 0;
}
