// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/left_out.h"

#include <gtest/gtest.h>

#include "bench/interference/public_co_runs.h"
#include "tests/kit/must.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

const std::filesystem::path kData = kit::TreePath("bench/data");

// The bounds are those that were asked for, on public tables; docs/interference.md has what is reached.
TEST(LeaveOutEach, TellsTrainingsThatItHasNotSeen) {
  const auto samples = kit::Must(LoadAlnair(kData));
  ASSERT_EQ(samples.size(), 216u);
  const LeftOutFigures family = LeaveOutEach(samples, LeftOutUnit::kFamily, true);
  EXPECT_EQ(family.co_runs, 216);
  EXPECT_LT(family.slow_down_error, 0.105);
  EXPECT_LT(family.slow_down_error, family.constant_error / 2);
}

TEST(KnowAFifth, TellsTheOtherPairsAndHowSurely) {
  const auto k80 = kit::Must(LoadGavel(kData, {"k80"}));
  ASSERT_EQ(k80.size(), 589u);
  const LeftOutFigures figures = KnowAFifth(k80, "k80", false, 1);
  EXPECT_GT(figures.co_runs, 450);
  EXPECT_LT(figures.slow_down_error, 0.085);
  EXPECT_LT(figures.speed_error, 0.085);
  EXPECT_GE(figures.in_interval, 0.85);
}

TEST(KnowAFifth, NeedsNoNames) {
  const auto k80 = kit::Must(LoadGavel(kData, {"k80"}, true));
  EXPECT_LT(KnowAFifth(k80, "k80", false, 1).slow_down_error, 0.095);
}

}  // namespace
}  // namespace grus
