// SPDX-License-Identifier: Apache-2.0
// How good predictions are on public measurements (bench/data). Priors and the band's calibration were chosen on four
// of the Pollux models and on Gavel's; the list of forms, and how many measurements count, with all in sight. Prints
// the figures as a table.
#include <gtest/gtest.h>

#include <cstdio>

#include "controllers/throughput/curve.h"
#include "tests/controllers/throughput/measured_data.h"

namespace grus {
namespace {

constexpr unsigned kSeeds = 20;

struct ModelAccuracy {
  double error = 0, worst_error = 0, coverage = 0, worst_coverage = 1;  // Over the trials of all seeds.
  std::vector<double> ratios;
};

double MedianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

ModelAccuracy MeasureModel(const std::string& model) {
  const PolluxModel data = ReadPollux(model);
  ModelAccuracy result;
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    const auto fit = FitThroughput(DrawTrial(data, seed));
    if (!fit) throw std::runtime_error(fit.error().message());
    const Accuracy accuracy = AccuracyOf(*fit, data.large);
    result.error += accuracy.mean_error / kSeeds;
    result.worst_error = std::max(result.worst_error, accuracy.mean_error);
    result.coverage += accuracy.coverage / kSeeds;
    result.worst_coverage = std::min(result.worst_coverage, accuracy.coverage);
    result.ratios.push_back(accuracy.median_ratio);
  }
  std::printf("%-12s error %4.1f %% (worst trial %4.1f), in the band %5.1f %% (worst %5.1f), band %.2f wide\n",
              model.c_str(), 100 * result.error, 100 * result.worst_error, 100 * result.coverage,
              100 * result.worst_coverage, MedianOf(result.ratios));
  return result;
}

struct GroupAccuracy {
  double error = 0, worst_error = 0, coverage = 0, ratio = 0;
};

GroupAccuracy MeasureGroup(const std::vector<std::string>& models) {
  GroupAccuracy group;
  std::vector<double> ratios;
  for (const std::string& model : models) {
    const ModelAccuracy accuracy = MeasureModel(model);
    const auto count = static_cast<double>(models.size());
    group.error += accuracy.error / count;
    group.worst_error = std::max(group.worst_error, accuracy.error);
    group.coverage += accuracy.coverage / count;
    ratios.insert(ratios.end(), accuracy.ratios.begin(), accuracy.ratios.end());
  }
  group.ratio = MedianOf(ratios);
  return group;
}

TEST(PolluxAccuracy, FifteenSmallTrialsForetellSixToSixtyFourGpus) {
  std::vector<std::string> all = kChosenOn;
  all.insert(all.end(), kKeptApart.begin(), kKeptApart.end());
  const GroupAccuracy group = MeasureGroup(all);
  EXPECT_LE(group.error, 0.15);
  EXPECT_LE(group.worst_error, 0.22);
  EXPECT_GE(group.coverage, 0.88);
  EXPECT_LE(group.ratio, 2.0);
}

TEST(PolluxAccuracy, ModelsThatNothingWasChosenOnAreForetoldAsWell) {
  const GroupAccuracy group = MeasureGroup(kKeptApart);
  EXPECT_LE(group.error, 0.15);
  EXPECT_LE(group.worst_error, 0.22);
  EXPECT_GE(group.coverage, 0.88);
}

TEST(PolluxAccuracy, TheBandStaysHonestWithHundredsOfMeasurements) {
  double error = 0, coverage = 0;
  for (const auto* models : {&kChosenOn, &kKeptApart}) {
    for (const std::string& model : *models) {
      const PolluxModel data = ReadPollux(model);
      std::vector<Measurement> small;
      for (const auto& [placement, measurements] : data.by_placement) {
        if (measurements.front().size.replicas > 8) continue;
        small.insert(small.end(), measurements.begin(), measurements.end());
      }
      const Accuracy accuracy = AccuracyOf(*FitThroughput(small), data.large);
      error += accuracy.mean_error / 6;
      coverage += accuracy.coverage / 6;
    }
  }
  EXPECT_LE(error, 0.15);
  EXPECT_GE(coverage, 0.88);
}

// Throughput of a job as it was measured on 1, 2, 4, ... 64 GPUs, four on a node, at one batch size per replica.
std::vector<CurvePoint> MeasuredCurve(const PolluxModel& data, double batch_size) {
  std::vector<CurvePoint> curve;
  for (const CurveSize& size : DoublingSizes(64, 4)) {
    const JobSize wanted{size.nodes, size.replicas, batch_size};
    std::vector<Measurement> found;
    const auto take = [&](const std::vector<Measurement>& from) {
      for (const Measurement& m : from) {
        if (m.size == wanted) found.push_back(m);
      }
    };
    take(data.large);
    for (const auto& [placement, measurements] : data.by_placement) {
      if (found.empty()) take(measurements);
    }
    if (found.empty()) continue;
    CurvePoint point;
    point.size = wanted;
    point.source = PredictionSource::kMeasured;
    point.throughput = batch_size * size.replicas / found.front().step_seconds;
    curve.push_back(point);
  }
  return curve;
}

TEST(PolluxAccuracy, TheKneeReachesNineTenthsOfTheThroughputOfTheBestKnee) {
  for (const auto* models : {&kChosenOn, &kKeptApart}) {
    for (const std::string& model : *models) {
      const PolluxModel data = ReadPollux(model);
      for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        const std::vector<Measurement> trial = DrawTrial(data, seed);
        const double batch_size = trial.front().size.local_batch_size;
        const std::vector<CurvePoint> measured = MeasuredCurve(data, batch_size);
        CurveQuestion question;
        question.batch_size = batch_size;
        for (const CurvePoint& point : measured) question.sizes.push_back({point.size.nodes, point.size.replicas});

        const auto curve = CurveOf(*FitThroughput(trial, {1000}), question);

        ASSERT_TRUE(curve);
        const int knee = Recommend(*curve, 64)[2].best->size.replicas;
        const double best = Recommend(measured, 64)[2].best->throughput;
        for (const CurvePoint& point : measured) {
          if (point.size.replicas != knee) continue;
          EXPECT_GE(point.throughput, 0.9 * best) << model << " seed " << seed << " knee " << knee;
        }
      }
    }
  }
}

