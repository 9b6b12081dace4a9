// SPDX-License-Identifier: Apache-2.0
// Peaks that are predicted after three epochs, beside those of whole runs. The prediction was tuned on the seeds below
// kHeldOutSeed of the kinds that are not held out; the figures are of other seeds.
#include "controllers/telemetry/peak_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "tests/controllers/telemetry/memory_stories.h"

namespace grus {
namespace {

using stories::kGiB;

constexpr std::uint64_t kHeldOutSeed = 1000;
constexpr int kSeeds = 40;  // Of each kind.

struct Answers {
  std::vector<double> errors;  // Of the peak.
  int none = 0;
  int right() const {
    return static_cast<int>(
        std::ranges::count_if(errors, [](double error) { return error >= -0.02 && error <= 0.05; }));
  }
  int all() const { return static_cast<int>(errors.size()) + none; }
};

Answers Predict(const stories::MemoryKind& kind, std::uint64_t first_seed) {
  Answers answers;
  for (std::uint64_t seed = first_seed; seed < first_seed + kSeeds; ++seed) {
    stories::Random random(seed * 7919 + kind.name.size());
    stories::MemoryStory story = stories::Run(kind, random);
    story.memory.values.resize(static_cast<std::size_t>(3 * story.period_s / story.memory.step) + 1);
    const auto peak = PredictPeakMemory(story.memory, static_cast<double>(story.memory.start), story.period_s, 0);
    if (peak) answers.errors.push_back(*peak / story.peak - 1);
    if (!peak) ++answers.none;
  }
  std::ranges::sort(answers.errors);
  const auto at = [&](double share) {
    return answers.errors.empty()
               ? NAN
               : 100 * answers.errors[static_cast<std::size_t>(share * static_cast<double>(answers.errors.size() - 1))];
  };
  std::printf("  %-36s %-8s right %2d of %2d, none %2d, error %+.1f %+.1f %+.1f %+.1f %%\n", kind.name.c_str(),
              kind.is_held_out ? "held out" : "", answers.right(), answers.all(), answers.none, at(0), at(0.1), at(0.9),
              at(1));
  return answers;
}

TEST(PeakMemory, IsRightForNineOfTenTrainingsAfterThreeCycles) {
  int right = 0, all = 0, held_out_right = 0, held_out = 0;
  std::printf("  (error: least, 10 %%, 90 %%, most)\n");
  for (const stories::MemoryKind& kind : stories::MemoryKinds()) {
    if (!kind.has_peak) continue;
    const Answers answers = Predict(kind, kHeldOutSeed);
    right += answers.right(), all += answers.all();
    if (kind.is_held_out) held_out_right += answers.right(), held_out += answers.all();
  }
  std::printf("  peaks right: %d of %d; of kinds held out: %d of %d\n", right, all, held_out_right, held_out);
  EXPECT_GE(right, 0.9 * all);
  EXPECT_GE(held_out_right, 0.9 * held_out);
}

TEST(PeakMemory, IsNotSaidOfMemoryThatGrowsSteadily) {
  for (const stories::MemoryKind& kind : stories::MemoryKinds()) {
    if (kind.has_peak) continue;
    const Answers answers = Predict(kind, kHeldOutSeed);
    EXPECT_GE(answers.none, 0.95 * answers.all()) << kind.name;
  }
}

Series Flat(std::size_t samples, double bytes) {
  return {.start = 1000, .step = 10, .values = std::vector<float>(samples, static_cast<float>(bytes))};
}

TEST(PeakMemory, NeedsThreeCycles) {
  const Series memory = Flat(60, 10 * kGiB);  // 600 s.
  EXPECT_TRUE(PredictPeakMemory(memory, 1000, 200, 0));
  EXPECT_FALSE(PredictPeakMemory(memory, 1000, 300, 0));
  EXPECT_FALSE(PredictPeakMemory(memory, 1300, 200, 0)) << "of which 300 s do not count";
}

TEST(PeakMemory, OfMemoryThatStaysHasASmallMargin) {
  const double predicted = *PredictPeakMemory(Flat(60, 10 * kGiB), 1000, 200, 0);
  EXPECT_GE(predicted, 10.1 * kGiB);
  EXPECT_LE(predicted, 10.3 * kGiB);
}

TEST(PeakMemory, OfMemoryThatGrowsEverMoreSlowlyCountsWhatIsToCome) {
  Series memory = Flat(60, 10 * kGiB);
  for (std::size_t at = 20; at < 60; ++at) memory.values[at] = static_cast<float>((at < 40 ? 10.6 : 10.8) * kGiB);
  EXPECT_GE(*PredictPeakMemory(memory, 1000, 200, 0), 11.1 * kGiB);
}

TEST(PeakMemory, IsNeverMoreThanThereIs) {
  EXPECT_DOUBLE_EQ(*PredictPeakMemory(Flat(60, 16 * kGiB), 1000, 200, 16 * kGiB), 16 * kGiB);
}

TEST(PeakMemory, IsNeverLessThanWasSeen) {
  EXPECT_GE(*PredictPeakMemory(Flat(60, 17 * kGiB), 1000, 200, 16 * kGiB), 17 * kGiB) << "the limit is wrong";
}

TEST(PeakMemory, CountsWhatWasUsedWhileLoading) {
  Series memory = Flat(60, 10 * kGiB);
  memory.values[2] = static_cast<float>(14 * kGiB);
  EXPECT_GE(*PredictPeakMemory(memory, 1100, 150, 0), 14 * kGiB);
}

TEST(PeakMemory, OfSamplesThatAreMostlyMissingIsNotSaid) {
  Series memory = Flat(60, 10 * kGiB);
  std::fill(memory.values.begin() + 5, memory.values.begin() + 45, NAN);
  EXPECT_FALSE(PredictPeakMemory(memory, 1000, 200, 0));
  EXPECT_FALSE(PredictPeakMemory(Series{}, 1000, 200, 0));
  EXPECT_FALSE(PredictPeakMemory(Flat(60, 0), 1000, 200, 0)) << "none is used";
}

}  // namespace
}  // namespace grus
