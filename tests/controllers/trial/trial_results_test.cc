// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_results.h"

#include <gmock/gmock.h>

#include <cmath>
#include <regex>

#include "controllers/measure/measured_work.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/trial/trial_space.h"
#include "tests/controllers/trial/trial_builder.h"

namespace grus {
namespace {

using api::CurveSource;
using api::ThroughputUnit;

api::Trial Measured(const api::TrialConfig& config, double throughput) {
  api::Trial trial;
  trial.name = ToText(config);
  trial.config = config;
  trial.phase = api::TrialPhase::kSucceeded;
  trial.measured.emplace();
  trial.measured->throughput = Decimal(throughput);
  trial.measured->throughput_low = Decimal(0.98 * throughput);
  trial.measured->throughput_high = Decimal(1.02 * throughput);
  return trial;
}

// Time of a step in which computing shrinks with nothing and synchronising grows a little.
double Speed(int gpus) { return 100.0 * gpus / (1 + 0.05 * (gpus - 1)); }

api::TrialJobStatus ResultsOf(api::TrialJob job, std::vector<api::Trial> trials, ThroughputUnit unit) {
  TrialView view;
  view.workload.emplace();
  api::TrialJobStatus status;
  status.trials = std::move(trials);
  status.throughput_unit = unit;
  view.job = std::make_shared<const api::TrialJob>(job);
  UpdateResults(view, *ConfigsOf(job.spec.space, *view.workload), status);
  return status;
}

const api::CurvePoint* PointAt(const api::TrialJobStatus& status, int gpus, int batch_size = 0) {
  for (const api::CurvePoint& point : status.curve) {
    if (point.gpus == gpus && point.batch_size == batch_size) return &point;
  }
  return nullptr;
}

void ExpectWellFormed(const api::TrialJobStatus& status) {
  const std::regex decimal(api::kDecimalPattern);
  for (const api::CurvePoint& point : status.curve) {
    for (const std::string& text :
         {point.throughput, point.throughput_low, point.throughput_high, point.speed_up, point.efficiency}) {
      EXPECT_TRUE(text.empty() || std::regex_match(text, decimal)) << text;
    }
    EXPECT_EQ(point.throughput.empty(), point.source == CurveSource::kUnknown) << point.gpus;
  }
  EXPECT_LE(static_cast<std::int64_t>(status.curve.size()), api::kMaxCurvePoints);
}

TEST(UpdateResults, CheapestIsByThePriceIfThereIsOneElseByGpuSeconds) {
  api::TrialJob job = testing::TestTrialJob({1});
  const auto cheapest = [&](const char* of_a, const char* of_h) {
    job.spec.space.gpu_types = {{"A100", {}, of_a}, {"H100", {}, of_h}};
    const api::TrialJobStatus status = ResultsOf(
        job, {Measured({"A100", 1, 1, 0}, 100), Measured({"H100", 1, 1, 0}, 150)}, ThroughputUnit::kSamplesPerSecond);
    for (const api::Recommendation& r : status.recommendation) {
      if (r.goal == api::Goal::kCheapest) return r.message;
    }
    return std::string();
  };
  EXPECT_EQ(cheapest("", ""), "1 H100 GPU: 150 samples/s; no known size does more work per GPU second");
  EXPECT_EQ(cheapest("2", "4"), "1 A100 GPU: 100 samples/s; 2 an hour, and no known size does more work for the money");
  EXPECT_EQ(cheapest("2.25", "2.5"),
            "1 H100 GPU: 150 samples/s; 2.5 an hour, and no known size does more work for the money");
}

TEST(UpdateResults, ALesserGpuTypeIsNoAnswerWhereTheBetterOneIsNotKnown) {
  api::TrialJob job = testing::TestTrialJob({1, 2, 4, 8});
  job.spec.space.gpu_types = {{"A100", {}}, {"H100", {}}};
  std::vector<api::Trial> trials = {Measured({"H100", 2, 1, 0}, 1111), Measured({"H100", 8, 1, 0}, 1622)};
  for (const int gpus : {1, 2, 4, 8}) trials.push_back(Measured({"A100", gpus, 1, 0}, 75.0 * gpus));
  const auto status = ResultsOf(job, trials, ThroughputUnit::kSamplesPerSecond);
  for (const api::Recommendation& r : status.recommendation) {
    EXPECT_EQ(r.gpu_type, "H100") << r.message;
  }
}

TEST(UpdateResults, WhatTheWayToASecondNodeCostsIsNotTakenForThatOfMoreGpus) {
  const api::TrialJob job = testing::TestTrialJob({1, 2, 4, 6, 8});
  const auto known = [&](int nodes) {
    return ResultsOf(job,
                     {Measured({"", 1, 1, 0}, 100), Measured({"", 2, 1, 0}, 198), Measured({"", 4, 1, 0}, 390),
                      Measured({"", 8, nodes, 0}, 400)},
                     ThroughputUnit::kSamplesPerSecond);
  };

  const api::TrialJobStatus told = known(2);
  ASSERT_EQ(PointAt(told, 6)->source, CurveSource::kInterpolated);  // On one node.
  EXPECT_NEAR(std::stod(PointAt(told, 6)->throughput), 585, 30);
  EXPECT_EQ(PointAt(known(1), 6)->source, CurveSource::kUnknown);  // Where between 390 and 400 would be the knee?
}

TEST(UpdateResults, WhatWasMeasuredStandsInTheCurveAsItWas) {
  api::TrialJob job = testing::TestTrialJob({1, 2, 4, 8});
  const auto status = ResultsOf(
      job, {Measured({"", 1, 0, 0}, Speed(1)), Measured({"", 2, 0, 0}, Speed(2)), Measured({"", 8, 0, 0}, Speed(8))},
      ThroughputUnit::kSamplesPerSecond);
  ExpectWellFormed(status);
  EXPECT_EQ(PointAt(status, 8)->source, CurveSource::kMeasured);
  EXPECT_EQ(PointAt(status, 8)->throughput, Decimal(Speed(8)));
  ASSERT_NE(PointAt(status, 4), nullptr);
  EXPECT_EQ(PointAt(status, 4)->source, CurveSource::kInterpolated);
  EXPECT_NEAR(std::stod(PointAt(status, 4)->throughput), Speed(4), 0.1 * Speed(4));
}

TEST(UpdateResults, TheCurveIsTheSameInEveryUnit) {
  struct Case {
    ThroughputUnit unit;
    api::BatchSizeScope scope;
    int batch_size;
  };
  for (const Case& c : {Case{ThroughputUnit::kSamplesPerSecond, api::BatchSizeScope::kPerGpu, 32},
                        Case{ThroughputUnit::kBatchesPerSecond, api::BatchSizeScope::kPerGpu, 32},
                        Case{ThroughputUnit::kBatchesPerSecond, api::BatchSizeScope::kPerGpu, 0},
                        Case{ThroughputUnit::kSamplesPerSecond, api::BatchSizeScope::kPerJob, 1024},
                        Case{ThroughputUnit::kStepsPerSecond, api::BatchSizeScope::kPerJob, 0},
                        Case{ThroughputUnit::kStepsPerSecond, api::BatchSizeScope::kPerJob, 1024}}) {
    api::TrialJob job = testing::TestTrialJob({1, 2, 4, 8});
    job.spec.space.batch_size_scope = c.scope;
    if (c.batch_size > 0) job.spec.space.batch_sizes = {c.batch_size};
    std::vector<api::Trial> trials;
    for (const int gpus : {1, 2, 4}) trials.push_back(Measured({"", gpus, 0, c.batch_size}, Speed(gpus)));
    job.spec.extrapolate.max_gpus = 8;
    const auto status = ResultsOf(job, trials, c.unit);
    ExpectWellFormed(status);
    const api::CurvePoint* point = PointAt(status, 8, c.batch_size);
    ASSERT_NE(point, nullptr);
    const double middle = std::sqrt(std::stod(point->throughput_low) * std::stod(point->throughput_high));
    EXPECT_NEAR(middle, Speed(8), 0.3 * Speed(8)) << "unit " << static_cast<int>(c.unit) << " batch " << c.batch_size;
  }
}

TEST(UpdateResults, AStragglerIsNamedAndItsSpeedIsNotTheCurve) {
  api::TrialJob job = testing::TestTrialJob({1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<api::Trial> trials;
  for (int gpus = 1; gpus <= 8; ++gpus) {
    trials.push_back(Measured({"", gpus, 1, 0}, gpus == 8 ? Speed(8) / 3 : Speed(gpus)));
  }
  const auto status = ResultsOf(job, trials, ThroughputUnit::kSamplesPerSecond);
  EXPECT_THAT(status.trials[7].message, ::testing::HasSubstr("a straggler: "));
  EXPECT_THAT(status.trials[6].message, ::testing::Not(::testing::HasSubstr("straggler")));
  ASSERT_NE(PointAt(status, 8), nullptr);
  EXPECT_NE(PointAt(status, 8)->source, CurveSource::kMeasured);
  EXPECT_NEAR(std::stod(PointAt(status, 8)->throughput), Speed(8), 0.1 * Speed(8));
  EXPECT_EQ(status.recommendation[2].gpus, 8) << status.recommendation[2].message;
  EXPECT_EQ(status.recommendation[2].size, "8");
}

TEST(UpdateResults, TheColumnOfTheKneeHasTypeAndBatch) {
  api::TrialJob job = testing::TestTrialJob({1, 2, 4, 8}, {64});
  job.spec.space.gpu_types = {{"A100", {}}};
  std::vector<api::Trial> trials;
  for (const int gpus : {1, 2, 4, 8}) trials.push_back(Measured({"A100", gpus, 1, 64}, Speed(gpus)));
  EXPECT_EQ(ResultsOf(job, trials, ThroughputUnit::kSamplesPerSecond).recommendation[2].size, "8 A100 x 64");

  for (api::Trial& trial : trials) trial.measured->is_scope_unknown = trial.config.gpus > 1;
  const auto doubted = ResultsOf(job, trials, ThroughputUnit::kSamplesPerSecond);
  EXPECT_EQ(doubted.recommendation[2].size, "Unknown");
  EXPECT_FALSE(doubted.recommendation[2].gpus);
}

TEST(UpdateResults, OneMeasurementIsNoModelOfLargerSizes) {
  api::TrialJob job = testing::TestTrialJob({1});
  job.spec.extrapolate.max_gpus = 64;
  const auto status = ResultsOf(job, {Measured({"", 1, 0, 0}, 100)}, ThroughputUnit::kSamplesPerSecond);
  ExpectWellFormed(status);
  EXPECT_EQ(PointAt(status, 64)->source, CurveSource::kUnknown);
  ASSERT_EQ(status.recommendation.size(), 3U);
  EXPECT_FALSE(status.recommendation[0].gpus);  // Fastest: nobody knows.
  EXPECT_THAT(status.recommendation[0].message, ::testing::HasSubstr("the best known size is 1 GPU"));
  EXPECT_THAT(status.recommendation[0].message,
              ::testing::HasSubstr("2 GPUs may be better, but the prediction is too uncertain"));
  EXPECT_TRUE(status.model->loo_error_percent.empty());
}

TEST(UpdateResults, ASizeThatIsUnknownMayBeBetterOrNotInEveryUnit) {
  for (const ThroughputUnit unit : {ThroughputUnit::kSamplesPerSecond, ThroughputUnit::kBatchesPerSecond}) {
    api::TrialJob job = testing::TestTrialJob({1, 2, 4, 8}, {32});
    job.spec.extrapolate.max_interval_ratio = "1";  // All that was not measured is Unknown.
    const auto status = ResultsOf(
        job,
        {Measured({"", 1, 0, 32}, Speed(1)), Measured({"", 2, 0, 32}, Speed(2)), Measured({"", 8, 0, 32}, Speed(8))},
        unit);
    ASSERT_EQ(PointAt(status, 4, 32)->source, CurveSource::kUnknown);
    ASSERT_LT(std::stod(PointAt(status, 4, 32)->throughput_high), Speed(8));
    EXPECT_EQ(status.recommendation[0].gpus, 8);
  }
}

TEST(UpdateResults, ThatMoreGpusAddLittleIsSaidOfSizesThatWereAskedAbout) {
  api::TrialJob job = testing::TestTrialJob({1, 2, 4});
  const auto linear =
      ResultsOf(job, {Measured({"", 1, 0, 0}, 100), Measured({"", 2, 0, 0}, 200), Measured({"", 4, 0, 0}, 400)},
                ThroughputUnit::kSamplesPerSecond);
  EXPECT_EQ(linear.recommendation[2].message,
            "4 GPUs: 400 samples/s, 4 times one GPU; it is the largest size of the curve, and more GPUs may be faster");
  const auto flat =
      ResultsOf(job, {Measured({"", 1, 0, 0}, 100), Measured({"", 2, 0, 0}, 180), Measured({"", 4, 0, 0}, 185)},
                ThroughputUnit::kSamplesPerSecond);
  EXPECT_THAT(flat.recommendation[2].message, ::testing::AllOf(::testing::StartsWith("2 GPUs: 180 samples/s"),
                                                               ::testing::EndsWith("; more GPUs add less than 12 %")));
}

TEST(UpdateResults, TheBestGpuTypeAndBatchSizeAreRecommended) {
  api::TrialJob job = testing::TestTrialJob({1, 2}, {32, 64});
  job.spec.space.gpu_types = {{"A100", {}}, {"H100", {}}};
  std::vector<api::Trial> trials;
  for (const int gpus : {1, 2}) {
    trials.push_back(Measured({"A100", gpus, 0, 32}, 100 * gpus));
    trials.push_back(Measured({"A100", gpus, 0, 64}, 120 * gpus));
    trials.push_back(Measured({"H100", gpus, 0, 64}, 300 * gpus));
  }
  const auto status = ResultsOf(job, trials, ThroughputUnit::kSamplesPerSecond);
  for (const api::Recommendation& r : status.recommendation) {
    EXPECT_EQ(r.gpu_type, "H100");
    EXPECT_EQ(r.batch_size, 64);
    EXPECT_FALSE(r.message.empty());
  }
  EXPECT_EQ(status.model->gpu_type, "H100");
}

TEST(UpdateResults, WithoutSuccessThereIsNone) {
  api::TrialJobStatus status = ResultsOf(testing::TestTrialJob(), {}, ThroughputUnit::kNotKnown);
  EXPECT_TRUE(status.curve.empty());
  EXPECT_TRUE(status.recommendation.empty());
  EXPECT_FALSE(status.model);
}

}  // namespace
}  // namespace grus
