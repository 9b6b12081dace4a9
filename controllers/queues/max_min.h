// SPDX-License-Identifier: Apache-2.0
// Weighted max-min fairness: an amount is poured like water into vessels as wide as their weights, until each is full
// or the amount is used up. Source: Bertsekas and Gallager, "Data Networks", 2nd edition, section 6.5.2.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace grus {

struct MaxMinItem {
  std::int64_t weight = 1;  // At least 1, unless `most` is 0.
  std::int64_t most = 0;    // At least 0.
};

// What each gets. Integers that add up to exactly `amount`, or to all that is wanted if that is less: what rounding
// leaves goes to the largest remainders (Hamilton's method), of equal ones to the first items. O(n log n).
// REQUIRES: amount >= 0; all numbers below 2^60.
std::vector<std::int64_t> MaxMin(std::int64_t amount, std::span<const MaxMinItem> items);

}  // namespace grus
