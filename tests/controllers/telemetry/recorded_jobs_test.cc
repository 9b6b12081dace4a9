// SPDX-License-Identifier: Apache-2.0
// Jobs that ran on a real GPU, as its driver told of them: recorded/README.md says how. A fifth of a second of them
// counts as a scrape of 15 seconds, so that their epochs of some seconds are epochs of some minutes.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include "controllers/telemetry/character.h"
#include "controllers/telemetry/series.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

constexpr double kRecordedStep = 0.2, kStep = 15;  // Seconds.

struct RecordedJob {
  const char* name;
  JobKind kind;
  Bottleneck bottleneck = Bottleneck::kUnknown;  // Of which it is known what it should be.
  int cpus = 8;                                  // That it may use.
  double epoch = 0;                              // Seconds of the recording; 0: not known.
};

constexpr RecordedJob kTrainings[] = {
    {"images-small", JobKind::kTraining, {}, 8, 2.02},
    {"images-large", JobKind::kTraining, {}, 8, 2.0},
    {"images-long-evaluation", JobKind::kTraining, {}, 8, 2.63},
    {"images-many-epochs", JobKind::kTraining, {}, 8, 1.165},
    {"images-uneven", JobKind::kTraining, {}, 8, 2.0},
    {"language-base", JobKind::kTraining, {}, 8, 2.24},
    {"language-long-texts", JobKind::kTraining, {}, 8, 2.21},
    {"language-checkpoints", JobKind::kTraining, {}, 8, 2.36},
    {"language-small", JobKind::kTraining, {}, 8, 1.52},
    {"matmul-heavy", JobKind::kTraining, Bottleneck::kCompute, 8, 2.7},
    {"embeddings-adam", JobKind::kTraining, Bottleneck::kMemoryBandwidth, 8, 2.52},
    {"elementwise-pde", JobKind::kTraining, Bottleneck::kMemoryBandwidth, 8, 2.92},
    {"recurrent", JobKind::kTraining, {}, 8, 2.44},
    {"jpegs-two-cpus", JobKind::kTraining, Bottleneck::kInput, 2},
    {"jpegs-three-cpus", JobKind::kTraining, Bottleneck::kInput, 3},
    {"refills-by-turns", JobKind::kTraining, Bottleneck::kInput, 2, 2.54},
    {"reads-parts-from-disk", JobKind::kTraining, Bottleneck::kInput, 8, 2.1},
    {"adversarial", JobKind::kTraining, {}, 8, 2.28},
    {"reinforcement", JobKind::kTraining, Bottleneck::kInput, 2, 1.55},
    {"diffusion-with-samples", JobKind::kTraining, {}, 8, 2.6},
    {"memory-grows-by-lengths", JobKind::kTraining, {}, 8, 2.17},
    {"metrics-on-the-cpu", JobKind::kTraining, {}, 8, 2.5},
    {"hugging-face-lines", JobKind::kTraining},
    {"hugging-face-bar", JobKind::kTraining},
    {"lightning", JobKind::kTraining},
    {"accelerate-tqdm", JobKind::kTraining},
    {"jax-preallocates", JobKind::kTraining},  // Its epochs are four samples long.
    {"two-level-cycles", JobKind::kTraining},  // Not three of its epochs were seen.
};
constexpr RecordedJob kOthers[] = {
    {"served-rarely", JobKind::kInference},        {"served-often", JobKind::kInference},
    {"served-in-waves", JobKind::kInference},      {"served-large-batches", JobKind::kInference},
    {"served-long-requests", JobKind::kInference}, {"text-generator", JobKind::kInference},
    {"notebook", JobKind::kInteractive},           {"notebook-busy", JobKind::kInteractive},
    {"notebook-slow", JobKind::kInteractive},      {"holds-memory", JobKind::kIdle, Bottleneck::kNone},
    {"batch-inference", JobKind::kBatch},          {"search-of-settings", JobKind::kUnknown},
};

using Row = std::array<double, 5>;  // GPU and bandwidth in percent, memory in MiB, CPU seconds, bytes of disk.

std::map<std::string, std::vector<Row>> ReadRows() {
  std::istringstream text(kit::ReadTreeFile("tests/controllers/telemetry/recorded/series.csv"));
  std::map<std::string, std::vector<Row>> rows;
  std::string line;
  std::getline(text, line);
  while (std::getline(text, line)) {
    std::istringstream cells(line);
    std::string job, cell;
    std::getline(cells, job, ',');
    std::getline(cells, cell, ',');
    const auto at = static_cast<std::size_t>(std::lround(std::stod(cell) / kRecordedStep));
    std::vector<Row>& of_job = rows[job];
    if (of_job.size() <= at) of_job.resize(at + 1, {NAN, NAN, NAN, NAN, NAN});
    for (double& value : of_job[at]) value = std::getline(cells, cell, ',') ? std::stod(cell) : NAN;
  }
  return rows;
}

