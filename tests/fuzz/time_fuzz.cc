// SPDX-License-Identifier: Apache-2.0
// ParseTime(). Rules: a time written and read again is the same to the microsecond, or to the second; two
// times can be subtracted.
#include "clientlib/model/time.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using std::chrono::floor;
  const kube::Result<kube::Time> time = kube::ParseTime(fuzz::Text(data, size));
  if (!time) return 0;
  const kube::Result<kube::Time> micro = kube::ParseTime(kube::ToMicroText(*time));
  fuzz::Require(micro.ok() && micro->value == floor<std::chrono::microseconds>(time->value), "microseconds are kept");
  const kube::Result<kube::Time> second = kube::ParseTime(kube::ToText(*time));
  fuzz::Require(second.ok() && second->value == floor<std::chrono::seconds>(time->value), "seconds are kept");

  const kube::Result<kube::Time> early = kube::ParseTime("1970-01-01T00:00:00Z");
  const kube::Result<kube::Time> today = kube::ParseTime("2026-01-02T03:04:05Z");
  const bool is_early = time->value - early->value < std::chrono::seconds(0);
  fuzz::Require(is_early == (*time < *early), "a difference agrees with the order");
  const bool is_past = time->value - today->value < std::chrono::seconds(0);
  fuzz::Require(is_past == (*time < *today), "a difference to today agrees with the order");
  return 0;
}
