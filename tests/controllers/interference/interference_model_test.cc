// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/interference_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace grus {
namespace {

constexpr int kJobs = 10;

// Busier jobs suffer more and do more; job `i` of nine is used 10 * (i + 1) %.
SharedJob Job(int i) {
  SharedJob job{std::string("job-") + static_cast<char>('a' + i), "", {}};
  job.solo.gpu_utilization = 10 * (i + 1);
  job.solo.step_milliseconds = 100;
  return job;
}
double TrueSpeed(int i, int partner) { return 1 / (1 + 0.01 * (i + 1) * (partner + 1)); }

std::vector<CoRunSample> Samples(int left_out = -1) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < kJobs; ++i) {
    for (int j = 0; j < kJobs; ++j) {
      if (i != left_out && j != left_out) samples.push_back({Job(i), Job(j), "v100", TrueSpeed(i, j), 1});
    }
  }
  return samples;
}

InterferenceModel MustFit(std::vector<CoRunSample> samples) {
  auto model = InterferenceModel::Fit(std::move(samples));
  EXPECT_TRUE(model) << model.error().message();
  return *std::move(model);
}

SpeedShare Beside(const InterferenceModel& model, const SharedJob& job, const SharedJob& partner,
                  const std::string& type = "v100") {
  return model.Predict(job, std::vector<SharedJob>{partner}, type);
}

void ExpectOrdered(const SpeedShare& share) {
  EXPECT_GT(share.low, 0);
  EXPECT_LE(share.low, share.speed);
  EXPECT_LE(share.speed, share.high);
  EXPECT_LE(share.high, 1);
}

TEST(InterferenceModel, NothingKnownIsWhatIsUsualWithAWideInterval) {
  const InterferenceModel model;
  const SpeedShare share = Beside(model, Job(1), Job(2));
  ExpectOrdered(share);
  EXPECT_GT(share.speed, 0.5);
  EXPECT_LT(share.speed, 0.7);
  EXPECT_LT(share.low, 0.35);
  EXPECT_GT(share.high, 0.9);
  const SpeedShare other = Beside(model, {}, {}, "");
  EXPECT_EQ(other.speed, share.speed);  // Nobody differs from anybody.
  EXPECT_EQ(MustFit({}).Predict({}).size(), 0u);
}

TEST(InterferenceModel, FeaturesTellAJobThatWasNeverSeen) {
  const InterferenceModel model = MustFit(Samples(6));
  const SharedJob unnamed{"", "", Job(6).solo};
  for (const SharedJob& job : {Job(6), unnamed}) {
    const SpeedShare share = Beside(model, job, Job(3));
    ExpectOrdered(share);
    EXPECT_NEAR(share.speed, TrueSpeed(6, 3), 0.03);
    EXPECT_LE(share.low, TrueSpeed(6, 3));
    EXPECT_GE(share.high, TrueSpeed(6, 3));
  }
}

TEST(InterferenceModel, WithoutFeaturesANewJobIsLessSure) {
  const InterferenceModel model = MustFit(Samples());
  const SpeedShare known = Beside(model, Job(6), Job(3)), unknown = Beside(model, {"new", "", {}}, Job(3));
  ExpectOrdered(unknown);
  EXPECT_GT(unknown.high / unknown.low, 1.2 * known.high / known.low);
}

TEST(InterferenceModel, FeaturesThatARowLeavesOutAreThoseOfTheOtherRowsOfTheJob) {
  std::vector<CoRunSample> samples = Samples(6);
  const InterferenceModel complete = MustFit(samples);
  for (std::size_t i = 0; i < samples.size(); i += 3) samples[i].job.solo = samples[i].partner.solo = {};
  const InterferenceModel blanked = MustFit(samples);
  EXPECT_EQ(blanked.samples().size(), complete.samples().size());
  for (int partner = 0; partner < kJobs; ++partner) {
    EXPECT_EQ(Beside(blanked, Job(6), Job(partner)).speed, Beside(complete, Job(6), Job(partner)).speed);
  }
}

TEST(InterferenceModel, ANamedJobWithoutFeaturesIsAnsweredLikeOneWithThem) {
  const InterferenceModel model = MustFit(Samples(6));
  SharedJob only_name = Job(3);
  only_name.solo = {};
  const SpeedShare named = Beside(model, Job(6), only_name), with_features = Beside(model, Job(6), Job(3));
  EXPECT_EQ(named.speed, with_features.speed);
  EXPECT_EQ(named.low, with_features.low);
}

TEST(InterferenceModel, ThreeCoRunsCorrectAJobThatIsNotAsItsFeaturesSay) {
  const double odd = 0.5;  // Far slower than its features say.
  std::vector<CoRunSample> samples = Samples(6);
  const InterferenceModel before = MustFit(samples);
  for (const int partner : {0, 4, 8}) {
    samples.push_back({Job(6), Job(partner), "v100", odd * TrueSpeed(6, partner), 1});
    samples.push_back({Job(partner), Job(6), "v100", TrueSpeed(partner, 6), 1});
  }
  const InterferenceModel after = MustFit(samples);
  for (const int partner : {2, 5, 7}) {
    const double wanted = odd * TrueSpeed(6, partner);
    const double off_before = std::abs(Beside(before, Job(6), Job(partner)).speed / wanted - 1);
    const double off_after = std::abs(Beside(after, Job(6), Job(partner)).speed / wanted - 1);
    EXPECT_LT(off_after, off_before / 2) << partner;
  }
}

