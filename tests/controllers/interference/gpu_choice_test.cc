// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/gpu_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace grus {
namespace {

const std::string kType = "v100";
constexpr std::size_t kManyWait = 1000;

// Jobs of ever more use of the GPU; of two, each loses by what the other uses.
constexpr int kJobs = 9;
SharedJob Job(int i) { return {std::string("job-") + static_cast<char>('a' + i), "", {}}; }
double TrueSpeed(int i, int partner) { return 1 / (1 + 0.02 * (i + 1) * (partner + 1)); }

PairSpeedCache::Model Known() {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < kJobs; ++i) {
    for (int j = 0; j < kJobs; ++j) samples.push_back({Job(i), Job(j), kType, TrueSpeed(i, j), 1});
  }
  return std::make_shared<const InterferenceModel>(*InterferenceModel::Fit(samples));
}

class ChooseGpuTest : public testing::Test {
 protected:
  GpuChoice Choose(int job, const std::vector<CandidateGpu>& gpus, std::size_t waiting = kManyWait) {
    return ChooseGpu(Job(job), gpus, {kType, 100, waiting}, cache_);
  }
  PairSpeedCache cache_{Known()};
};

TEST_F(ChooseGpuTest, OfSharedGpusTakesTheOneOnWhichMostWorkIsDone) {
  const std::vector<CandidateGpu> gpus = {{"busy", {Job(8)}}, {"calm", {Job(1)}}, {"middle", {Job(4)}}};
  const GpuChoice choice = Choose(3, gpus);
  ASSERT_TRUE(choice.chosen);
  EXPECT_EQ(choice.chosen->candidate, 1u);
  ASSERT_EQ(choice.runners_up.size(), 2u);
  EXPECT_EQ(choice.runners_up[0].candidate, 2u);
  EXPECT_EQ(choice.runners_up[1].candidate, 0u);
}

TEST_F(ChooseGpuTest, TheGainIsTheLowEndOfTheSumOfSpeeds) {
  const std::vector<CandidateGpu> gpus = {{"g", {Job(2)}}};
  const GpuChoice choice = Choose(3, gpus);
  ASSERT_TRUE(choice.chosen);
  const GpuGain& gain = *choice.chosen;
  EXPECT_NEAR(gain.job.speed, TrueSpeed(3, 2), 0.05);
  ASSERT_EQ(gain.residents.size(), 1u);
  EXPECT_EQ(gain.residents[0].before.speed, 1);  // It was alone.
  EXPECT_NEAR(gain.residents[0].after.speed, TrueSpeed(2, 3), 0.05);
  const double middle = gain.job.speed + gain.residents[0].after.speed - 1;
  EXPECT_LT(gain.gain, middle);
  EXPECT_GE(gain.gain, gain.job.low + gain.residents[0].after.low - 1);
}

TEST_F(ChooseGpuTest, AFreeGpuComesFirst) {
  const std::vector<CandidateGpu> gpus = {{"calm", {Job(0)}}, {"free", {}}, {"free too", {}}};
  for (const std::size_t waiting : {std::size_t{1}, kManyWait}) {
    const GpuChoice choice = Choose(3, gpus, waiting);
    ASSERT_TRUE(choice.chosen);
    EXPECT_EQ(choice.chosen->candidate, 1u);  // Of equal ones the first.
    EXPECT_EQ(choice.chosen->gain, 1);
    ASSERT_EQ(choice.runners_up.size(), 1u);  // The other free one is like it.
    EXPECT_EQ(choice.runners_up[0].candidate, 0u);
  }
}

TEST(ChooseGpu, WhereNobodyLosesAFreeGpuIsLeftToOthers) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < kJobs; ++i) {
    for (int j = 0; j < kJobs; ++j) samples.push_back({Job(i), Job(j), kType, 1, 1});
  }
  PairSpeedCache cache(std::make_shared<const InterferenceModel>(*InterferenceModel::Fit(samples)));
  const std::vector<CandidateGpu> gpus = {{"free", {}}, {"used", {Job(1)}}};
  const GpuChoice choice = ChooseGpu(Job(0), gpus, {kType, 100, 1}, cache);
  ASSERT_TRUE(choice.chosen);
  EXPECT_EQ(choice.chosen->candidate, 1u);
}

TEST(ChooseGpu, WhereNobodyLosesSharingIsWorthItHoweverManyGpusThereAre) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < kJobs; ++i) {
    for (int j = 0; j < kJobs; ++j) samples.push_back({Job(i), Job(j), kType, 0.997, 8});
  }
  PairSpeedCache cache(std::make_shared<const InterferenceModel>(*InterferenceModel::Fit(samples)));
  const std::vector<CandidateGpu> gpus = {{"free", {}}, {"used", {Job(1)}}};
  const GpuChoice choice = ChooseGpu(Job(0), gpus, {kType, 5000, 1}, cache);
  ASSERT_TRUE(choice.chosen);
  EXPECT_EQ(choice.chosen->candidate, 1u);
  EXPECT_GE(choice.chosen->gain, 0.98);
  EXPECT_LT(choice.chosen->gain, choice.least_gain);
  EXPECT_TRUE(choice.chosen->is_without_loss);
}

