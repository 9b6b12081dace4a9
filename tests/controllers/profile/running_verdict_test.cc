// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/running_verdict.h"

#include <gtest/gtest.h>

#include "controllers/profile/profile_store.h"
#include "tests/controllers/profile/profile_builders.h"

namespace grus {
namespace {

using testing::AtSecond;
using testing::MakePoint;

constexpr auto kSamples = api::ThroughputUnit::kSamplesPerSecond;
const api::TrialConfig kConfig{"A100", 4, 1, 0};

api::WorkloadProfile Profile(std::vector<api::ProfilePoint> points = {MakePoint({"A100", 4, 0, 0}, 160)}) {
  api::WorkloadProfile profile;
  profile.spec.throughput_unit = kSamples;
  profile.spec.points = std::move(points);
  return profile;
}

ObservedSpeed Seen(const std::string& throughput, int at_second = 5000, const std::string& job = "team-a/bert") {
  ObservedSpeed seen{job, kConfig, {}, AtSecond(at_second)};
  seen.measured.throughput = throughput;
  return seen;
}

SpeedVerdict VerdictOn(const api::WorkloadProfile& profile, const ObservedSpeed& seen) {
  return JudgeSpeed(profile, seen, kSamples, {}).verdict;
}

// The profile says 800 samples a second.
TEST(JudgeSpeed, TellsAgreementFromDrift) {
  struct Case {
    const char* throughput;
    SpeedVerdict want;
  };
  for (const Case& c : {Case{"800", SpeedVerdict::kAgrees}, Case{"700", SpeedVerdict::kAgrees},
                        Case{"500", SpeedVerdict::kDrifts}, Case{"1000", SpeedVerdict::kDrifts}}) {
    EXPECT_EQ(VerdictOn(Profile(), Seen(c.throughput)), c.want) << c.throughput;
  }
}

TEST(JudgeSpeed, WhatAgreesIsWrittenOnlyOnceTheValueIsOld) {
  const int week = static_cast<int>(std::chrono::seconds(kRefreshAfter).count());
  EXPECT_TRUE(JudgeSpeed(Profile(), Seen("790", 1000 + week - 1), kSamples, {}).edit.points.empty());
  const JudgedSpeed old = JudgeSpeed(Profile(), Seen("790", 1000 + week), kSamples, {});
  ASSERT_EQ(old.edit.points.size(), 1u);
  EXPECT_EQ(old.edit.points[0].measured.throughput, "790");
  EXPECT_EQ(old.edit.points[0].config, kConfig);
  EXPECT_EQ(old.edit.points[0].measured_by, "elastichorovodjob/team-a/bert");
}

TEST(JudgeSpeed, AConfigurationThatIsNotThereIsAdded) {
  const JudgedSpeed judged = JudgeSpeed(Profile({MakePoint({"A100", 8, 1, 0}, 100)}), Seen("500"), kSamples, {});
  EXPECT_EQ(judged.verdict, SpeedVerdict::kNew);
  ASSERT_EQ(judged.edit.points.size(), 1u);
  EXPECT_EQ(judged.edit.points[0].config, kConfig);
}

TEST(JudgeSpeed, SaysNothingOfAnotherUnitOrOfNone) {
  api::WorkloadProfile steps = Profile();
  steps.spec.throughput_unit = api::ThroughputUnit::kStepsPerSecond;
  EXPECT_EQ(VerdictOn(steps, Seen("500")), SpeedVerdict::kNotComparable);
  api::WorkloadProfile none = Profile({});
  none.spec.throughput_unit = api::ThroughputUnit::kNotKnown;
  EXPECT_EQ(JudgeSpeed(none, Seen("500"), api::ThroughputUnit::kNotKnown, {}).verdict, SpeedVerdict::kNotComparable);
}

TEST(JudgeSpeed, APointWithoutATypeCountsWhereThereIsOneTypeOnly) {
  const api::WorkloadProfile profile = Profile({MakePoint({"", 4, 0, 0}, 160)});
  EXPECT_EQ(VerdictOn(profile, Seen("500")), SpeedVerdict::kNew);
  const JudgedSpeed judged = JudgeSpeed(profile, Seen("500"), kSamples, {.may_be_untyped = true});
  EXPECT_EQ(judged.verdict, SpeedVerdict::kDrifts);
  EXPECT_EQ(judged.edit.drift->config, profile.spec.points[0].config);
}

TEST(JudgeSpeed, ADriftReplacesTheValueOnlyOnceItIsConfirmed) {
  const JudgedSpeed once = JudgeSpeed(Profile(), Seen("500"), kSamples, {});
  EXPECT_TRUE(once.edit.points.empty());
  EXPECT_EQ(once.edit.drift, once.drift);

  api::WorkloadProfile drifted = Profile();
  drifted.status.drift = once.drift;
  const JudgedSpeed twice = JudgeSpeed(drifted, Seen("505", 9000), kSamples, {.is_confirmed = true});
  EXPECT_EQ(twice.verdict, SpeedVerdict::kReplaces);
  ASSERT_EQ(twice.edit.points.size(), 1u);
  EXPECT_EQ(twice.edit.points[0].measured.throughput, "505");
}

// The status could not be written with the point: the drift stays for the status to say that it was measured again.
TEST(JudgeSpeed, AReplacementThatWasCutShortIsStillOne) {
  api::WorkloadProfile profile = Profile();
  profile.status.drift = JudgeSpeed(profile, Seen("500"), kSamples, {}).drift;
  const ObservedSpeed seen = Seen("505", 9000);
  const JudgedSpeed first = JudgeSpeed(profile, seen, kSamples, {.is_confirmed = true});
  profile.spec.points = MergePoints(profile.spec.points, first.edit.points);

  const JudgedSpeed again = JudgeSpeed(profile, seen, kSamples, {.is_confirmed = true});
  EXPECT_EQ(again.verdict, SpeedVerdict::kReplaces);
  EXPECT_EQ(again.drift, profile.status.drift);
  EXPECT_EQ(again.edit.drift, profile.status.drift);
  EXPECT_TRUE(again.edit.points.empty());
}

TEST(JudgeSpeed, TheSameDriftAgainIsNoNews) {
  api::WorkloadProfile profile = Profile();
  profile.status.drift = JudgeSpeed(profile, Seen("500"), kSamples, {}).drift;
  EXPECT_EQ(JudgeSpeed(profile, Seen("510", 6000), kSamples, {}).edit.drift, profile.status.drift);
  EXPECT_EQ(JudgeSpeed(profile, Seen("200", 6000), kSamples, {}).edit.drift->observed.throughput, "200");
}

TEST(JudgeSpeed, ADriftBelongsToItsJobWhileItStands) {
  api::WorkloadProfile profile = Profile();
  profile.status.drift = JudgeSpeed(profile, Seen("500"), kSamples, {}).drift;
  const DriftContext stands{.does_other_stand = true};
  struct Case {
    const char* job;
    const char* throughput;
    DriftContext context;
    const char* want;  // Whose drift there is then; null: none.
  };
  for (const Case& c : {Case{"team-a/bert", "800", {}, nullptr}, Case{"team-b/bert", "800", stands, "team-a/bert"},
                        Case{"team-b/bert", "800", {}, nullptr}, Case{"team-b/bert", "300", stands, "team-a/bert"},
                        Case{"team-b/bert", "300", {}, "team-b/bert"}}) {
    const auto drift = JudgeSpeed(profile, Seen(c.throughput, 6000, c.job), kSamples, c.context).edit.drift;
    ASSERT_EQ(drift.has_value(), c.want != nullptr) << c.job << " " << c.throughput;
    if (drift) {
      EXPECT_EQ(drift->job, c.want) << c.throughput;
    }
  }
}

TEST(JudgeSpeed, WhatIsInDoubtIsNotMadeYoung) {
  const int week = static_cast<int>(std::chrono::seconds(kRefreshAfter).count());
  api::WorkloadProfile profile = Profile();
  profile.status.drift = JudgeSpeed(profile, Seen("500"), kSamples, {}).drift;
  const ObservedSpeed other = Seen("800", 1000 + week, "team-b/bert");
  EXPECT_TRUE(JudgeSpeed(profile, other, kSamples, {.does_other_stand = true}).edit.points.empty());
}

}  // namespace
}  // namespace grus
