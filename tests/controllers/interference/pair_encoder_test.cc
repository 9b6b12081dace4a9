// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_encoder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace grus {
namespace {

SharedJob Job(const std::string& name, double utilization, double step) {
  SharedJob job{name, "", {}};
  job.solo.gpu_utilization = utilization;
  job.solo.step_milliseconds = step;
  return job;
}

TEST(PairEncoder, CountsFeaturesInDeviationsFromTheirMean) {
  const SharedJob a = Job("a", 20, 10), b = Job("b", 80, 40);
  const PairEncoder encoder({{a, b, "", 0.5, 1}, {b, a, "", 0.5, 1}});
  const PairPoint point = encoder.Encode(a, b, "");
  EXPECT_NEAR(point.features[0], -1, 1e-12);  // Utilisation of the job: 20, where 50 is the mean, 30 the deviation.
  EXPECT_NEAR(point.features[3], 1, 1e-12);
  EXPECT_NEAR(point.features[6], -1, 1e-12);  // Log of the ratio of step times.
  EXPECT_FALSE(point.is_known[1]);            // No bandwidth.
}

TEST(PairEncoder, OnlyTheRatioOfStepTimesCounts) {
  const SharedJob a = Job("a", 20, 10), b = Job("b", 80, 40), slow_a = Job("a", 20, 100), slow_b = Job("b", 80, 400);
  const PairEncoder encoder({{a, b, "", 0.5, 1}, {b, a, "", 0.5, 1}});
  EXPECT_NEAR(encoder.Encode(a, b, "").features[6], encoder.Encode(slow_a, slow_b, "").features[6], 1e-12);
}

TEST(PairEncoder, AFeatureThatNeverWasSeenIsNotUsed) {
  const PairEncoder encoder({{{"a", "", {}}, {"b", "", {}}, "", 0.5, 1}});
  EXPECT_FALSE(encoder.Encode(Job("a", 20, 10), Job("b", 80, 40), "").is_known[0]);
}

TEST(PairEncoder, NamesThatWereNotSeenAreNegative) {
  const PairEncoder encoder({{{"a:8", "", {}}, {"b:8", "", {}}, "k80", 0.5, 1}});
  const PairPoint point = encoder.Encode({"a:16", "", {}}, {"c:8", "", {}}, "v100");
  EXPECT_LT(point.job, 0);
  EXPECT_GE(point.job_family, 0);
  EXPECT_EQ(point.job_size, 4);
  EXPECT_LT(point.partner_family, 0);
  EXPECT_LT(point.gpu_type, 0);
  EXPECT_LT(encoder.Encode({}, {}, "k80").job, 0);
  EXPECT_LT(encoder.Encode({}, {}, "k80").job_family, 0);
}

TEST(PairEncoder, EachGpuTypeHasItsScaleAndFewSamplesThatOfAll) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < 50; ++i) {
    samples.push_back({{"a", "", {}}, {"b", "", {}}, "slow", 0.25, 1});
    samples.push_back({{"a", "", {}}, {"b", "", {}}, "fast", 1, 1});
  }
  const PairEncoder encoder(samples);
  EXPECT_GT(encoder.ScaleOf("slow").mean, 1.2);
  EXPECT_LT(encoder.ScaleOf("fast").mean, 0.1);
  EXPECT_NEAR(encoder.ScaleOf("other").mean, -std::log(0.5), 0.05);
  EXPECT_GT(encoder.ScaleOf("slow").deviation, 0);
}

TEST(LogSlowDown, NoiseAboveSoloIsSolo) {
  EXPECT_EQ(LogSlowDown(1.05), 0);
  EXPECT_NEAR(LogSlowDown(0.5), std::log(2), 1e-12);
}

}  // namespace
}  // namespace grus