TEST(ChooseGpu, AFeatureThatIsNoNumberCountsAsNotKnown) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < kJobs; ++i) {
    for (int j = 0; j < kJobs; ++j) {
      SharedJob job = Job(i), partner = Job(j);
      job.solo.gpu_utilization = 10 * i;
      partner.solo.gpu_utilization = 10 * j;
      samples.push_back({job, partner, kType, TrueSpeed(i, j), 1});
    }
  }
  PairSpeedCache cache(std::make_shared<const InterferenceModel>(*InterferenceModel::Fit(samples)));
  SharedJob broken = Job(8);
  broken.solo.gpu_utilization = std::numeric_limits<double>::quiet_NaN();
  broken.solo.step_milliseconds = std::numeric_limits<double>::infinity();
  const SharingDemand demand{kType, 100, kManyWait};
  const auto gain_of = [&](const SharedJob& job, const SharedJob& resident) {
    const std::vector<CandidateGpu> gpus = {{"g", {resident}}, {"too", {resident}}};
    const GpuChoice choice = ChooseGpu(job, gpus, demand, cache);
    EXPECT_LE(choice.runners_up.size(), 1u);  // Both GPUs are one place.
    return choice.chosen ? choice.chosen->gain : choice.runners_up.at(0).gain;
  };
  EXPECT_NEAR(gain_of(broken, Job(8)), gain_of(Job(8), Job(8)), 1e-9);
  EXPECT_NEAR(gain_of(Job(8), broken), gain_of(Job(8), Job(8)), 1e-9);
}

TEST_F(ChooseGpuTest, TheOrderOfResidentsMakesNoOtherPlace) {
  const std::vector<CandidateGpu> gpus = {{"g", {Job(0), Job(1)}}, {"h", {Job(1), Job(0)}}, {"i", {Job(1), Job(1)}}};
  const GpuChoice choice = Choose(2, gpus);
  ASSERT_TRUE(choice.chosen);
  EXPECT_EQ(choice.chosen->candidate, 0u);
  ASSERT_EQ(choice.runners_up.size(), 1u);
  EXPECT_EQ(choice.runners_up[0].candidate, 2u);
}

TEST_F(ChooseGpuTest, WhatResidentsDoToEachOtherIsNoRiskOfTheNewJob) {
  const std::vector<CandidateGpu> gpus = {{"g", {Job(0), Job(1)}}};
  const GpuChoice choice = Choose(2, gpus);
  ASSERT_TRUE(choice.chosen);
  const GpuGain& gain = *choice.chosen;
  double middle = gain.job.speed, reach = gain.job.speed - gain.job.low;
  for (const ResidentSpeed& resident : gain.residents) {
    middle += resident.after.speed - resident.before.speed;
    reach = std::hypot(reach, resident.after.speed - resident.after.low);  // Of all pairs.
  }
  EXPECT_GT(gain.gain, middle - reach);
  EXPECT_LT(gain.gain, middle);
}

TEST_F(ChooseGpuTest, WithFewWaitingAJobWaitsForAFreeGpuUnlessSharingCostsLittle) {
  const std::vector<CandidateGpu> gpus = {{"g", {Job(3)}}};
  const GpuChoice patient = Choose(3, gpus, 1), pressed = Choose(3, gpus, kManyWait);
  EXPECT_FALSE(patient.chosen);
  ASSERT_EQ(patient.runners_up.size(), 1u);
  EXPECT_LT(patient.runners_up[0].gain, patient.least_gain);
  EXPECT_TRUE(pressed.chosen);
}

TEST_F(ChooseGpuTest, APairThatDoesLessThanOneJobAloneIsNeverMade) {
  const std::vector<CandidateGpu> gpus = {{"g", {Job(8)}}};  // Beside each other, both have 0.38 of their speed.
  EXPECT_FALSE(Choose(8, gpus, kManyWait).chosen);
}

TEST_F(ChooseGpuTest, NoJobIsMadeSlowerThanWasAgreed) {
  const std::vector<CandidateGpu> gpus = {{"calm", {Job(3)}}, {"calmer", {Job(1)}}};
  const GpuChoice before = Choose(3, gpus);
  ASSERT_TRUE(before.chosen);
  SharingDemand demand{kType, 100, kManyWait};
  demand.least_speed = std::min(before.chosen->job.low, before.chosen->residents[0].after.low) + 0.01;
  const GpuChoice after = ChooseGpu(Job(3), gpus, demand, cache_);
  EXPECT_FALSE(after.chosen);
  ASSERT_EQ(after.runners_up.size(), 2u);
  EXPECT_TRUE(after.runners_up[0].is_too_slow);
  EXPECT_NE(Explain(after, gpus).find("not \"calmer\": too slow, as "), std::string::npos) << Explain(after, gpus);
}

