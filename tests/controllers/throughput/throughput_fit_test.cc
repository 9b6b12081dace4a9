// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/throughput_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace grus {
namespace {

using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a job takes whose gradients go around a ring.
double RingSeconds(const JobSize& size) {
  const double compute = 0.05 + 0.004 * size.local_batch_size;
  const double sync = size.replicas == 1 ? 0
                      : size.nodes == 1  ? 0.02 * 2 * (size.replicas - 1) / size.replicas
                                         : 0.12 * 2 * (size.nodes - 1) / size.nodes;
  return std::sqrt(compute * compute + sync * sync);
}

std::vector<Measurement> RingMeasurements() {
  std::vector<Measurement> measurements;
  for (const double batch : {16.0, 64.0}) {
    for (const auto& [nodes, replicas] : {std::pair{1, 1}, {1, 2}, {1, 4}, {2, 2}, {2, 8}, {3, 6}, {4, 8}}) {
      const JobSize size{nodes, replicas, batch};
      measurements.push_back({size, RingSeconds(size)});
    }
  }
  return measurements;
}

Prediction PredictOrFail(const std::vector<Measurement>& measurements, const JobSize& size, double max_ratio = 2) {
  const auto fit = FitThroughput(measurements, {max_ratio});
  EXPECT_TRUE(fit) << fit.error().message();
  const auto prediction = Predict(*fit, size);
  EXPECT_TRUE(prediction) << prediction.error().message();
  return *prediction;
}

void ExpectSound(const std::vector<Measurement>& measurements, const JobSize& size, const char* what) {
  const Prediction p = PredictOrFail(measurements, size);
  EXPECT_TRUE(std::isfinite(p.step_seconds) && std::isfinite(p.low) && std::isfinite(p.high)) << what;
  EXPECT_GT(p.low, 0) << what;
  EXPECT_LE(p.low, p.step_seconds) << what;
  EXPECT_LE(p.step_seconds, p.high) << what;
}

TEST(ThroughputFit, ForetellsAJobThatFollowsAForm) {
  const std::vector<Measurement> measurements = RingMeasurements();
  for (const JobSize& size : {JobSize{4, 16, 16}, JobSize{8, 32, 64}, JobSize{1, 8, 16}, JobSize{4, 8, 32}}) {
    const Prediction p = PredictOrFail(measurements, size);
    EXPECT_NE(p.source, PredictionSource::kUnknown) << size.replicas;
    EXPECT_NEAR(p.step_seconds / RingSeconds(size), 1, 0.12) << size.replicas;
    EXPECT_LE(p.low, RingSeconds(size)) << size.replicas;
    EXPECT_GE(p.high, RingSeconds(size)) << size.replicas;
  }
}

TEST(ThroughputFit, RefusesWhatIsNoMeasurementAndNamesIt) {
  const Measurement kGood = {{1, 1, 32}, 0.1};
  struct Case {
    Measurement bad;
    const char* want;
  };
  const Case kCases[] = {
      {{{1, 1, 32}, kNan}, "measurement 2: its step time"},
      {{{1, 1, 32}, kInfinity}, "measurement 2: its step time"},
      {{{1, 1, 32}, 0}, "measurement 2: its step time"},
      {{{1, 1, 32}, -0.1}, "measurement 2: its step time"},
      {{{1, 1, kNan}, 0.1}, "measurement 2: its batch size"},
      {{{1, 1, 0}, 0.1}, "measurement 2: its batch size"},
      {{{0, 1, 32}, 0.1}, "measurement 2: it has fewer than one node"},
      {{{1, 0, 32}, 0.1}, "measurement 2: it has fewer than one replica"},
      {{{4, 2, 32}, 0.1}, "measurement 2: it has fewer replicas than nodes"},
      {{{1, 1, 32}, 0.1, -1}, "measurement 2: its relative error"},
      {{{1, 1, 32}, 0.1, kNan}, "measurement 2: its relative error"},
  };
  for (const Case& c : kCases) {
    const auto fit = FitThroughput({kGood, c.bad});
    ASSERT_FALSE(fit) << c.want;
    EXPECT_EQ(fit.error().code(), kube::ErrorCode::kInvalidArgument);
    EXPECT_THAT(fit.error().message(), HasSubstr(c.want));
  }
}

TEST(ThroughputFit, RefusesNoMeasurementsAndALimitBelowOne) {
  EXPECT_FALSE(FitThroughput({}));
  EXPECT_FALSE(FitThroughput({{{1, 1, 32}, 0.1}}, {0.5}));
  EXPECT_FALSE(FitThroughput({{{1, 1, 32}, 0.1}}, {kNan}));
}

TEST(ThroughputFit, RefusesSizesThatCannotBe) {
  const auto fit = FitThroughput(RingMeasurements());
  for (const JobSize& size : {JobSize{0, 1, 1}, JobSize{1, 0, 1}, JobSize{3, 2, 1}, JobSize{1, 1, kNan}}) {
    EXPECT_FALSE(Predict(*fit, size));
  }
}

TEST(ThroughputFit, OddMeasurementsStillGiveASoundAnswer) {
  struct Case {
    const char* what;
    std::vector<Measurement> measurements;
  };
  std::vector<Measurement> many_batches;
  for (int batch = 1; batch <= 50; ++batch) many_batches.push_back({{1, 1 + batch % 4, double(batch)}, 0.1 + batch});
  const Case kCases[] = {
      {"one point", {{{1, 1, 32}, 0.1}}},
      {"one large point", {{{8, 64, 32}, 0.1}}},
      {"the same point twice", {{{1, 1, 32}, 0.1}, {{1, 1, 32}, 0.1}}},
      {"the same point with other times", {{{1, 2, 32}, 0.1}, {{1, 2, 32}, 0.3}}},
      {"one batch size", {{{1, 1, 32}, 0.1}, {{1, 2, 32}, 0.12}, {{1, 4, 32}, 0.15}}},
      {"times that fall", {{{1, 1, 32}, 0.4}, {{1, 2, 32}, 0.2}, {{1, 4, 32}, 0.1}, {{2, 8, 32}, 0.05}}},
      {"times that jump", {{{1, 1, 32}, 0.1}, {{1, 2, 32}, 9}, {{1, 4, 32}, 0.1}, {{2, 8, 32}, 7}}},
      {"tiny and huge times", {{{1, 1, 32}, 1e-300}, {{1, 2, 32}, 1e-290}}},
      {"huge jobs", {{{1000, 1000000, 32}, 1}, {{1, 1, 32}, 0.5}}},
      {"more batch sizes than effects", many_batches},
  };
  for (const Case& c : kCases) {
    for (const JobSize& size : {JobSize{1, 1, 32}, JobSize{1, 8, 32}, JobSize{4, 16, 64}}) {
      ExpectSound(c.measurements, size, c.what);
    }
  }
}

TEST(ThroughputFit, AnyMeasurementsGiveASoundAnswer) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
    std::vector<Measurement> measurements;
    for (int i = below(12); i >= 0; --i) {
      const int nodes = 1 << below(5);
      const JobSize size{nodes, nodes * (1 + below(8)), std::exp(below(12))};
      measurements.push_back({size, std::exp(below(20) - 10.0), below(3) == 0 ? 0.1 * below(10) : 0});
    }
    const int nodes = 1 + below(64);
    ExpectSound(measurements, {nodes, nodes * (1 + below(8)), std::exp(below(12))}, "random measurements");
    ExpectSound(measurements, measurements.front().size, "a measured size");
  }
}

