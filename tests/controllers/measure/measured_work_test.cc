// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/measured_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>

#include "controllers/policy/profile_drift.h"
#include "tests/controllers/trial/trial_builder.h"

namespace grus {
namespace {

using api::BatchSizeScope;
using api::ThroughputUnit;

TEST(Decimal, HasFourDigitsAndTheFormOfTheApi) {
  struct Case {
    double value;
    const char* want;
  };
  for (const Case& c : {Case{812.43, "812.4"}, Case{1, "1"}, Case{0.123456, "0.1235"}, Case{123456.7, "123457"},
                        Case{9.9996, "10"}, Case{0.5, "0.5"}, Case{1e-7, "0.0000001"}, Case{1e14, "100000000000000"}}) {
    EXPECT_EQ(Decimal(c.value), c.want);
    EXPECT_TRUE(std::regex_match(Decimal(c.value), std::regex(api::kDecimalPattern))) << Decimal(c.value);
  }
}

TEST(Decimal, IsEmptyForWhatIsNoSpeed) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -1.0, infinity, -infinity, std::nan(""), 1e-30, 1e30, 1e-9}) {
    EXPECT_EQ(Decimal(value), "") << value;
  }
}

SpeedObservation StepOf(double seconds) {
  SpeedObservation seen = testing::Seen(1, 20);
  seen.step = seen.throughput;
  seen.throughput.reset();
  seen.step->measure = Measure::kStepSeconds;
  seen.step->steady.mean_seconds = seconds;
  seen.step->steady.half_width_seconds = seconds / 100;
  return seen;
}

TEST(MeasurementOf, MakesComparableWorkOfStepsAndSamples) {
  struct Case {
    SpeedObservation seen;
    api::TrialConfig config;
    BatchSizeScope scope;
    ThroughputUnit wanted, unit;
    double throughput;
  };
  SpeedObservation of_a_gpu = testing::Seen(100, 20);
  of_a_gpu.gpu_throughput = of_a_gpu.throughput;
  of_a_gpu.gpu_throughput->scope = Scope::kGpu;
  of_a_gpu.throughput.reset();
  const ThroughputUnit any = ThroughputUnit::kNotKnown, samples = ThroughputUnit::kSamplesPerSecond,
                       batches = ThroughputUnit::kBatchesPerSecond, steps = ThroughputUnit::kStepsPerSecond;
  const auto per_gpu = BatchSizeScope::kPerGpu, per_job = BatchSizeScope::kPerJob;
  const std::vector<Case> cases = {
      {testing::Seen(800, 20), {"", 4, 0, 0}, per_gpu, any, samples, 800},
      {of_a_gpu, {"", 4, 0, 0}, per_gpu, any, samples, 400},
      {StepOf(0.5), {"", 4, 0, 0}, per_gpu, any, batches, 8},  // Four batches in half a second.
      {StepOf(0.5), {"", 4, 0, 0}, per_job, any, steps, 2},    // The GPUs share one.
      {StepOf(0.5), {"", 4, 0, 32}, per_gpu, any, samples, 256},
      {StepOf(0.5), {"", 4, 0, 32}, per_job, any, samples, 64},
      {StepOf(0.5), {"", 4, 0, 32}, per_gpu, batches, batches, 8},
      {testing::Seen(256, 20), {"", 4, 0, 32}, per_gpu, batches, batches, 8},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const auto work = MeasurementOf(c.seen, {c.config, c.scope}, c.wanted);
    ASSERT_TRUE(work) << "case " << i;
    EXPECT_EQ(work->unit, c.unit) << "case " << i;
    const auto throughput = ThroughputOf(work->measured);
    ASSERT_TRUE(throughput) << "case " << i;
    EXPECT_NEAR(throughput->mean, c.throughput, c.throughput / 1000) << "case " << i;
    EXPECT_LT(throughput->low, throughput->mean) << "case " << i;
    EXPECT_GT(throughput->high, throughput->mean) << "case " << i;
  }
}

TEST(MeasurementOf, SaysNothingOfNoSpeedAndOfUnitsThatDoNotFit) {
  SpeedObservation broken = testing::Seen(100, 20);
  broken.throughput->steady.mean_seconds = std::nan("");
  const MeasuredSetting on_four{{"", 4, 0, 0}};
  EXPECT_FALSE(MeasurementOf(broken, on_four, ThroughputUnit::kNotKnown));
  broken.throughput->steady.mean_seconds = 0;
  EXPECT_FALSE(MeasurementOf(broken, on_four, ThroughputUnit::kNotKnown));
  EXPECT_FALSE(MeasurementOf({}, on_four, ThroughputUnit::kNotKnown));
  EXPECT_FALSE(MeasurementOf(StepOf(1), on_four, ThroughputUnit::kSamplesPerSecond));
}

TEST(SpeedText, TellsTheWidth) {
  api::Measurement measured;
  measured.throughput = "812";
  measured.throughput_low = "760";
  measured.throughput_high = "864";
  EXPECT_EQ(SpeedText(measured, ThroughputUnit::kSamplesPerSecond), "812 samples/s +- 7 %");
}

}  // namespace
}  // namespace grus
