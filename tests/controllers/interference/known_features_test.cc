// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/known_features.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

SharedJob Job(const std::string& name, std::optional<double> utilization = {}, std::optional<double> step = {}) {
  SharedJob job{name, "", {}};
  job.solo.gpu_utilization = utilization;
  job.solo.step_milliseconds = step;
  return job;
}

const std::vector<CoRunSample> kSamples = {{Job("a", 20), Job("b", 60, 5), "v100", 0.5, 1},
                                           {Job("b"), Job("a", 40), "v100", 0.5, 1},
                                           {Job("a", 90), Job(""), "k80", 0.5, 1},
                                           {Job("", 7), Job("c"), "k80", 0.5, 1}};

TEST(KnownFeatures, FillsWhatIsMissingWithTheMeanOnThatType) {
  const KnownFeatures known(kSamples);
  SharedJob a = Job("a", {}, 3);
  EXPECT_TRUE(known.Fill(a, "v100"));
  EXPECT_EQ(a, Job("a", 30, 3));
  SharedJob elsewhere = Job("a");
  EXPECT_TRUE(known.Fill(elsewhere, "k80"));
  EXPECT_EQ(elsewhere, Job("a", 90));
}

TEST(KnownFeatures, WithoutATypeItIsTheMeanOfAll) {
  SharedJob a = Job("a");
  EXPECT_TRUE(KnownFeatures(kSamples).Fill(a, ""));
  EXPECT_EQ(a, Job("a", 50));
}

TEST(KnownFeatures, LeavesAloneWhatIsSaidOrNotKnown) {
  const KnownFeatures known(kSamples);
  for (const SharedJob& job : {Job("a", 1), Job("c"), Job("new"), Job("")}) {
    SharedJob same = job;
    EXPECT_FALSE(known.Fill(same, "k80")) << job.fingerprint;
    EXPECT_EQ(same, job);
  }
  SharedJob elsewhere = Job("b");
  EXPECT_FALSE(known.Fill(elsewhere, "k80"));
}

TEST(KnownFeatures, DoesNotDependOnTheOrderOfRowsAndDoesNotOverflow) {
  std::vector<CoRunSample> samples;
  for (const double value : {0.1, 0.2, 0.3, 1e308, 1.5e308}) samples.push_back({Job("a", value), Job("b"), "", 0.5, 1});
  SharedJob one = Job("a"), other = Job("a");
  KnownFeatures(samples).Fill(one, "");
  KnownFeatures({samples.rbegin(), samples.rend()}).Fill(other, "");
  EXPECT_EQ(one, other);
  EXPECT_NEAR(*one.solo.gpu_utilization / 5e307, 1, 1e-9);
}

TEST(FillFeatures, CountsTheJobs) {
  std::vector<CoRunSample> samples = kSamples;
  const KnownFeatures known(kSamples);
  EXPECT_EQ(FillFeatures(known, samples), 1u);
  EXPECT_EQ(samples[1].job, Job("b", 60, 5));
  std::vector<PairQuestion> questions = {{Job("a"), Job("b"), "v100"}, {Job("b"), Job("new"), "v100"}};
  EXPECT_EQ(FillFeatures(known, questions), 2u);
  EXPECT_EQ(questions[0].partner, Job("b", 60, 5));
}

}  // namespace
}  // namespace grus