TEST(ThroughputFit, IsUnknownWhereFewMeasurementsSayNothing) {
  struct Case {
    const char* what;
    std::vector<Measurement> measurements;
    JobSize size;
  };
  const Case kCases[] = {
      {"from one GPU to many", {{{1, 1, 32}, 0.1}}, {4, 16, 32}},
      {"from one GPU to two", {{{1, 1, 32}, 0.1}}, {1, 2, 32}},
      {"from one node to several", {{{1, 1, 32}, 0.1}, {{1, 2, 32}, 0.11}, {{1, 4, 32}, 0.12}}, {4, 16, 32}},
      {"from one batch size to another", {{{1, 1, 32}, 0.1}, {{1, 2, 32}, 0.11}}, {1, 1, 512}},
      {"when times go up and down", {{{1, 1, 32}, 0.1}, {{1, 2, 32}, 0.15}, {{1, 4, 32}, 0.103}}, {1, 8, 32}},
      {"when times contradict each other", {{{1, 1, 32}, 0.1}, {{1, 2, 32}, 0.4}, {{1, 4, 32}, 0.1}}, {1, 8, 32}},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(PredictOrFail(c.measurements, c.size).source, PredictionSource::kUnknown) << c.what;
  }
}

TEST(ThroughputFit, MoreMeasurementsNarrowTheBand) {
  const std::vector<Measurement> all = RingMeasurements();
  double last = kInfinity;
  for (const std::ptrdiff_t count : {1, 3, 7, 14}) {
    const std::vector<Measurement> some(all.begin(), all.begin() + count);
    const Prediction p = PredictOrFail(some, {8, 16, 16});
    EXPECT_LT(p.high / p.low, last) << count;
    last = p.high / p.low;
  }
}

