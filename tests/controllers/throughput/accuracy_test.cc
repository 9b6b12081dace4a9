// SPDX-License-Identifier: Apache-2.0
// How good predictions are on public measurements (bench/data). Priors and the band's calibration were chosen on four
// of the Pollux models and on Gavel's K80 and P100; the list of forms, how many measurements count and how wide the
// prior of kPerSample is, with all in sight. Prints the figures as a table.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

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

struct StragglerAccuracy {
  double error = 0, unknown = 0;
  int found = 0, false_alarms = 0, trials = 0;
};

// Of the Pollux models, with one measurement of each trial `times` as slow; 1: all as they are.
StragglerAccuracy MeasureStragglers(double times) {
  StragglerAccuracy result;
  for (const auto* models : {&kChosenOn, &kKeptApart}) {
    for (const std::string& model : *models) {
      const PolluxModel data = ReadPollux(model);
      for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        std::vector<Measurement> trial = DrawTrial(data, seed);
        Measurement& slow = trial[seed % trial.size()];  // They are shuffled.
        slow.step_seconds *= times;
        const auto fit = FitThroughput(trial);
        if (!fit) throw std::runtime_error(fit.error().message());
        ++result.trials;
        result.error += AccuracyOf(*fit, data.large).mean_error;
        double unknown = 0;
        for (const Measurement& m : data.large) {
          unknown += Predict(*fit, m.size)->source == PredictionSource::kUnknown ? 1 : 0;
        }
        result.unknown += unknown / static_cast<double>(data.large.size());
        for (const Straggler& straggler : fit->stragglers) {
          const bool is_it = times > 1 && straggler.measurement.size == slow.size;
          ++(is_it ? result.found : result.false_alarms);
        }
      }
    }
  }
  result.error /= result.trials;
  result.unknown /= result.trials;
  std::printf("one of 15 %4.1f times as slow: error %4.1f %%, Unknown %4.1f %%, found in %d of %d, %d false alarms\n",
              times, 100 * result.error, 100 * result.unknown, result.found, result.trials, result.false_alarms);
  return result;
}

TEST(PolluxAccuracy, OneStragglerInFifteenIsFoundAndSilencesNothing) {
  const StragglerAccuracy clean = MeasureStragglers(1);
  EXPECT_LE(clean.false_alarms, 3);
  for (const double times : {2.0, 3.0, 10.0}) {
    const StragglerAccuracy slow = MeasureStragglers(times);
    EXPECT_LE(slow.error, clean.error + 0.02) << times;
    EXPECT_LE(slow.unknown, clean.unknown + 0.10) << times;
    EXPECT_GE(slow.found, times < 3 ? 70 : 100) << times;
    EXPECT_LE(slow.false_alarms, 3) << times;
  }
}

// Throughput of a job as it was measured on 1, 2, 4, ... 64 GPUs, four on a node. The batch sizes that were measured
// grow by the square root of 2, but for rounding: the nearest is taken for the one that is asked for.
std::vector<CurvePoint> MeasuredCurve(const PolluxModel& data, double batch_size, FixedBatch fixed) {
  constexpr double kRounding = 0.03;
  std::vector<CurvePoint> curve;
  for (const CurveSize& size : DoublingSizes(64, 4)) {
    const double wanted = fixed == FixedBatch::kTotal ? batch_size / size.replicas : batch_size;
    std::vector<Measurement> found;
    const auto take = [&](const std::vector<Measurement>& from) {
      for (const Measurement& m : from) {
        if (m.size.nodes != size.nodes || m.size.replicas != size.replicas) continue;
        if (std::abs(m.size.local_batch_size / wanted - 1) < kRounding) found.push_back(m);
      }
    };
    take(data.large);
    for (const auto& [placement, measurements] : data.by_placement) {
      if (found.empty()) take(measurements);
    }
    if (found.empty()) continue;
    CurvePoint point;
    point.size = found.front().size;
    point.source = PredictionSource::kMeasured;
    point.throughput = point.size.local_batch_size * size.replicas / found.front().step_seconds;
    curve.push_back(point);
  }
  return curve;
}

// What is measured at the size that is recommended, relative to the throughput of the knee that was measured.
double ShareOfTheBest(const std::vector<CurvePoint>& measured, const CurvePoint& recommended) {
  const double best = Recommend(measured, 64)[2].best->throughput;
  for (const CurvePoint& point : measured) {
    if (point.size.replicas == recommended.size.replicas) return point.throughput / best;
  }
  return 0;
}

