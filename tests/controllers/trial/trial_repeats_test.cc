// SPDX-License-Identifier: Apache-2.0
// Trials that are far slower than the others say, and run once more.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/controllers/trial/trial_world.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

// Trials on 1 to 8 GPUs with three batch sizes, that of 4 GPUs and 64 samples a fifth as fast: the first time, or
// always.
struct Straggling : TrialWorld {
  explicit Straggling(bool is_always = false, std::optional<std::int64_t> gpu_seconds = std::nullopt)
      : TrialWorld(JobOf(gpu_seconds)) {
    view().workload->gpus_per_worker = 1;
    RunSeen(
        [&](const api::TrialConfig& config) {
          const bool is_it = config.gpus == 4 && config.batch_size == 64;
          const bool is_slow = is_it && (is_always || !Slow().is_repeat);
          return Seen(100.0 * config.gpus / (1 + 0.02 * (config.gpus - 1)) / (is_slow ? 5 : 1), 20, 0.005);
        },
        2000);
  }
  static api::TrialJob JobOf(std::optional<std::int64_t> gpu_seconds) {
    api::TrialJob job = TestTrialJob({1, 2, 4, 8}, {16, 32, 64});
    job.spec.early_stop = false;
    job.spec.budget.gpu_seconds = gpu_seconds;
    return job;
  }
  const api::Trial& Slow() {
    return *std::ranges::find_if(status().trials, [](const api::Trial& trial) {
      return trial.config.gpus == 4 && trial.config.batch_size == 64;
    });
  }
};

TEST(Stragglers, AreMeasuredAgainAndThenCount) {
  Straggling world;
  ASSERT_TRUE(world.status().completion_time) << world.ReadyMessage();
  EXPECT_TRUE(world.Slow().is_repeat);
  EXPECT_EQ(world.Slow().phase, api::TrialPhase::kSucceeded);
  EXPECT_NEAR(std::stod(world.Slow().measured->throughput), 377, 4);
  EXPECT_EQ(world.Slow().message.view().find("straggler"), std::string::npos) << world.Slow().message;
  EXPECT_EQ(std::ranges::count_if(world.status().trials, [](const api::Trial& t) { return t.is_repeat; }), 1);
}

TEST(Stragglers, AreLeftOutIfTheyAreSlowTwice) {
  Straggling world(true);
  ASSERT_TRUE(world.status().completion_time);
  EXPECT_TRUE(world.Slow().is_repeat);
  EXPECT_THAT(world.Slow().message, HasSubstr("left out of the curve, twice"));
}

TEST(Stragglers, AreNotMeasuredAgainWithoutABudget) {
  Straggling twice(true);
  Straggling world(true, twice.status().spent.gpu_seconds - twice.Slow().gpu_seconds / 2);
  ASSERT_TRUE(world.status().completion_time);
  EXPECT_FALSE(world.Slow().is_repeat);
  EXPECT_EQ(world.Slow().phase, api::TrialPhase::kSucceeded);
  EXPECT_THAT(world.Slow().message, HasSubstr("left out of the curve"));
}

}  // namespace
}  // namespace grus::testing
