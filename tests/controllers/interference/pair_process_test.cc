// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace grus {
namespace {

// Jobs 0 to 7 beside each other; the target is the sum of what the job suffers and the partner does.
PairTargets Additive() {
  PairTargets known;
  for (int job = 0; job < 8; ++job) {
    for (int partner = 0; partner < 8; ++partner) {
      PairPoint point;
      point.job = point.job_family = job;
      point.partner = point.partner_family = partner;
      point.gpu_type = 0;
      known.points.push_back(point);
      known.targets.push_back(0.3 * job + 0.2 * ((partner * 5) % 8) - 1.75);
      known.noise_shares.push_back(1);
    }
  }
  return known;
}

TEST(BlocksOf, AreDisjointAndSmallEnoughToFactor) {
  for (const std::size_t points : {1u, 256u, 257u, 5000u}) {
    std::set<std::size_t> seen;
    for (const PointIndices& block : BlocksOf(points)) {
      EXPECT_FALSE(block.empty());
      EXPECT_LE(block.size(), 256u);
      for (const std::size_t i : block) EXPECT_TRUE(i < points && seen.insert(i).second);
    }
    EXPECT_EQ(seen.size(), std::min<std::size_t>(points, 512)) << points;
  }
}

TEST(PairProcess, TellsAPairFromOtherPairsOfBoth) {
  PairTargets known = Additive();
  const PairPoint asked = known.points[19];
  const double wanted = known.targets[19];
  known.points.erase(known.points.begin() + 19);
  known.targets.erase(known.targets.begin() + 19);
  known.noise_shares.erase(known.noise_shares.begin() + 19);
  const PairScales scales = LearnScales(known, BlocksOf(known.points.size()), true);
  const PairGuesses guesses = PairProcess(known, scales).Guess({asked});
  EXPECT_NEAR(guesses.means[0], wanted, 0.1);
  EXPECT_LT(guesses.deviations[0], 0.3);
}

TEST(PairProcess, FarFromAllThatIsKnownTheDeviationIsThePriors) {
  const PairTargets known = Additive();
  const PairProcess process(known, PriorScales());
  PairPoint far;
  far.features.fill(100);
  far.is_known.fill(true);
  const PairGuesses guesses = process.Guess({far, known.points[0]});
  const double prior = PairKernel(PriorScales()).prior_variance() + std::exp(PriorScales()[kNoise]);
  EXPECT_NEAR(guesses.means[0], 0, 1e-9);
  EXPECT_NEAR(guesses.deviations[0], std::sqrt(prior), 1e-9);
  EXPECT_LT(guesses.deviations[1], guesses.deviations[0] / 2);
}

TEST(PairProcess, AMeanOfManyMeasurementsCountsMore) {
  PairTargets once, often;
  for (PairTargets* known : {&once, &often}) {
    known->points = {Additive().points[3]};
    known->targets = {1};
  }
  once.noise_shares = {1};
  often.noise_shares = {0.125};
  PairScales scales = PriorScales();
  scales[kNoise] = 0;
  EXPECT_LT(PairProcess(once, scales).Guess(once.points).means[0],
            PairProcess(often, scales).Guess(often.points).means[0]);
}

TEST(LeaveOut, IsWhatAProcessWithoutThemSays) {
  PairTargets known = Additive();
  const PairScales scales = PriorScales();
  PointIndices block(known.points.size());
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = i;
  const PointIndices group = {5, 17, 40};
  const PairGuesses left_out = LeaveOut(known, block, scales, {group});
  PairTargets rest;
  std::vector<PairPoint> asked;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (std::ranges::count(group, i) > 0) {
      asked.push_back(known.points[i]);
      continue;
    }
    rest.points.push_back(known.points[i]);
    rest.targets.push_back(known.targets[i]);
    rest.noise_shares.push_back(1);
  }
  const PairGuesses guesses = PairProcess(rest, scales).Guess(asked);
  for (std::size_t i = 0; i < group.size(); ++i) {
    EXPECT_NEAR(left_out.means[i], guesses.means[i], 1e-9);
    EXPECT_NEAR(left_out.deviations[i], guesses.deviations[i], 1e-9);
  }
}

}  // namespace
}  // namespace grus
