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

struct KneeAnswers {
  int asked = 0, answered = 0, right = 0, oversized = 0;

  void Judge(const std::vector<CurvePoint>& curve, const std::vector<CurvePoint>& truth) {
    ++asked;
    const auto knee = Recommend(curve, 64)[2].best;
    if (!knee) return;
    ++answered;
    right += ShareOfTheBest(truth, *knee) >= 0.9 ? 1 : 0;
    oversized += knee->size.replicas > Recommend(truth, 64)[2].best->size.replicas ? 1 : 0;
  }
  void Add(const KneeAnswers& some) {
    asked += some.asked;
    answered += some.answered;
    right += some.right;
    oversized += some.oversized;
  }
};

// The measurement of a placement with about that many samples on each GPU; nullopt: there is none.
std::optional<Measurement> MeasuredOn(const PolluxModel& data, const std::string& placement, double local_batch) {
  for (const Measurement& m : data.by_placement.at(placement)) {
    if (std::abs(m.size.local_batch_size / local_batch - 1) < 0.03) return m;
  }
  return std::nullopt;
}

// For each batch size of a model, the knee up to 64 GPUs, from one measurement on each of `placements`.
KneeAnswers AnswersFrom(const std::vector<std::string>& placements, FixedBatch fixed) {
  KneeAnswers result;
  for (const auto* models : {&kChosenOn, &kKeptApart}) {
    for (const std::string& model : *models) {
      const PolluxModel data = ReadPollux(model);
      std::set<double> batches;
      for (const double local : data.batch_sizes) {
        if (fixed == FixedBatch::kPerReplica) batches.insert(local);
        else batches.insert({16 * local, 32 * local, 64 * local});
      }
      for (const double batch : batches) {
        const std::vector<CurvePoint> measured = MeasuredCurve(data, batch, fixed);
        std::vector<Measurement> trial;
        for (const std::string& placement : placements) {
          const int gpus = data.by_placement.at(placement).front().size.replicas;
          const auto one = MeasuredOn(data, placement, fixed == FixedBatch::kTotal ? batch / gpus : batch);
          if (one) trial.push_back(*one);
        }
        if (trial.size() < std::min<std::size_t>(4, placements.size()) || measured.size() < 3) continue;
        CurveQuestion question;
        question.fixed = fixed;
        question.batch_size = batch;
        for (const CurvePoint& point : measured) question.sizes.push_back({point.size.nodes, point.size.replicas});
        result.Judge(*CurveOf(*FitThroughput(trial), question), measured);
      }
    }
  }
  return result;
}

// What a TrialJob on nodes of 4 GPUs can measure, with one batch size.
TEST(PolluxAccuracy, TheKneeUpTo64GpusIsRightOrUnknown) {
  struct Case {
    const char* rule;
    std::vector<std::string> placements;
    double least_answered;
  };
  const Case cases[] = {{"three sizes on one node say nothing of others", {"1", "2", "4"}, 0},
                        {"one more on two nodes, by default", {"1", "2", "4", "22"}, 0.25},
                        {"six trials, up to 16 GPUs", {"1", "2", "4", "22", "44", "4444"}, 0.40},
                        {"nine trials, up to 16 GPUs", {"1", "2", "3", "4", "22", "44", "33", "444", "4444"}, 0.45}};
  for (const Case& c : cases) {
    KneeAnswers all;
    for (const FixedBatch fixed : {FixedBatch::kPerReplica, FixedBatch::kTotal}) {
      const KneeAnswers some = AnswersFrom(c.placements, fixed);
      std::printf("%s, %s: %d of %d answered, %d right, %d too large\n", c.rule,
                  fixed == FixedBatch::kTotal ? "same batch in total" : "same batch for each GPU", some.answered,
                  some.asked, some.right, some.oversized);
      all.Add(some);
    }
    EXPECT_GE(all.answered, c.least_answered * all.asked) << c.rule;
    EXPECT_GE(all.right, 0.95 * all.answered) << c.rule;
    EXPECT_LE(all.oversized, 0.15 * all.answered) << c.rule;
    if (c.least_answered > 0) continue;
    EXPECT_LE(all.answered, 0.05 * all.asked) << c.rule;
  }
}

struct NetworkLaw {
  const char* name;
  double (*cost)(int nodes, int replicas);
};

// Laws by which the time of a step could grow with nodes; the model has not seen them. Nodes of `per_node`; each size
// of one node is measured, the largest also on two, and two and four full nodes, to within 2 %.
KneeAnswers AnswersFor(const NetworkLaw& law, int per_node) {
  KneeAnswers result;
  std::mt19937 random(7);
  std::normal_distribution<double> noise(1, 0.02);
  for (const double cost : {0.01, 0.03, 0.1, 0.3, 1.0, 3.0}) {
    for (const double local : {0.0, 0.0, 0.05, 0.05, 0.2, 0.2}) {
      const auto step = [&](int nodes, int replicas) {
        return 1 + local * std::log2(std::min(replicas, per_node)) + cost * law.cost(nodes, replicas);
      };
      std::vector<Measurement> trial;
      for (int n = 1; n <= per_node; n *= 2) trial.push_back({{1, n, 32}, step(1, n) * noise(random)});
      for (const JobSize& size :
           {JobSize{2, per_node, 32}, JobSize{2, 2 * per_node, 32}, JobSize{4, 4 * per_node, 32}}) {
        trial.push_back({size, step(size.nodes, size.replicas) * noise(random)});
      }
      const CurveQuestion question{DoublingSizes(64, per_node), FixedBatch::kPerReplica, 32};
      std::vector<CurvePoint> truth;
      for (const CurveSize& size : question.sizes) {
        CurvePoint& point = truth.emplace_back();
        point.size = {size.nodes, size.replicas, 32};
        point.source = PredictionSource::kMeasured;
        point.throughput = 32 * size.replicas / step(size.nodes, size.replicas);
      }
      result.Judge(*CurveOf(*FitThroughput(trial), question), truth);
    }
  }
  return result;
}

TEST(KneeAccuracy, IsNotFooledByNetworksThatAreWorseThanTheFirstTwoNodesShow) {
  const NetworkLaw laws[] = {{"constant", [](int n, int) { return n > 1 ? 1.0 : 0.0; }},
                             {"logarithmic", [](int n, int) { return std::log2(n); }},
                             {"linear in nodes", [](int n, int) { return n - 1.0; }},
                             {"steeper than linear", [](int n, int) { return std::pow(n - 1, 1.5); }},
                             {"linear in GPUs", [](int n, int gpus) { return n > 1 ? gpus / 8.0 : 0.0; }}};
  KneeAnswers all;
  for (const NetworkLaw& law : laws) {
    for (const int per_node : {4, 8}) {
      const KneeAnswers some = AnswersFor(law, per_node);
      std::printf("%s, nodes of %d: %d of %d answered, %d right, %d too large\n", law.name, per_node, some.answered,
                  some.asked, some.right, some.oversized);
      all.Add(some);
    }
  }
  EXPECT_GT(all.answered, 20);
  EXPECT_GE(all.right, 0.95 * all.answered);
  EXPECT_LE(all.oversized, 0.05 * all.answered);
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
