// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

using Amounts = std::vector<std::int64_t>;

Amounts MaxMinOf(std::int64_t amount, const Amounts& wanted, const Amounts& weights = {}) {
  std::vector<MaxMinItem> items;
  for (std::size_t i = 0; i < wanted.size(); ++i) items.push_back({weights.empty() ? 1 : weights[i], wanted[i]});
  return MaxMin(amount, items);
}

TEST(MaxMin, IsThatOfTheTextbook) {
  // S. Keshav, "An Engineering Approach to Computer Networking", 1997, pages 215 to 217. In hundredths; the
  // weights 2.5, 4, 0.5 and 1 as integers of the same ratio.
  EXPECT_EQ(MaxMinOf(1000, {200, 260, 400, 500}), (Amounts{200, 260, 270, 270}));
  EXPECT_EQ(MaxMinOf(1600, {400, 200, 1000, 400}, {5, 8, 1, 2}), (Amounts{400, 200, 600, 400}));
}

TEST(MaxMin, GivesRemaindersToTheLargestThenToTheFirst) {
  struct Case {
    std::int64_t amount;
    Amounts wanted, weights, gets;
  };
  for (const Case& c : {
           Case{10, {10, 10, 10}, {1, 1, 1}, {4, 3, 3}},
           Case{11, {11, 11, 11}, {1, 1, 1}, {4, 4, 3}},
           Case{10, {10, 10, 10}, {1, 1, 4}, {2, 2, 6}},  // 1.67, 1.67, 6.67
           Case{7, {7, 7, 7}, {3, 2, 1}, {4, 2, 1}},      // 3.5, 2.33, 1.17
           Case{1, {5, 5}, {1, 2}, {0, 1}},
           Case{0, {5, 5}, {1, 2}, {0, 0}},
           Case{9, {2, 3}, {1, 1}, {2, 3}},  // More than is wanted.
           Case{9, {0, 3}, {0, 1}, {0, 3}},
           Case{9, {}, {}, {}},
       }) {
    EXPECT_EQ(MaxMinOf(c.amount, c.wanted, c.weights), c.gets) << "amount " << c.amount;
  }
}

TEST(MaxMin, HoldsWithNumbersAsLargeAsItTakes) {
  constexpr std::int64_t kHuge = (std::int64_t{1} << 60) - 1;
  EXPECT_EQ(MaxMinOf(kHuge, {kHuge, kHuge}, {kHuge, kHuge}), (Amounts{kHuge / 2 + 1, kHuge / 2}));
}

// The definition: by steps of one, always to the one with the least for its weight.
TEST(MaxMin, NobodyCanGetMoreButFromOneWithMoreForItsWeight) {
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    Draws draws(seed);
    std::vector<MaxMinItem> items(static_cast<std::size_t>(draws.Between(0, 8)));
    std::int64_t wanted = 0;
    for (MaxMinItem& item : items) {
      item = {draws.Between(1, 9), draws.Between(0, 60)};
      wanted += item.most;
    }
    const std::int64_t amount = draws.Between(0, 200);

    const Amounts gets = MaxMin(amount, items);

    EXPECT_EQ(std::accumulate(gets.begin(), gets.end(), std::int64_t{0}), std::min(amount, wanted)) << "seed " << seed;
    for (std::size_t i = 0; i < items.size(); ++i) {
      ASSERT_GE(gets[i], 0);
      ASSERT_LE(gets[i], items[i].most) << "seed " << seed;
      for (std::size_t j = 0; j < items.size() && gets[i] < items[i].most; ++j) {
        // Within the rounding of both.
        ASSERT_LT((gets[j] - 1) * items[i].weight, (gets[i] + 1) * items[j].weight) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace grus