TEST(ThroughputFit, TheLimitDecidesWhatIsUnknown) {
  const std::vector<Measurement> few = {{{1, 1, 32}, 0.1}, {{1, 2, 32}, 0.11}, {{2, 4, 32}, 0.3}};
  const Prediction wide = PredictOrFail(few, {8, 32, 32}, 1000);
  EXPECT_EQ(wide.source, PredictionSource::kExtrapolated);
  EXPECT_EQ(PredictOrFail(few, {8, 32, 32}, wide.high / wide.low * 0.99).source, PredictionSource::kUnknown);
  EXPECT_EQ(PredictOrFail(few, {8, 32, 32}, wide.high / wide.low * 1.01).source, PredictionSource::kExtrapolated);
}

TEST(ThroughputFit, SaysWhereANumberComesFrom) {
  const std::vector<Measurement> measurements = RingMeasurements();
  struct Case {
    JobSize size;
    PredictionSource want;
  };
  const Case kCases[] = {
      {{2, 8, 16}, PredictionSource::kMeasured},      {{3, 8, 16}, PredictionSource::kInterpolated},
      {{2, 8, 32}, PredictionSource::kInterpolated},  {{4, 16, 16}, PredictionSource::kExtrapolated},
      {{2, 8, 128}, PredictionSource::kExtrapolated}, {{5, 8, 16}, PredictionSource::kExtrapolated},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(PredictOrFail(measurements, c.size).source, c.want) << c.size.nodes << " nodes " << c.size.replicas;
  }
}

TEST(ThroughputFit, AMeasuredSizeIsTheMeanOfItsMeasurements) {
  std::vector<Measurement> measurements = RingMeasurements();
  measurements.push_back({{2, 4, 16}, 0.20});
  measurements.push_back({{2, 4, 16}, 0.25});
  const Prediction p = PredictOrFail(measurements, {2, 4, 16});
  EXPECT_EQ(p.source, PredictionSource::kMeasured);
  EXPECT_NEAR(p.step_seconds, std::sqrt(0.2 * 0.25), 1e-12);  // Geometric: errors are relative.
}

TEST(ThroughputFit, AnUncertainMeasurementCountsLess) {
  std::vector<Measurement> measurements = RingMeasurements();
  measurements.resize(6);  // Among more, it would be a straggler.
  const JobSize wanted{6, 12, 16};
  const double without = PredictOrFail(measurements, wanted).step_seconds;
  measurements.push_back({{4, 16, 16}, 3 * RingSeconds({4, 16, 16})});
  const double sure = PredictOrFail(measurements, wanted).step_seconds;
  measurements.back().relative_error = 2;
  const double unsure = PredictOrFail(measurements, wanted).step_seconds;
  EXPECT_LT(std::abs(unsure - without), std::abs(sure - without) / 5);
}

