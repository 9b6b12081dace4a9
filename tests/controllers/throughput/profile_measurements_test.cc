// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/profile_measurements.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/controllers/profile/profile_builders.h"

namespace grus {
namespace {

using testing::MakePoint;
using testing::MakeProfile;
using testing::WithKneeAt8;

TEST(MeasurementsOf, BatchesOfOneGpuFollowFromSpeedAndStepTime) {
  const TypeMeasurements measured = MeasurementsOf(MakeProfile(WithKneeAt8("A100")).spec, "A100");
  ASSERT_EQ(measured.all.size(), 5u);
  EXPECT_FALSE(measured.is_total_fixed);
  EXPECT_EQ(measured.batch_size, 32);
  EXPECT_EQ(measured.all[4].size, (JobSize{2, 16, 32}));
}

TEST(MeasurementsOf, ABatchThatAllShareIsFixedInTotal) {
  std::vector<api::ProfilePoint> points;
  for (const int gpus : {1, 2, 4}) points.push_back(MakePoint({"A100", gpus, 1, 0}, 100.0 / gpus, 1000, 128.0 / gpus));
  const TypeMeasurements samples = MeasurementsOf(MakeProfile(points).spec, "A100");
  EXPECT_TRUE(samples.is_total_fixed);
  EXPECT_EQ(samples.batch_size, 128);

  api::WorkloadProfile steps = MakeProfile(points);
  steps.spec.throughput_unit = api::ThroughputUnit::kStepsPerSecond;
  EXPECT_TRUE(MeasurementsOf(steps.spec, "A100").is_total_fixed);
}

TEST(MeasurementsOf, SamplesASecondAloneAreAMeasurement) {
  std::vector<api::ProfilePoint> points = {MakePoint({"A100", 4, 1, 32}, 100)};
  points[0].measured.step_milliseconds = "";
  const TypeMeasurements measured = MeasurementsOf(MakeProfile(points).spec, "A100");
  ASSERT_EQ(measured.all.size(), 1u);
  EXPECT_EQ(measured.all[0].size.local_batch_size, 32);
  EXPECT_NEAR(measured.all[0].step_seconds, 0.1, 1e-9);
}

TEST(MeasurementsOf, NodesThatAreNotKnownAreAsFullAsTheOthers) {
  const auto points = {MakePoint({"A100", 4, 1, 32}, 100), MakePoint({"A100", 16, 0, 32}, 120)};
  EXPECT_EQ(MeasurementsOf(MakeProfile(points).spec, "A100").all[1].size.nodes, 4);
}

TEST(GpusPerNode, IsTheMostOfAnyPoint) {
  constexpr int kLargestInt = std::numeric_limits<int>::max();
  const auto gpus_per_node = [](int gpus, int nodes) {
    return GpusPerNode(MakeProfile({MakePoint({"A100", gpus, nodes, 32}, 100)}).spec, "A100");
  };
  EXPECT_EQ(gpus_per_node(5, 2), 3);
  EXPECT_EQ(gpus_per_node(4, 0), 8);
  EXPECT_EQ(gpus_per_node(0, 1), 8);
  EXPECT_EQ(gpus_per_node(kLargestInt, 1), kLargestInt);
  EXPECT_EQ(gpus_per_node(kLargestInt, 2), kLargestInt / 2 + 1);
}

}  // namespace
}  // namespace grus
