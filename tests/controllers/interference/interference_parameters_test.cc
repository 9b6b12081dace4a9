// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/interference_parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace grus {
namespace {

// Twelve families that differ in their first feature; the target follows it, or does not.
PairTargets Targets(bool feature_tells) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  PairTargets known;
  std::vector<double> feature, hidden;
  for (int i = 0; i < 12; ++i) {
    feature.push_back(normal(random));
    hidden.push_back(normal(random));
  }
  for (int job = 0; job < 12; ++job) {
    for (int partner = 0; partner < 12; ++partner) {
      PairPoint point;
      point.job = point.job_family = job;
      point.partner = point.partner_family = partner;
      point.gpu_type = 0;
      point.is_known[0] = true;
      point.features[0] = feature[static_cast<std::size_t>(job)];
      known.points.push_back(point);
      known.targets.push_back((feature_tells ? feature : hidden)[static_cast<std::size_t>(job)] + 0.1 * normal(random));
      known.noise_shares.push_back(1);
    }
  }
  return known;
}

TEST(LearnParameters, FeaturesCountWhereTheyTellOtherFamilies) {
  const PairTargets known = Targets(true);
  EXPECT_GT(LearnParameters(known, std::vector<double>(known.targets.size(), 0.3)).features_weight, 0.8);
}

TEST(LearnParameters, WithoutFeaturesTheirWeightIsZero) {
  PairTargets known = Targets(false);
  for (PairPoint& point : known.points) point.is_known[0] = false;
  EXPECT_EQ(LearnParameters(known, std::vector<double>(known.targets.size(), 0.3)).features_weight, 0);
}

TEST(LearnParameters, WidthsAreNeverBelowWhatTheProcessSays) {
  for (const bool feature_tells : {true, false}) {
    const PairTargets known = Targets(feature_tells);
    const auto learned = LearnParameters(known, std::vector<double>(known.targets.size(), 0.3));
    ASSERT_EQ(learned.known_jobs_widths.size(), 1u);
    EXPECT_GE(learned.known_jobs_widths[0], 1);
    EXPECT_GE(learned.new_job_width, 1);
    EXPECT_GT(learned.new_family_width, learned.new_job_width);
  }
}

TEST(LearnParameters, OneCoRunIsEnough) {
  PairTargets known = Targets(true);
  known.points.resize(1);
  known.targets.resize(1);
  known.noise_shares.resize(1);
  const auto learned = LearnParameters(known, {0.3});
  EXPECT_TRUE(std::isfinite(learned.new_family_width));
  EXPECT_GE(learned.features_weight, 0);
  EXPECT_LE(learned.features_weight, 1);
}

}  // namespace
}  // namespace grus
