// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/profile_drift.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

using namespace std::chrono_literals;

const kube::Time kMeasured{kube::WallTime(1000s)}, kSeen{kube::WallTime(2000s)};
const api::TrialConfig kConfig{"A100", 8, 1, 32};

api::Measurement Speed(const std::string& mean, const std::string& low = "", const std::string& high = "") {
  api::Measurement measured;
  measured.throughput = mean;
  measured.throughput_low = low;
  measured.throughput_high = high;
  return measured;
}

api::WorkloadProfileSpec Profile() {
  api::WorkloadProfileSpec profile;
  profile.points.push_back({"A100-8g-1n-32b", kConfig, Speed("100", "95", "105"), 480, "team-a/try", kMeasured});
  return profile;
}

ObservedSpeed Seen(const api::Measurement& speed) { return {"team-a/bert", kConfig, speed, kSeen}; }

TEST(FindDrift, IsWhatLiesOutsideTheIntervalByMoreThanTheSlack) {
  struct Case {
    const char* throughput;
    bool is_drift;
  };
  for (const Case& c : {Case{"100", false}, Case{"126", false}, Case{"126.1", true}, Case{"1000000", true},
                        Case{"79.2", false}, Case{"79.1", true}}) {
    EXPECT_EQ(FindDrift(Profile(), Seen(Speed(c.throughput)), 20).has_value(), c.is_drift) << c.throughput;
  }
}

TEST(FindDrift, WhatTheJobIsNotSureOfIsNoDrift) {
  EXPECT_TRUE(FindDrift(Profile(), Seen(Speed("70", "68", "72")), 20));
  EXPECT_FALSE(FindDrift(Profile(), Seen(Speed("70", "50", "90")), 20));
}

TEST(FindDrift, NonsenseIsNoObservation) {
  for (const char* throughput : {"", "0", "-1", "nan", "inf", "fast"}) {
    EXPECT_FALSE(FindDrift(Profile(), Seen(Speed(throughput)))) << throughput;
  }
}

TEST(FindDrift, SaysNothingOfOtherConfigurations) {
  for (const api::TrialConfig& config :
       {api::TrialConfig{"H100", 8, 1, 32}, {"A100", 4, 1, 32}, {"A100", 8, 1, 64}, {"A100", 8, 2, 32}}) {
    ObservedSpeed seen = Seen(Speed("500"));
    seen.config = config;
    EXPECT_FALSE(FindDrift(Profile(), seen)) << ToText(config);
  }
}

TEST(FindDrift, NodesThatAreNotKnownMatchAny) {
  ObservedSpeed seen = Seen(Speed("500"));
  seen.config.nodes = 0;
  EXPECT_TRUE(FindDrift(Profile(), seen));
}

TEST(FindDrift, WhatWasMeasuredSinceIsNotOldNews) {
  ObservedSpeed seen = Seen(Speed("500"));
  seen.time = kube::Time{kMeasured.value - 1s};
  EXPECT_FALSE(FindDrift(Profile(), seen));
}

TEST(FindDrift, SaysWhoWhereAndBothSpeeds) {
  const auto drift = FindDrift(Profile(), Seen(Speed("60")));
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->job, "team-a/bert");
  EXPECT_EQ(drift->config, kConfig);
  EXPECT_EQ(drift->expected, Profile().points[0].measured);
  EXPECT_EQ(drift->observed, Speed("60"));
  EXPECT_EQ(drift->time, kSeen);
  EXPECT_TRUE(IsSlower(*drift));
  EXPECT_FALSE(IsSlower(*FindDrift(Profile(), Seen(Speed("160")))));
}

TEST(FindPoint, IsTheNewestOfThoseThatMatch) {
  api::WorkloadProfileSpec profile = Profile();
  profile.points.push_back({"A100-8g-0n-32b", {"A100", 8, 0, 32}, Speed("90"), 480, "team-a/try", kSeen});
  EXPECT_EQ(FindPoint(profile, kConfig), &profile.points[1]);
  EXPECT_EQ(FindPoint(profile, {"A100", 8, 2, 32}), &profile.points[1]);
  EXPECT_EQ(FindPoint(profile, {"A100", 4, 1, 32}), nullptr);
}

TEST(ToText, NamesWhatIsKnownOfAConfiguration) {
  EXPECT_EQ(ToText({"A100", 8, 2, 32}), "8 A100 GPUs on 2 nodes with batch size 32");
  EXPECT_EQ(ToText({"", 1, 0, 0}), "1 GPU");
}

}  // namespace
}  // namespace grus
