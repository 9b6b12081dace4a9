// SPDX-License-Identifier: Apache-2.0
// WorkloadProfiles as the store writes them, against the rules of a real API server.
#include "controllers/profile/profile_store.h"

#include <gmock/gmock.h>

#include "tests/controllers/profile/profile_builders.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using ::testing::SizeIs;

class ProfileStoreOnServer : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }

  void SetUp() override {
    ElasticJob::SetUp();
    speeds_.fingerprint = ns();  // A legal name that no other test has.
    speeds_.workload.image = "example.com/bert@sha256:aaaa";
    speeds_.workload.resources["cpu"] = kube::Quantity::OfMilli(1500);
    speeds_.unit = api::ThroughputUnit::kSamplesPerSecond;
  }
  void TearDown() override {
    Must(client().Delete(kube::KindOf<api::WorkloadProfile>(), {"", ns()}));
    ElasticJob::TearDown();
  }
  std::shared_ptr<api::WorkloadProfile> Profile() { return Must(client().Get<api::WorkloadProfile>({"", ns()})); }

  kube::SystemClock clock_;
  kube::Log log_{kube::LogLevel::kOff};
  kube::Informer profiles_{client(), kube::KindOf<api::WorkloadProfile>(), {}, clock_, log_};
  ProfileStore store_{client(), profiles_, clock_};
  NewSpeeds speeds_;
};

TEST_F(ProfileStoreOnServer, MakesAProfileAddsToItAndTellsADrift) {
  speeds_.points = {MakePoint({"A100", 1, 1, 32}, 100), MakePoint({"A100", 2, 1, 32}, 102)};
  Must(store_.Save(speeds_));
  speeds_.points = {MakePoint({"A100", 4, 1, 32}, 104), MakePoint({"A100", 8, 1, 32}, 106),
                    MakePoint({"A100", 16, 2, 32}, 210), MakePoint({"", 1, 0, 0}, 400)};
  Must(store_.Save(speeds_));

  const auto profile = Profile();
  EXPECT_THAT(profile->spec.points, SizeIs(6));
  EXPECT_EQ(profile->status.points, 6);
  EXPECT_EQ(profile->status.gpus, "any,A100");
  EXPECT_EQ(profile->status.knee, "?,8");
  EXPECT_TRUE(kube::IsConditionTrue(profile->status.conditions, "Ready"));
  EXPECT_EQ(profile->status.observed_generation, profile->metadata.generation);

  Must(store_.Save(speeds_));
  EXPECT_EQ(Profile()->metadata.resource_version,
            profile->metadata.resource_version);  // Nothing was written.

  api::ProfileDrift drift{"team-a/bert", profile->spec.points[0].config, profile->spec.points[0].measured, {}, {}};
  drift.observed.throughput = "1";
  drift.time = kube::Time{clock_.WallNow()};
  Must(store_.Edit(ns(), [&](const api::WorkloadProfile&) { return ProfileEdit{{}, drift}; }));
  EXPECT_EQ(Profile()->status.drift->job, "team-a/bert");
  EXPECT_TRUE(kube::IsConditionTrue(Profile()->status.conditions, "Drifted"));
}

TEST_F(ProfileStoreOnServer, AFullProfileIsTaken) {
  for (int i = 1; i <= static_cast<int>(api::kMaxProfilePoints) + 8; ++i) {
    speeds_.points.push_back(MakePoint({std::string(63, 'g'), i, 1, 32}, 100 + i / 7.0, i));
  }
  Must(store_.Save(speeds_));
  EXPECT_THAT(Profile()->spec.points, SizeIs(api::kMaxProfilePoints));
  EXPECT_EQ(Profile()->status.points, api::kMaxProfilePoints);
}

}  // namespace
}  // namespace grus::testing
