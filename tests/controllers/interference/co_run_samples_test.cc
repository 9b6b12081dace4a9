// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/co_run_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace grus {
namespace {

SharedJob Job(const std::string& name) { return {name, "", {}}; }

// Each pair on both types, as a table sorted by pairs has them.
std::vector<CoRunSample> OnTwoTypes(int jobs, int partners) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < jobs; ++i) {
    for (int j = 0; j < partners; ++j) {
      for (const char* type : {"A100", "V100"}) {
        samples.push_back({Job("j" + std::to_string(i)), Job("p" + std::to_string(j)), type, 0.5, 1});
      }
    }
  }
  return MergeSamples(std::move(samples));
}

template <typename KeyOf>
std::map<std::string, int> CountBy(const std::vector<CoRunSample>& samples, KeyOf key_of) {
  std::map<std::string, int> counts;
  for (const CoRunSample& sample : samples) ++counts[key_of(sample)];
  return counts;
}
std::string TypeOf(const CoRunSample& sample) { return sample.gpu_type; }

TEST(MergeSamples, WeighsByCounts) {
  const auto merged = MergeSamples(
      {{Job("a"), Job("b"), "", 0.5, 3}, {Job("a"), Job("b"), "", 0.9, 1}, {Job("a"), Job("b"), "x", 1, 1}});
  ASSERT_EQ(merged.size(), 2u);
  EXPECT_NEAR(merged[0].speed, 0.6, 1e-12);
  EXPECT_EQ(merged[0].count, 4);
}

TEST(MergeSamples, CountsStayWithinTheirBound) {
  const auto merged =
      MergeSamples({{Job("a"), Job("b"), "", 0.5, kMaxCount}, {Job("a"), Job("b"), "", 0.7, kMaxCount}});
  ASSERT_EQ(merged.size(), 1u);
  EXPECT_NEAR(merged[0].speed, 0.6, 1e-12);
  EXPECT_EQ(merged[0].count, kMaxCount);
}

TEST(DrawEvenly, TakesAsManyOfEachTypeAndSomeOfEachJob) {
  const auto drawn = DrawEvenly(OnTwoTypes(50, 40));
  ASSERT_EQ(drawn.size(), kMaxCoRunSamples);
  EXPECT_EQ(CountBy(drawn, TypeOf), (std::map<std::string, int>{{"A100", 1000}, {"V100", 1000}}));
  const auto by_job = CountBy(drawn, [](const CoRunSample& sample) { return sample.job.fingerprint; });
  const auto by_partner = CountBy(drawn, [](const CoRunSample& sample) { return sample.partner.fingerprint; });
  EXPECT_EQ(by_job.size(), 50u);
  EXPECT_EQ(by_partner.size(), 40u);
  for (const auto& [job, count] : by_job) EXPECT_GT(count, 20) << job;              // Of 80.
  for (const auto& [partner, count] : by_partner) EXPECT_GT(count, 25) << partner;  // Of 100.
}

TEST(DrawEvenly, KeepsAllOfARareType) {
  auto samples = OnTwoTypes(50, 40);
  for (int i = 0; i < 30; ++i) samples.push_back({Job("j" + std::to_string(i)), Job("x"), "K80", 0.5, 1});
  const auto counts = CountBy(DrawEvenly(MergeSamples(std::move(samples))), TypeOf);
  EXPECT_EQ(counts.at("K80"), 30);
  EXPECT_EQ(counts.at("A100"), 985);
}

TEST(DrawEvenly, DoesNotDependOnTheOrderOfRows) {
  auto samples = OnTwoTypes(50, 40);
  const auto drawn = DrawEvenly(MergeSamples(samples));
  std::mt19937 random(3);
  std::shuffle(samples.begin(), samples.end(), random);
  const auto again = DrawEvenly(MergeSamples(samples));
  ASSERT_EQ(again.size(), drawn.size());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_EQ(again[i].job, drawn[i].job);
    EXPECT_EQ(again[i].partner, drawn[i].partner);
    EXPECT_EQ(again[i].gpu_type, drawn[i].gpu_type);
  }
}

TEST(DrawEvenly, OfSamplesWithoutNamesItTakesAllSortsOfFeatures) {
  std::vector<CoRunSample> samples;
  for (int i = 0; i < 4000; ++i) {
    SharedJob job;
    job.solo.gpu_utilization = i / 40;
    samples.push_back({job, {}, "", 0.5 + i * 1e-5, 1});
  }
  double sum = 0;
  for (const CoRunSample& sample : DrawEvenly(MergeSamples(std::move(samples))))
    sum += *sample.job.solo.gpu_utilization;
  EXPECT_NEAR(sum / kMaxCoRunSamples, 49.5, 3);
}

}  // namespace
}  // namespace grus