struct GavelAccuracy {
  int answered = 0;
  double error = 0, worst_error = 0;  // Where it answers.
};

GavelAccuracy MeasureGavel(const std::string& gpu_type) {
  GavelAccuracy result;
  const std::vector<GavelJob> jobs = ReadGavel(gpu_type);
  for (const GavelJob& job : jobs) {
    const auto fit = FitThroughput(job.small);
    if (!fit) throw std::runtime_error(fit.error().message());
    const Prediction p = *Predict(*fit, job.large.size);
    if (p.source == PredictionSource::kUnknown) continue;
    const double error = std::abs(p.step_seconds / job.large.step_seconds - 1);
    ++result.answered;
    result.error += error;
    result.worst_error = std::max(result.worst_error, error);
  }
  if (result.answered > 0) result.error /= result.answered;
  std::printf("%-5s answers for %d of %zu jobs, error %4.1f %% (worst %4.1f)\n", gpu_type.c_str(), result.answered,
              jobs.size(), 100 * result.error, 100 * result.worst_error);
  return result;
}

TEST(GavelAccuracy, OneTwoAndFourGpusForetellEightOrAreSilent) {
  for (const char* gpu_type : {"k80", "p100"}) {
    const GavelAccuracy accuracy = MeasureGavel(gpu_type);
    EXPECT_GT(accuracy.answered, 0) << gpu_type;
    EXPECT_LE(accuracy.error, 0.10) << gpu_type;
  }
}

TEST(GavelAccuracy, IsNeverSilentlyWrongWhereJobsAreBoundByTheirInput) {
  EXPECT_LE(MeasureGavel("v100").worst_error, 0.25);
}

}  // namespace
}  // namespace grus
