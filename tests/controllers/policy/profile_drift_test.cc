// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/profile_drift.h"

#include <gtest/gtest.h>

#include <cmath>

namespace grus {
namespace {

using namespace std::chrono_literals;

const kube::Time kMeasured{kube::WallTime(1000s)}, kSeen{kube::WallTime(2000s)};
const api::TrialConfig kConfig{"A100", 8, 1, 32};

api::WorkloadProfileSpec Profile() {
  api::WorkloadProfileSpec profile;
  api::Measurement measured;
  measured.step_milliseconds = "100";
  measured.step_milliseconds_low = "95";
  measured.step_milliseconds_high = "105";
  profile.points.push_back({"A100-8g-1n-32b", kConfig, measured, 480, "team-a/try", kMeasured});
  return profile;
}

ObservedStep Seen(double milliseconds) { return {"team-a/bert", kConfig, milliseconds, kSeen}; }

TEST(FindDrift, IsWhatLiesOutsideTheIntervalByMoreThanTheSlack) {
  struct Case {
    double milliseconds;
    bool is_drift;
  };
  for (const Case& c : {Case{100, false}, Case{126, false}, Case{126.1, true}, Case{1e6, true},
                        Case{79.2, false}, Case{79.1, true}}) {
    EXPECT_EQ(FindDrift(Profile(), Seen(c.milliseconds), 20).has_value(), c.is_drift) << c.milliseconds;
  }
}

TEST(FindDrift, NonsenseIsNoObservation) {
  for (const double milliseconds : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(FindDrift(Profile(), Seen(milliseconds))) << milliseconds;
  }
}

TEST(FindDrift, SaysNothingOfOtherConfigurations) {
  for (const api::TrialConfig& config :
       {api::TrialConfig{"H100", 8, 1, 32}, {"A100", 4, 1, 32}, {"A100", 8, 1, 64}, {"A100", 8, 2, 32}}) {
    ObservedStep seen = Seen(500);
    seen.config = config;
    EXPECT_FALSE(FindDrift(Profile(), seen)) << ToText(config);
  }
}

TEST(FindDrift, NodesThatAreNotKnownMatchAny) {
  ObservedStep seen = Seen(500);
  seen.config.nodes = 0;
  EXPECT_TRUE(FindDrift(Profile(), seen));
}

TEST(FindDrift, WhatWasMeasuredSinceIsNotOldNews) {
  ObservedStep seen = Seen(500);
  seen.time = kube::Time{kMeasured.value - 1s};
  EXPECT_FALSE(FindDrift(Profile(), seen));
}

TEST(DriftMessage, SaysWhoWhereAndByHowMuch) {
  const auto drift = FindDrift(Profile(), Seen(130.04));
  ASSERT_TRUE(drift);
  EXPECT_EQ(DriftMessage(*drift),
            "team-a/bert takes 130 ms a step on 8 A100 GPUs on 1 node with batch size 32, 30 % more than the "
            "100 ms "
            "that were measured");
  EXPECT_EQ(drift->time, kSeen);
}

}  // namespace
}  // namespace grus
