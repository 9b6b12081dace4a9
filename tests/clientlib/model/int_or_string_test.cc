// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/int_or_string.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(IntOrString, PercentagesScaleAndRound) {
  struct Case {
    IntOrString value;
    std::int64_t total, down, up;
  };
  const Case kCases[] = {
      {3, 10, 3, 3},
      {"25%", 10, 2, 3},
      {"0%", 10, 0, 0},
      {"100%", 7, 7, 7},
      {"150%", 3, 4, 5},
      {"33%", 0, 0, 0},
      {"10%", 9'000'000'000'000'000'000, 900'000'000'000'000'000, 900'000'000'000'000'000},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(c.value.ScaledTo(c.total, false), c.down) << c.value.ToString();
    EXPECT_EQ(c.value.ScaledTo(c.total, true), c.up) << c.value.ToString();
  }
}

TEST(IntOrString, OtherStringsDoNotScale) {
  for (const char* text : {"", "%", "25", "25%%", "-5%", "http", "1.5%", " 5%", "99999999999%"}) {
    EXPECT_EQ(IntOrString(text).ScaledTo(10, true), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace kube