JobSeries SeriesOf(const RecordedJob& job) {
  static const auto kRows = ReadRows();
  const std::vector<Row>& rows = kRows.at(job.name);
  JobSeries made;
  const bool reads = std::string_view(job.name).starts_with("reads-");  // The others write checkpoints.
  made.gpu_memory_limit = 143771.0 * 1024 * 1024;
  made.is_batch = job.kind != JobKind::kInference && job.kind != JobKind::kInteractive && job.kind != JobKind::kIdle;
  for (Series* series : {&made.gpu_utilization, &made.gpu_memory, &made.memory_bandwidth, &made.cpu, &made.disk}) {
    series->step = kStep;
    series->start = 1790000000;
  }
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const auto rate = [&](std::size_t column) {
      return at == 0 ? NAN : std::max(0.0, rows[at][column] - rows[at - 1][column]) / kRecordedStep;
    };
    made.gpu_utilization.values.push_back(static_cast<float>(rows[at][0] / 100));
    made.memory_bandwidth.values.push_back(static_cast<float>(rows[at][1] / 100));
    made.gpu_memory.values.push_back(static_cast<float>(rows[at][2] * 1024 * 1024));
    made.cpu.values.push_back(static_cast<float>(rate(3) / job.cpus));
    made.disk.values.push_back(reads ? static_cast<float>(rate(4)) : 0.0F);
  }
  return made;
}

TEST(RecordedJobs, AreKnownAsTrainingsByTheirEpochs) {
  int asked = 0, found = 0;
  for (const RecordedJob& job : kTrainings) {
    const Character character = CharacterOf(SeriesOf(job));
    EXPECT_TRUE(character.kind == JobKind::kTraining || character.kind == JobKind::kUnknown) << job.name;
    if (job.epoch == 0) continue;
    ++asked;
    const double epoch = job.epoch / kRecordedStep * kStep;
    const bool is_right =
        character.kind == JobKind::kTraining && character.period_s && std::abs(*character.period_s / epoch - 1) <= 0.06;
    found += is_right ? 1 : 0;
    if (!is_right) std::printf("  %s: %s\n", job.name, character.sentence.c_str());
  }
  std::printf("  trainings with their epochs: %d of %d\n", found, asked);
  EXPECT_GE(asked, 20);
  EXPECT_GE(found, 0.95 * asked);
}

TEST(RecordedJobs, ThatAreNoTrainingsAreNotCalledSo) {
  int named = 0;
  for (const RecordedJob& job : kOthers) {
    const Character character = CharacterOf(SeriesOf(job));
    EXPECT_TRUE(character.kind == job.kind || character.kind == JobKind::kUnknown)
        << job.name << ": " << character.sentence;
    named += character.kind == job.kind && job.kind != JobKind::kUnknown ? 1 : 0;
  }
  std::printf("  kinds named: %d of %d\n", named, static_cast<int>(std::size(kOthers)) - 1);
  EXPECT_GE(named, 2);
}

TEST(RecordedJobs, HaveNoBottleneckThatIsWrong) {
  int asked = 0, right = 0;
  const auto check = [&](const RecordedJob& job) {
    const Character character = CharacterOf(SeriesOf(job));
    const bool is_told = character.bottleneck != Bottleneck::kUnknown;
    if (job.bottleneck == Bottleneck::kUnknown) {
      EXPECT_FALSE(is_told) << job.name << ": " << character.sentence;
      return;
    }
    ++asked;
    if (!is_told) std::printf("  %s: %s\n", job.name, character.sentence.c_str());
    EXPECT_TRUE(!is_told || character.bottleneck == job.bottleneck) << job.name << ": " << character.sentence;
    right += is_told ? 1 : 0;
  };
  for (const RecordedJob& job : kTrainings) check(job);
  for (const RecordedJob& job : kOthers) check(job);
  std::printf("  bottlenecks right: %d of %d\n", right, asked);
  EXPECT_GE(right, 7);
}

// From the samples up to three cycles after the loading.
TEST(RecordedJobs, HaveTheMemoryAtTheEndThatWasPredictedAfterThreeCycles) {
  int asked = 0, right = 0;
  for (const RecordedJob& job : kTrainings) {
    const JobSeries whole = SeriesOf(job);
    const double most = *Max(whole.gpu_memory);
    for (std::size_t size = 30; size <= whole.gpu_memory.values.size(); ++size) {
      JobSeries seen = whole;
      for (Series* series : {&seen.gpu_utilization, &seen.gpu_memory, &seen.memory_bandwidth, &seen.cpu, &seen.disk}) {
        series->values.resize(size);
      }
      const Character character = CharacterOf(seen);
      if (!character.predicted_peak_memory) continue;
      ++asked;
      const double off = *character.predicted_peak_memory / most - 1;
      right += off <= 0.05 && off >= -0.02 ? 1 : 0;
      break;
    }
  }
  std::printf("  peaks right: %d of %d\n", right, asked);
  EXPECT_GE(asked, 20);
  EXPECT_GE(right, 0.9 * asked);
}

}  // namespace
}  // namespace grus
