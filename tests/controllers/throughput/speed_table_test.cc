// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/speed_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>

#include "tests/controllers/profile/profile_builders.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakePoint;
using testing::MakeProfile;
using testing::WithKneeAt8;

using Points = std::vector<api::ProfilePoint>;

constexpr int kLargestInt = std::numeric_limits<int>::max();

// On nodes of 8 GPUs, the batch size 32 for each.
Points Linear(const std::vector<int>& sizes, const std::string& gpu_type = "A100", double step_milliseconds = 100) {
  Points points;
  for (const int gpus : sizes) points.push_back(MakePoint({gpu_type, gpus, 0, 32}, step_milliseconds));
  return points;
}

Points operator+(Points a, const Points& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<SpeedPoint> TableOf(const Points& points, const std::string& gpu_type = "A100", int gpus_per_worker = 1,
                                int most_workers = 8, int gpus_per_node = 8) {
  return SpeedTableOf(MakeProfile(points).spec, gpu_type, gpus_per_worker, most_workers, gpus_per_node);
}

std::vector<int> SizesOf(const std::vector<SpeedPoint>& table) {
  std::vector<int> sizes;
  for (const SpeedPoint& point : table) sizes.push_back(point.gpus);
  return sizes;
}

double SpeedOf(const std::vector<SpeedPoint>& table, int gpus) {
  for (const SpeedPoint& point : table) {
    if (point.gpus == gpus) return point.speed;
  }
  return 0;
}

// What the allocator requires of a curve.
void ExpectSound(const std::vector<SpeedPoint>& table) {
  int before = 0;
  for (const SpeedPoint& point : table) {
    EXPECT_GT(point.gpus, before);
    EXPECT_GT(point.low, 0);
    EXPECT_LE(point.low, point.speed);
    EXPECT_LE(point.speed, point.high);
    EXPECT_TRUE(std::isfinite(point.high));
    before = point.gpus;
  }
}

TEST(SpeedTable, HasMeasuredSizesAndThoseBetweenInWholeWorkers) {
  struct Case {
    const char* name;
    Points points;
    int gpus_per_worker, most_workers;
    std::vector<int> want;
  };
  const std::vector<Case> cases = {
      {"between what was measured", Linear({1, 8}), 1, 8, {1, 2, 4, 8}},
      {"other sizes that were measured", Linear({1, 3, 8}), 1, 4, {1, 2, 3, 4, 8}},
      {"the maximum", Linear({1, 2, 8}), 1, 6, {1, 2, 4, 6, 8}},
      {"workers of two", Linear({1, 2, 3, 8}), 2, 4, {2, 4, 8}},
      {"beyond what was measured", Linear({1, 2, 4, 8}), 1, 16, {1, 2, 4, 8}},
      {"on several nodes", Linear({1, 8, 16, 32}), 8, 8, {8, 16, 32}},
  };
  for (const Case& c : cases) {
    const auto table = TableOf(c.points, "A100", c.gpus_per_worker, c.most_workers);
    EXPECT_EQ(SizesOf(table), c.want) << c.name;
    ExpectSound(table);
  }
}

TEST(SpeedTable, SpeedsAreThoseOfTheProfile) {
  const auto linear = TableOf(Linear({1, 2, 8}));
  for (const int gpus : {1, 2, 4, 8}) EXPECT_NEAR(SpeedOf(linear, gpus), 320 * gpus, 16 * gpus) << gpus;

  const auto saturating = TableOf(WithKneeAt8("A100"), "A100", 1, 16);
  EXPECT_NEAR(SpeedOf(saturating, 8), 8 * 32 / 0.106, 1);
  EXPECT_NEAR(SpeedOf(saturating, 16), 16 * 32 / 0.210, 1);
}

TEST(SpeedTable, OneSizeIsNoTable) {
  EXPECT_THAT(TableOf({}), IsEmpty());
  EXPECT_THAT(TableOf(Linear({4})), IsEmpty());
  EXPECT_THAT(TableOf(Linear({4, 4, 4})), IsEmpty());
}

TEST(SpeedTable, IsAboutOneGpuType) {
  const Points both = Linear({1, 2, 4}, "A100") + Linear({1, 2, 4}, "H100", 50);
  struct Case {
    const char* name;
    Points points;
    std::string gpu_type;
    double want;  // The speed of two GPUs; 0: an empty table.
  };
  for (const Case& c : {Case{"its own of two", both, "A100", 640}, Case{"its own of two", both, "H100", 1280},
                        Case{"not known, two", both, "", 0}, Case{"another", both, "T4", 0},
                        Case{"not known, one", Linear({1, 2}, "H100", 50), "", 1280},
                        Case{"none in the profile either", Linear({1, 2}, ""), "", 640},
                        Case{"none in the profile", Linear({1, 2}, ""), "A100", 0}}) {
    EXPECT_NEAR(SpeedOf(TableOf(c.points, c.gpu_type), 2), c.want, 1) << c.name;
  }
}

TEST(SpeedTable, IsAboutTheBatchSizeWithTheMostPoints) {
  Points points = Linear({1, 2, 4});
  for (const int gpus : {1, 16}) points.push_back(MakePoint({"A100", gpus, 0, 64}, 400, 1000, 64));
  const auto table = TableOf(points);
  EXPECT_NEAR(SpeedOf(table, 4), 4 * 320, 1);
  EXPECT_EQ(SpeedOf(table, 16), 0);
}

TEST(SpeedTable, ABatchThatAllShareIsAtMostOneSampleForEachGpu) {
  Points points;
  for (const int gpus : {1, 2, 4}) points.push_back(MakePoint({"A100", gpus, 1, 0}, 100.0 / gpus, 1000, 4.0 / gpus));
  EXPECT_THAT(SizesOf(TableOf(points)), ElementsAre(1, 2, 4));
}

TEST(SpeedTable, AWorkerIsOnOneNode) {
  Points points;
  for (const int nodes : {1, 2, 3, 6, 8}) points.push_back(MakePoint({"A100", 5 * nodes, nodes, 32}, 100 + 10 * nodes));
  const auto roomy = TableOf(points, "A100", 5, 4, 8), full = TableOf(points, "A100", 5, 4, 5);
  ASSERT_GT(SpeedOf(full, 20), 0);
  EXPECT_EQ(SpeedOf(roomy, 20), SpeedOf(full, 20));  // Four nodes; 20 GPUs alone would fit on three of 8.
}

TEST(SpeedTable, OfTwoLayoutsOfASizeTheOneOnFewerNodesCounts) {
  const Points points = Linear({1, 2}) + Points{MakePoint({"A100", 8, 8, 32}, 300), MakePoint({"A100", 8, 1, 32}, 110)};
  EXPECT_NEAR(SpeedOf(TableOf(points), 8), 8 * 32 / 0.110, 1);
}

TEST(SpeedTable, TheOrderOfPointsDoesNotMatter) {
  Points points = WithKneeAt8("A100");
  const auto sorted = TableOf(points);
  std::reverse(points.begin(), points.end());
  const auto reversed = TableOf(points);
  ASSERT_EQ(SizesOf(reversed), SizesOf(sorted));
  for (const SpeedPoint& point : sorted) EXPECT_NEAR(SpeedOf(reversed, point.gpus), point.speed, 1e-6 * point.speed);
}

TEST(SpeedTable, PointsThatCannotBeAreLeftOut) {
  for (const char* speed : {"", "0", "0.0", "-100", "nan", "inf", "1e9", "fast", "1.2.3"}) {
    Points points = Linear({1, 2, 4, 8});
    points[3].measured.throughput = points[3].measured.step_milliseconds = speed;
    ExpectSound(TableOf(points));
    EXPECT_NEAR(SpeedOf(TableOf(points), 4), 4 * 320, 1) << speed;
  }
  for (const int gpus : {0, -1, -kLargestInt}) {
    Points points = Linear({1, 2, 4, 8});
    points[3].config.gpus = gpus;
    EXPECT_NEAR(SpeedOf(TableOf(points), 4), 4 * 320, 1) << gpus;
  }
}

TEST(SpeedTable, NumbersBelowOneAreNoQuestion) {
  for (const int number : {0, -1, -kLargestInt}) {
    EXPECT_THAT(TableOf(Linear({1, 2}), "A100", number), IsEmpty());
    EXPECT_THAT(TableOf(Linear({1, 2}), "A100", 1, number), IsEmpty());
    EXPECT_THAT(TableOf(Linear({1, 2}), "A100", 1, 8, number), IsEmpty());
  }
}

TEST(SpeedTable, IsSoundWhateverTheProfileSays) {
  constexpr int kCounts[] = {-1, 0, 1, 2, 3, 8, 1000, kLargestInt};
  constexpr int kBatches[] = {-1, 0, 32, kLargestInt};
  const std::string kNumbers[] = {"",
                                  "0",
                                  "-1",
                                  "nan",
                                  "0.000000001",
                                  "1",
                                  "100",
                                  "999999999999999",
                                  std::string(300, '9'),
                                  "0." + std::string(300, '0') + "1"};
  std::mt19937 random(1);  // The seed is fixed: the same profiles each time.
  const auto any = [&](const auto& list) { return list[random() % std::size(list)]; };
  int answers = 0;
  for (int round = 0; round < 2000; ++round) {
    api::WorkloadProfile profile = MakeProfile({});
    profile.spec.throughput_unit = static_cast<api::ThroughputUnit>(random() % 4);
    for (std::size_t i = random() % 6; i > 0; --i) {
      api::ProfilePoint point = MakePoint({"A100", any(kCounts), any(kCounts), any(kBatches)}, 100);
      if (random() % 2 == 0) point.measured.throughput = any(kNumbers);
      if (random() % 2 == 0) point.measured.step_milliseconds = any(kNumbers);
      profile.spec.points.push_back(point);
    }
    const auto table = SpeedTableOf(profile.spec, "A100", any(kCounts), any(kCounts), any(kCounts));
    SCOPED_TRACE(round);
    ExpectSound(table);
    answers += !table.empty();
  }
  EXPECT_GT(answers, 20);  // Otherwise this test sees only empty tables.
}

}  // namespace
}  // namespace grus