TEST_F(ChooseGpuTest, AThirdJobCountsWhatItTakesFromBoth) {
  const std::vector<CandidateGpu> gpus = {{"g", {Job(0), Job(1)}}};
  const GpuChoice choice = Choose(2, gpus);
  ASSERT_TRUE(choice.chosen);
  const auto& residents = choice.chosen->residents;
  ASSERT_EQ(residents.size(), 2u);
  EXPECT_NEAR(residents[0].before.speed, TrueSpeed(0, 1), 0.05);
  EXPECT_NEAR(residents[0].after.speed, 1 / (1 / TrueSpeed(0, 1) + 1 / TrueSpeed(0, 2) - 1), 0.1);
  EXPECT_NEAR(residents[1].before.speed, TrueSpeed(1, 0), 0.05);
  EXPECT_NEAR(choice.chosen->job.speed, 1 / (1 / TrueSpeed(2, 0) + 1 / TrueSpeed(2, 1) - 1), 0.1);
}

TEST(ChooseGpu, WhereNothingIsKnownNothingIsShared) {
  PairSpeedCache cache(std::make_shared<const InterferenceModel>());
  const std::vector<CandidateGpu> gpus = {{"g", {Job(1)}}, {"unnamed", {{}}}};
  const GpuChoice choice = ChooseGpu(Job(0), gpus, {kType, 1, kManyWait}, cache);
  EXPECT_FALSE(choice.chosen);
  ASSERT_EQ(choice.runners_up.size(), 2u);
  EXPECT_LT(choice.runners_up[0].gain, 0);
}

TEST_F(ChooseGpuTest, KeepsTheBestOfTheOthersOnly) {
  std::vector<CandidateGpu> gpus;
  for (int i = 0; i < 5000; ++i) gpus.push_back({"gpu-" + std::to_string(i), {Job(i % kJobs)}});
  const GpuChoice choice = Choose(2, gpus);
  ASSERT_TRUE(choice.chosen);
  ASSERT_EQ(choice.runners_up.size(), kMaxRunnersUp);
  EXPECT_GE(choice.chosen->gain, choice.runners_up[0].gain);
  EXPECT_TRUE(std::ranges::is_sorted(choice.runners_up, std::greater(), &GpuGain::gain));
  EXPECT_LE(cache_.size(), 2u * kJobs);
}

TEST_F(ChooseGpuTest, WithoutACandidateThereIsNoChoice) {
  const GpuChoice choice = Choose(0, {});
  EXPECT_FALSE(choice.chosen);
  EXPECT_TRUE(choice.runners_up.empty());
  EXPECT_EQ(Explain(choice, {}), "no GPU has room");
}

TEST(LeastGain, FallsAsMoreJobsWaitAndIsNeverNothing) {
  double last = 1;
  for (const std::size_t waiting : {0u, 1u, 4u, 16u, 64u, 256u, 100000u}) {
    const double least = LeastGain({kType, 100, waiting});
    EXPECT_LE(least, last);
    EXPECT_GE(least, 0.05);
    last = least;
  }
  EXPECT_EQ(LeastGain({kType, 100, 0}), 1);
  EXPECT_EQ(LeastGain({kType, 100, 25}), 0.05);
  EXPECT_EQ(LeastGain({kType, 0, 1}), 0.05);  // Of no GPU none becomes free.
}

TEST_F(ChooseGpuTest, ExplainsWhatItChoseAndWhatNot) {
  const std::vector<CandidateGpu> gpus = {
      {"node-1/gpu-0", {Job(1)}}, {"node-1/gpu-1", {{}}}, {"node-2/gpu-0", {Job(8)}}};
  const GpuChoice choice = Choose(2, gpus);
  const std::string text = Explain(choice, gpus);
  EXPECT_EQ(text.find("\"node-1/gpu-0\": gain 0."), 0u) << text;
  EXPECT_NE(text.find("\"job-b\" from 1.000 to 0."), std::string::npos) << text;
  EXPECT_NE(text.find("; not \"node-2/gpu-0\": gain "), std::string::npos) << text;
  EXPECT_NE(text.find("a job without a name from 1.000"), std::string::npos) << text;
  const std::string waits = Explain(Choose(2, gpus, 1), gpus);
  EXPECT_EQ(waits.find("waits for a free GPU; sharing one had to gain 0.960; not \"node-1/gpu-0\": gain"), 0u) << waits;
}

TEST_F(ChooseGpuTest, AnExplanationIsOneLineOfLimitedLength) {
  CandidateGpu gpu{"node\n\"1\"", {}};
  for (int i = 0; i < 30; ++i) gpu.residents.push_back({std::string(200, 'x') + std::to_string(i), "", {}});
  const std::vector<CandidateGpu> gpus = {gpu};
  const std::string text = Explain(Choose(0, gpus), gpus);
  EXPECT_LE(text.size(), kMaxExplanationBytes);
  EXPECT_NE(text.find("\"node\\n\\\"1\\\"\": too slow"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_NE(text.find("\"" + std::string(64, 'x') + "...\""), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" ...")) << text;
}

}  // namespace
}  // namespace grus