TEST(PolluxAccuracy, TheKneeReachesNineTenthsOfTheThroughputOfTheBestKnee) {
  for (const auto* models : {&kChosenOn, &kKeptApart}) {
    for (const std::string& model : *models) {
      const PolluxModel data = ReadPollux(model);
      for (unsigned seed = 1; seed <= kSeeds; ++seed) {
        const std::vector<Measurement> trial = DrawTrial(data, seed);
        const double batch_size = trial.front().size.local_batch_size;
        const std::vector<CurvePoint> measured = MeasuredCurve(data, batch_size, FixedBatch::kPerReplica);
        CurveQuestion question;
        question.batch_size = batch_size;
        for (const CurvePoint& point : measured) question.sizes.push_back({point.size.nodes, point.size.replicas});

        const auto curve = CurveOf(*FitThroughput(trial, {1000}), question);

        ASSERT_TRUE(curve);
        const CurvePoint knee = *Recommend(*curve, 64)[2].best;
        EXPECT_GE(ShareOfTheBest(measured, knee), 0.9) << model << " seed " << seed << " knee " << knee.size.replicas;
      }
    }
  }
}

// "How many GPUs is my job worth at its total batch size": a TrialJob that measures that batch on 1 to 8 GPUs.
TEST(PolluxAccuracy, TheKneeOfATotalBatchReachesNineTenthsOfTheBestKneeOrIsUnknown) {
  int all_answered = 0;
  for (const auto* models : {&kChosenOn, &kKeptApart}) {
    for (const std::string& model : *models) {
      int answered = 0, asked = 0;
      const PolluxModel data = ReadPollux(model);
      std::set<double> batch_sizes;
      for (const double local : data.batch_sizes) batch_sizes.insert({16 * local, 32 * local, 64 * local});
      for (const double batch_size : batch_sizes) {
        CurveQuestion question;
        question.fixed = FixedBatch::kTotal;
        question.batch_size = batch_size;
        const std::vector<CurvePoint> measured = MeasuredCurve(data, question.batch_size, question.fixed);
        std::vector<Measurement> trial;
        for (const CurvePoint& point : measured) {
          question.sizes.push_back({point.size.nodes, point.size.replicas});
          if (point.size.replicas > 8) continue;
          const JobSize size{point.size.nodes, point.size.replicas, question.batch_size / point.size.replicas};
          trial.push_back({size, size.local_batch_size * size.replicas / point.throughput});
        }
        if (trial.size() < 2) continue;

        const auto curve = CurveOf(*FitThroughput(trial), question);

        ASSERT_TRUE(curve);
        ++asked;
        const auto knee = Recommend(*curve, 64)[2].best;
        if (!knee) continue;
        ++answered;
        EXPECT_GE(ShareOfTheBest(measured, *knee), 0.9) << model << " batch " << question.batch_size;
      }
      std::printf("%-12s the knee is known for %d of %d total batch sizes\n", model.c_str(), answered, asked);
      all_answered += answered;
    }
  }
  EXPECT_GT(all_answered, 0);
}

struct GavelAccuracy {
  int jobs = 0, answered = 0;
  double error = 0, worst_error = 0;  // Where it answers.
};

GavelAccuracy MeasureGavel(const std::string& gpu_type) {
  GavelAccuracy result;
  const std::vector<GavelJob> jobs = ReadGavel(gpu_type);
  result.jobs = static_cast<int>(jobs.size());
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
  std::printf("%-5s answers for %d of %d jobs, error %4.1f %% (worst %4.1f)\n", gpu_type.c_str(), result.answered,
              result.jobs, 100 * result.error, 100 * result.worst_error);
  return result;
}

TEST(GavelAccuracy, OneTwoAndFourGpusForetellEightOrAreSilent) {
  for (const char* gpu_type : {"k80", "p100"}) {
    const GavelAccuracy accuracy = MeasureGavel(gpu_type);
    EXPECT_GE(2 * accuracy.answered, accuracy.jobs) << gpu_type;
    EXPECT_LE(accuracy.error, 0.10) << gpu_type;
  }
}

TEST(GavelAccuracy, IsNeverSilentlyWrongWhereJobsAreBoundByTheirInput) {
  EXPECT_LE(MeasureGavel("v100").worst_error, 0.25);
}

}  // namespace
}  // namespace grus
