// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/replay/replay_sides.h"

#include <gtest/gtest.h>

#include <set>

#include "bench/interference/public_co_runs.h"
#include "tests/kit/must.h"
#include "tests/kit/tree_file.h"

namespace grus {
namespace {

struct Promise {
  const char* gpu_type;
  double mean_jct, makespan;  // Of best fit, in percent, at most.
};

// docs/interference.md has the figures of all seeds and loads.
TEST(ReplaySides, GrusEndsJobsSoonerThanBestFitAndIsNotBehindExclusiveGpus) {
  for (const Promise& promise : {Promise{"v100", -23, -22}, {"p100", -15, 0}, {"k80", -15, 0}}) {
    const auto samples = kit::Must(LoadGavel(kit::TreePath("bench/data"), {promise.gpu_type}));
    std::set<std::string> names;
    for (const CoRunSample& sample : samples) names.insert(sample.job.fingerprint);
    const ReplayWorld world = MakeWorld(samples, promise.gpu_type, {names.begin(), names.end()});
    std::vector<SideGain> over_best_fit, over_exclusive;
    for (std::uint32_t seed = 1; seed <= 4; ++seed) {
      const ReplayDraw draw = Draw(world, seed);
      EXPECT_GT(draw.above_low_end, 0.85);
      std::map<Side, SharingFigures> figures = ReplaySides(world, draw, 200, 1.5, WorkLengths::kUniform);
      over_best_fit.push_back(GainOver(figures[Side::kGrus], figures[Side::kBestFit]));
      over_exclusive.push_back(GainOver(figures[Side::kGrus], figures[Side::kExclusive]));
      EXPECT_NEAR(figures[Side::kExclusive].work_a_busy_second, 1, 1e-9);
    }
    EXPECT_LT(MedianOf(over_best_fit).mean_jct, promise.mean_jct) << promise.gpu_type;
    EXPECT_LT(MedianOf(over_best_fit).makespan, promise.makespan) << promise.gpu_type;
    EXPECT_LT(WorstOf(over_exclusive).mean_jct, 4) << promise.gpu_type;
  }
}

TEST(MedianOf, IsThatOfEachFigureAndWorstIsWhereLeastIsGained) {
  const std::vector<SideGain> gains = {{1, 5, -9, -1}, {3, 4, -7, 2}, {2, 1, 0, -3}, {8, 9, 1, 0}};
  const SideGain median = MedianOf(gains), worst = WorstOf(gains);
  EXPECT_EQ(median.work_a_busy_second, 2.5);
  EXPECT_EQ(median.mean_jct, -3.5);
  EXPECT_EQ(worst.work_a_busy_second, 1);
  EXPECT_EQ(worst.work_a_gpu_second, 1);
  EXPECT_EQ(worst.mean_jct, 1);
  EXPECT_EQ(worst.makespan, 2);
}

}  // namespace
}  // namespace grus