TEST(InterferenceModel, TheOrderOfSamplesChangesNothing) {
  std::vector<CoRunSample> samples = Samples();
  const InterferenceModel model = MustFit(samples);
  std::mt19937 random(3);
  std::shuffle(samples.begin(), samples.end(), random);
  const InterferenceModel shuffled = MustFit(samples);
  for (int i = 0; i < kJobs; ++i) {
    EXPECT_EQ(Beside(model, Job(i), Job(2)).speed, Beside(shuffled, Job(i), Job(2)).speed);
    EXPECT_EQ(Beside(model, Job(i), Job(2)).low, Beside(shuffled, Job(i), Job(2)).low);
  }
}

TEST(InterferenceModel, MorePartnersNeverMakeItFaster) {
  const InterferenceModel model = MustFit(Samples());
  std::vector<SharedJob> partners;
  SpeedShare last = model.Predict(Job(4), partners, "v100");
  EXPECT_EQ(last.speed, 1);
  EXPECT_EQ(last.low, 1);
  for (const SharedJob& partner : {Job(0), Job(9), SharedJob{}, Job(4)}) {
    partners.push_back(partner);
    const SpeedShare share = model.Predict(Job(4), partners, "v100");
    ExpectOrdered(share);
    EXPECT_LE(share.speed, last.speed);
    EXPECT_LE(share.low, last.low);
    EXPECT_LE(share.high, last.high);
    last = share;
  }
}

TEST(InterferenceModel, AnotherGpuTypeHelpsAndIsLessSure) {
  const InterferenceModel model = MustFit(Samples());
  const SpeedShare here = Beside(model, Job(7), Job(8)), there = Beside(model, Job(7), Job(8), "a100");
  ExpectOrdered(there);
  EXPECT_LT(there.low, here.low);
  EXPECT_LT(there.speed, Beside(model, Job(0), Job(1), "a100").speed);
}

TEST(InterferenceModel, ManyEqualSamplesAreNoTrouble) {
  const std::vector<CoRunSample> unnamed(300, CoRunSample{{}, {}, "", 0.8, 1});
  const SpeedShare share = Beside(MustFit(unnamed), {}, {}, "");
  ExpectOrdered(share);
  EXPECT_NEAR(share.speed, 0.8, 0.05);
  const std::vector<CoRunSample> named(300, CoRunSample{{"a", "", {}}, {"b", "", {}}, "", 0.8, 1});
  const InterferenceModel merged = MustFit(named);
  ASSERT_EQ(merged.samples().size(), 1u);
  EXPECT_EQ(merged.samples()[0].count, 300);
}

TEST(InterferenceModel, RefusesWhatCannotHaveBeenMeasured) {
  const double kBad[] = {0, -1, 0.0009, 1.2, std::numeric_limits<double>::quiet_NaN(), INFINITY};
  for (const double speed : kBad) {
    EXPECT_FALSE(InterferenceModel::Fit({{Job(0), Job(1), "", speed, 1}})) << speed;
  }
  for (const double count : {0.0, 1.1e12, static_cast<double>(INFINITY)}) {
    EXPECT_FALSE(InterferenceModel::Fit({{Job(0), Job(1), "", 0.5, count}})) << count;
  }
  SharedJob odd = Job(0);
  odd.solo.step_milliseconds = 0;
  const auto model = InterferenceModel::Fit({{odd, Job(1), "", 0.5, 1}});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message().find("job-a with job-b"), std::string::npos) << model.error().message();
}

TEST(InterferenceModel, OfJobsThatNeverRanItIsNeverSureToMoreThanTwoPercent) {
  std::vector<CoRunSample> samples = Samples();
  for (CoRunSample& sample : samples) sample.speed = 1;
  const InterferenceModel model = MustFit(samples);
  const SharedJob unseen{"new", "", Job(3).solo}, unnamed{"", "", Job(3).solo};
  for (const SharedJob& job : {unseen, unnamed}) {
    EXPECT_LT(Beside(model, job, Job(1)).low, 0.97);
    EXPECT_LT(Beside(model, Job(1), job).low, 0.97);
  }
  EXPECT_GT(Beside(model, Job(3), Job(1)).low, 0.97);
}

TEST(InterferenceModel, ExtremeFeaturesKeepSpeedsInRange) {
  const InterferenceModel model = MustFit(Samples());
  SharedJob extreme;
  extreme.solo.gpu_utilization = 1e300;
  extreme.solo.step_milliseconds = 1e-300;
  ExpectOrdered(Beside(model, extreme, Job(1)));
  ExpectOrdered(Beside(model, Job(1), extreme));
}

TEST(CombinePartners, TheTimesThatPartnersTakeAddUp) {
  const SpeedShare both = CombinePartners(std::vector<SpeedShare>{{0.5, 0.25, 1}, {0.5, 0.5, 0.8}});
  EXPECT_NEAR(both.speed, 1.0 / 3, 1e-12);
  EXPECT_NEAR(both.low, 1.0 / 5, 1e-12);
  EXPECT_NEAR(both.high, 0.8, 1e-12);
}

}  // namespace
}  // namespace grus
