// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/stated_totals.h"

#include <gtest/gtest.h>

#include <vector>

namespace grus {
namespace {

StatedTotals Of(std::vector<std::string> command) { return TotalsOf(command); }

TEST(StatedTotals, AreReadFromTheOptionsOfTheCommand) {
  EXPECT_EQ(Of({"python", "train.py", "--epochs", "90"}).epochs, 90);
  EXPECT_EQ(Of({"python", "train.py", "--num-train-epochs=3", "--max_steps", "1000"}).epochs, 3);
  EXPECT_EQ(Of({"python", "train.py", "--num-train-epochs=3", "--max_steps", "1000"}).steps, 1000);
  EXPECT_EQ(Of({"--epochs", "90", "--epochs", "2"}).epochs, 2) << "the last one counts";
}

TEST(StatedTotals, WhatIsNoCountSaysNothing) {
  for (const char* value : {"", "many", "-1", "0", "3.5", "3 ", "99999999999999999999"}) {
    EXPECT_EQ(Of({"--epochs", value}).epochs, 0) << value;
  }
  EXPECT_EQ(Of({"--epochs"}).epochs, 0);
  EXPECT_EQ(Of({"epochs", "3"}).epochs, 0);
  EXPECT_EQ(Of({"--warmup-epochs", "3", "--steps", "10", "--"}).epochs, 0);
}

}  // namespace
}  // namespace grus
