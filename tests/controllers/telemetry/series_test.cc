// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

Series Of(std::vector<float> values) { return {.start = 0, .step = 10, .values = std::move(values)}; }

TEST(Series, StatisticsAreOfThePresentSamples) {
  const Series series = Of({1, NAN, 3, kInfinite, 8});
  EXPECT_EQ(CountPresent(series), 3u);
  EXPECT_DOUBLE_EQ(SharePresent(series), 0.6);
  EXPECT_DOUBLE_EQ(Duration(series), 50);
  EXPECT_DOUBLE_EQ(*Mean(series), 4);
  EXPECT_DOUBLE_EQ(*Max(series), 8);
  EXPECT_DOUBLE_EQ(*Quantile(series, 0.5), 3);
  EXPECT_DOUBLE_EQ(*Quantile(series, 0), 1);
  EXPECT_DOUBLE_EQ(*Quantile(series, 7), 8);
}

TEST(Series, WithoutSamplesHasNoStatistics) {
  for (const Series& series : {Of({}), Of({NAN, NAN})}) {
    EXPECT_EQ(CountPresent(series), 0u);
    EXPECT_EQ(SharePresent(series), 0);
    EXPECT_FALSE(Mean(series));
    EXPECT_FALSE(Max(series));
    EXPECT_FALSE(Quantile(series, 0.5));
    EXPECT_THAT(Filled(series), IsEmpty());
  }
}

TEST(Series, IsFilledByLinesBetweenNeighbours) {
  EXPECT_THAT(Filled(Of({NAN, 2, NAN, NAN, 5, -kInfinite})), ElementsAre(2, 2, 3, 4, 5, 5));
  EXPECT_THAT(Filled(Of({1, 2})), ElementsAre(1, 2));
}

TEST(Series, IsMadeCoarserByMeans) {
  const std::vector<float> values = {1, 3, 5, 7, 100};
  EXPECT_THAT(Coarser(values, 2), ElementsAre(2, 6));
  EXPECT_THAT(Coarser(values, 1), ElementsAre(1, 3, 5, 7, 100));
  EXPECT_THAT(Coarser(values, 6), IsEmpty());
}

}  // namespace
}  // namespace grus
