// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/decimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace grus {
namespace {

TEST(ToDecimal, KeepsSignificantDigitsAndAllBeforeThePoint) {
  struct Case {
    double value;
    const char* want;
  };
  for (const Case& c : {Case{812.44, "812.4"}, Case{100, "100"}, Case{123456.7, "123457"}, Case{0.0012346, "0.001235"},
                        Case{1.5, "1.5"}, Case{0, "0"}, Case{1e-12, "0"}, Case{9.9999, "10"}}) {
    EXPECT_EQ(ToDecimal(c.value), c.want);
  }
}

TEST(ToDecimal, WhatTheApiCannotHoldIsNotKnown) {
  for (const double value : {-1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e15, 1e300}) {
    EXPECT_EQ(ToDecimal(value), "") << value;
  }
}

TEST(ParseDecimal, TakesWhatTheApiHoldsOnly) {
  EXPECT_EQ(ParseDecimal("812.4"), 812.4);
  EXPECT_EQ(ParseDecimal("8"), 8.0);
  for (const char* text : {"", "-1", "1e3", "nan", "inf", "1.2.3", " 1", "0x1"}) {
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
  }
}

TEST(ParsePositive, TakesPositiveNumbersAlone) {
  for (const char* text : {"", "0", "-1", "nan", "inf", "1x", "x", "1e400"}) EXPECT_FALSE(ParsePositive(text)) << text;
  EXPECT_EQ(ParsePositive("812.4"), 812.4);
}

}  // namespace
}  // namespace grus