TEST(ThroughputFit, StragglersAreNamedAndLeftOut) {
  const std::vector<Measurement> clean = RingMeasurements();
  ASSERT_GE(clean.size(), 10U);
  EXPECT_TRUE(FitThroughput(clean)->stragglers.empty());
  std::vector<Measurement> measurements = clean;
  measurements[2].step_seconds *= 3;
  measurements[7].step_seconds *= 4;
  const auto fit = FitThroughput(measurements);
  ASSERT_EQ(fit->stragglers.size(), 2U);
  EXPECT_EQ(fit->stragglers[0].measurement.size, clean[7].size);
  EXPECT_NEAR(fit->stragglers[0].times, 4, 1);
  EXPECT_EQ(fit->stragglers[1].measurement.size, clean[2].size);
  EXPECT_NEAR(fit->stragglers[1].times, 3, 0.8);
  EXPECT_EQ(fit->measurements.size(), clean.size() - 2);
  const JobSize wanted{6, 12, 16};
  EXPECT_NEAR(Predict(*fit, wanted)->step_seconds, PredictOrFail(clean, wanted).step_seconds,
              0.02 * RingSeconds(wanted));
}

TEST(ThroughputFit, AFewMeasurementsHaveNoStraggler) {
  std::vector<Measurement> few;
  for (const int gpus : {1, 2, 4, 8}) few.push_back({{1, gpus, 16}, gpus == 4 ? 0.3 : 0.1});
  const auto fit = FitThroughput(few);
  EXPECT_TRUE(fit->stragglers.empty()) << "nobody knows which of them is odd";
}

TEST(ThroughputFit, TheUnitOfTimeDoesNotMatter) {
  std::vector<Measurement> milliseconds = RingMeasurements();
  for (Measurement& m : milliseconds) m.step_seconds *= 1000;
  const Prediction p = PredictOrFail(RingMeasurements(), {8, 32, 64});
  const Prediction q = PredictOrFail(milliseconds, {8, 32, 64});
  EXPECT_NEAR(q.step_seconds / p.step_seconds, 1000, 1e-3);
  EXPECT_NEAR(q.high / p.high, 1000, 1e-3);
}

TEST(ThroughputFit, TheSameMeasurementsGiveTheSameBits) {
  const Prediction p = PredictOrFail(RingMeasurements(), {8, 32, 64});
  const Prediction q = PredictOrFail(RingMeasurements(), {8, 32, 64});
  EXPECT_EQ(p.step_seconds, q.step_seconds);
  EXPECT_EQ(p.low, q.low);
  EXPECT_EQ(p.high, q.high);
}

TEST(ThroughputFit, TheBandStaysWithinTheLimitUpToTheLargestValidSize) {
  const auto fit = FitThroughput(RingMeasurements());
  ASSERT_TRUE(fit);
  EXPECT_GE(fit->largest_valid_replicas, 16);
  const int replicas = fit->largest_valid_replicas;
  EXPECT_NE(Predict(*fit, {replicas / 2, replicas, 16})->source, PredictionSource::kUnknown);
  EXPECT_EQ(FitThroughput({{{1, 1, 32}, 0.1}})->largest_valid_replicas, 1);
}

TEST(ThroughputFit, ReportsTheFormItsErrorAndItsParameters) {
  const auto fit = FitThroughput(RingMeasurements());
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->best().leave_one_out_error, 0.1);
  double weights = 0;
  for (const FittedForm& form : fit->forms) weights += form.weight;
  EXPECT_NEAR(weights, 1, 1e-12);
  for (const FittedParameter& parameter : BestParameters(*fit)) {
    if (parameter.name == "computeSecondsPerSample") {
      EXPECT_NEAR(parameter.value, 0.004, 0.001);
    }
    EXPECT_TRUE(std::isfinite(parameter.value)) << parameter.name;
  }
}

TEST(ThroughputFit, ReportsNoParametersThatNothingWasMeasuredOf) {
  const auto fit = FitThroughput({{{1, 1, 32}, 0.1}, {{1, 1, 64}, 0.2}});
  for (const FittedParameter& parameter : BestParameters(*fit)) {
    EXPECT_THAT(std::string(parameter.name), HasSubstr("compute"));
  }
}

}  // namespace
}  // namespace grus
