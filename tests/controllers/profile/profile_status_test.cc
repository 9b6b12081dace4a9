// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/profile_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/model/json_writer.h"
#include "clientlib/testing/fake_clock.h"
#include "tests/controllers/profile/profile_builders.h"

namespace grus {
namespace {

using testing::AtSecond;
using testing::MakePoint;
using testing::MakeProfile;
using testing::WithKneeAt8;

constexpr kube::WallTime kNow = kube::testing::FakeClock::kWallStart;

TEST(ProfileStatus, HasAModelAndAKneeForEachGpuType) {
  std::vector<api::ProfilePoint> points = WithKneeAt8("A100");
  for (const api::ProfilePoint& point : WithKneeAt8("H100")) points.push_back(point);
  points.push_back(MakePoint({"T4", 1, 1, 32}, 400));

  const api::WorkloadProfileStatus status = ProfileStatusOf(MakeProfile(points), kNow);

  EXPECT_EQ(status.observed_generation, 3);
  EXPECT_EQ(status.points, 11);
  EXPECT_EQ(status.gpus, "A100,H100,T4");
  EXPECT_EQ(status.knee, "8,8,?");
  ASSERT_EQ(status.gpu_types.size(), 3u);
  EXPECT_EQ(status.gpu_types[0].points, 5);
  EXPECT_EQ(status.gpu_types[0].model.gpu_type, "A100");
  EXPECT_FALSE(status.gpu_types[0].model.form.empty());
  const auto* ready = kube::FindCondition(status.conditions, "Ready");
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->message, "11 measurements; knee: 8 GPUs on A100, 8 GPUs on H100");
}

TEST(ProfileStatus, AtTheLargestSizeMeasuredTheKneeIsThereOrBeyond) {
  const api::WorkloadProfileStatus growing =
      ProfileStatusOf(MakeProfile({MakePoint({"A100", 1, 1, 32}, 100), MakePoint({"A100", 2, 1, 32}, 102),
                                   MakePoint({"A100", 4, 1, 32}, 104), MakePoint({"A100", 8, 1, 32}, 106)}),
                      kNow);

  EXPECT_EQ(growing.knee, "8+");
  EXPECT_FALSE(growing.gpu_types[0].knee_gpus);
  EXPECT_EQ(kube::FindCondition(growing.conditions, "Ready")->message, "4 measurements; knee: 8 GPUs or more on A100");
}

TEST(ProfileStatus, ComputedAgainIsTheSame) {
  api::WorkloadProfile profile = MakeProfile(WithKneeAt8("A100"));
  profile.status = ProfileStatusOf(profile, kNow);
  EXPECT_EQ(ProfileStatusOf(profile, kNow + std::chrono::hours(1)), profile.status);
}

TEST(ProfileStatus, PointsWithoutASpeedAreCountedAndNotUsed) {
  std::vector<api::ProfilePoint> points = {MakePoint({"A100", 1, 1, 32}, 100), MakePoint({"", 0, 0, 0}, 100)};
  points[0].measured = {};
  const api::WorkloadProfileStatus status = ProfileStatusOf(MakeProfile(points), kNow);
  EXPECT_EQ(status.points, 2);
  EXPECT_EQ(status.gpus, "any,A100");
  EXPECT_EQ(status.knee, "?,?");
}

TEST(ProfileStatus, AnEmptyProfileIsNotReady) {
  EXPECT_FALSE(kube::IsConditionTrue(ProfileStatusOf(MakeProfile({}), kNow).conditions, "Ready"));
}

api::ProfileDrift DriftTo(const api::ProfilePoint& point, const std::string& throughput) {
  api::ProfileDrift drift{"team-a/bert", point.config, point.measured, {}, AtSecond(2000)};
  drift.observed.throughput = throughput;
  return drift;
}

TEST(ProfileStatus, DriftStaysUntilItsConfigurationIsMeasuredAgain) {
  api::WorkloadProfile profile = MakeProfile(WithKneeAt8("A100"));
  profile.status.drift = DriftTo(profile.spec.points[3], "1500");
  const api::WorkloadProfileStatus drifted = ProfileStatusOf(profile, kNow);
  EXPECT_TRUE(drifted.drift);
  EXPECT_EQ(kube::FindCondition(drifted.conditions, "Drifted")->reason, kReasonSlower);

  profile.status = drifted;
  profile.spec.points[3].time = AtSecond(3000);
  const api::WorkloadProfileStatus again = ProfileStatusOf(profile, kNow);
  EXPECT_FALSE(again.drift);
  EXPECT_FALSE(kube::IsConditionTrue(again.conditions, "Drifted"));
  EXPECT_EQ(kube::FindCondition(again.conditions, "Drifted")->reason, kReasonMeasuredAgain);
  profile.status = again;
  EXPECT_EQ(ProfileStatusOf(profile, kNow), again);
}

TEST(ProfileStatus, ADriftThatIsTakenAwaySaysThatTheJobAgrees) {
  api::WorkloadProfile profile = MakeProfile(WithKneeAt8("A100"));
  profile.status.drift = DriftTo(profile.spec.points[3], "9999");
  profile.status = ProfileStatusOf(profile, kNow);
  EXPECT_EQ(kube::FindCondition(profile.status.conditions, "Drifted")->reason, kReasonFaster);

  profile.status.drift.reset();
  const api::WorkloadProfileStatus agrees = ProfileStatusOf(profile, kNow);
  EXPECT_FALSE(kube::IsConditionTrue(agrees.conditions, "Drifted"));
  EXPECT_EQ(kube::FindCondition(agrees.conditions, "Drifted")->reason, kReasonAgrees);
}

TEST(DriftMessage, SaysWhatWasExpectedWithItsIntervalAndWhatIs) {
  api::ProfilePoint point = MakePoint({"A100", 4, 0, 0}, 160);
  point.measured.throughput_low = "776";
  point.measured.throughput_high = "824";
  EXPECT_EQ(DriftMessage(DriftTo(point, "500"), api::ThroughputUnit::kSamplesPerSecond),
            "expected 800 samples/s +- 3 % on 4 A100 GPUs, team-a/bert runs at 500");
}

}  // namespace
}  // namespace grus
