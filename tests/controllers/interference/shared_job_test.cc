// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/shared_job.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace grus {
namespace {

TEST(FamilyOf, IsTheNameWithoutTheBatchSize) {
  struct Case {
    const char* fingerprint;
    std::optional<double> batch_size;
    const char* family;
    double size;
  };
  const Case kCases[] = {
      {"ResNet-18 (batch size 64)", {}, "ResNet-18", 64},
      {"('LM (batch size 5)', 1)", {}, "('LM', 1)", 5},
      {"bert_bs32", {}, "bert", 32},
      {"bert-batch_size=8", {}, "bert", 8},
      {"bert:32", {}, "bert", 32},
      {"resnet-50", {}, "resnet", 50},       // Nothing says that this is no batch size.
      {"resnet-50", 16.0, "resnet-50", 16},  // This does.
      {"resnet50", {}, "resnet50", 0},
      {"resnet50-bs128", 64.0, "resnet50", 64},
      {"web2", {}, "web2", 0},
      {"a:0", {}, "a:0", 0},
      {"a:99999999999999999999", {}, "a:99999999999999999999", 0},
      {"32", {}, "32", 0},
      {":32", {}, ":32", 0},
      {"A3C", {}, "A3C", 0},
      {"", {}, "", 0},
  };
  for (const Case& c : kCases) {
    SharedJob job{c.fingerprint, "", {}};
    job.solo.batch_size = c.batch_size;
    const WorkloadFamily family = FamilyOf(job);
    EXPECT_EQ(family.name, c.family) << c.fingerprint;
    EXPECT_EQ(family.batch_size, c.size) << c.fingerprint;
  }
}

TEST(FamilyOf, IsWhatTheCallerSays) {
  SharedJob job{"9f3c-12", "resnet-50", {}};
  EXPECT_EQ(FamilyOf(job).name, "resnet-50");
  EXPECT_EQ(FamilyOf(job).batch_size, 0);
  job.solo.batch_size = 32;
  EXPECT_EQ(FamilyOf(job).batch_size, 32);
}

TEST(WhyNoSpeed, AllowsNoiseAboveSoloAndNothingElseOutsideOfIt) {
  for (const double good : {0.001, 0.5, 1.0, 1.05, kMaxSpeedShare}) EXPECT_FALSE(WhyNoSpeed(good)) << good;
  for (const double bad : {0.0, 1e-6, -0.5, 1.11, 85.0, double{INFINITY}, double{NAN}})
    EXPECT_TRUE(WhyNoSpeed(bad)) << bad;
}

TEST(WhyNoFeatures, NamesWhatCannotBe) {
  SoloFeatures solo;
  EXPECT_FALSE(WhyNoFeatures(solo));
  solo.gpu_utilization = 0;
  EXPECT_FALSE(WhyNoFeatures(solo));
  solo.gpu_utilization = NAN;
  EXPECT_TRUE(WhyNoFeatures(solo));
  solo = {};
  solo.memory_mebibytes = 0;
  EXPECT_TRUE(WhyNoFeatures(solo));
}

TEST(WithPossibleFeatures, DropsOnlyWhatCannotHaveBeenMeasured) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const SharedJob job = WithPossibleFeatures({"a", "f", {none, 0, -1, 5, std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(job, (SharedJob{"a", "f", {std::nullopt, 0, std::nullopt, 5, std::nullopt}}));
}

}  // namespace
}  // namespace grus
