// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/node_scores.h"

#include <gmock/gmock.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PoolPlacement kPack = PoolPlacement::kBinPack, kSpread = PoolPlacement::kSpread;

std::vector<int> Scores(std::vector<NodeRank> ranks) { return ScoresOf(ranks); }

TEST(NodeScores, ReachFromTheWorstToTheBest) {
  EXPECT_THAT(Scores({{kPack, -8, true}, {kPack, -3, true}, {kPack, 2, true}}), ElementsAre(0, 5, 10));
}

TEST(NodeScores, OnlyTheBestHaveTheHighest) {
  EXPECT_THAT(Scores({{kPack, 0, true}, {kPack, 999, true}, {kPack, 1000, true}, {kPack, 1000, true}}),
              ElementsAre(0, 9, 10, 10));
}

TEST(NodeScores, EqualsHaveTheSame) {
  EXPECT_THAT(Scores({{kPack, -4, true}, {kPack, -4, true}}), ElementsAre(10, 10));
  EXPECT_THAT(Scores({{kPack, -4, true}}), ElementsAre(10));
  EXPECT_THAT(Scores({}), IsEmpty());
}

TEST(NodeScores, ANodeOfWhichNothingIsKnownIsNotPreferred) {
  EXPECT_THAT(Scores({{kPack, 5, false}, {kPack, -9, true}}), ElementsAre(0, 10));
  EXPECT_THAT(Scores({{kPack, 5, false}}), ElementsAre(0));
}

TEST(NodeScores, PlacementsAreNotComparedWithEachOther) {
  EXPECT_THAT(Scores({{kPack, -900, true}, {kPack, -100, true}, {kSpread, 1, true}, {kSpread, 3, true}}),
              ElementsAre(0, 10, 0, 10));
}

}  // namespace
}  // namespace grus
