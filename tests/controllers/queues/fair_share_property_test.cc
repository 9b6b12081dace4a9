// SPDX-License-Identifier: Apache-2.0
// What holds for the shares of every tree: random ones, from seeds.
#include <gtest/gtest.h>

#include <algorithm>

#include "controllers/queues/fair_share.h"
#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

constexpr unsigned kSeeds = 3'000;
constexpr int kMostQueues = 14;

struct Shared {
  QueueTree tree;
  std::vector<QueueDemand> demands;
  std::vector<std::int64_t> shares, wanted;  // By queue; wanted within the limits of the queue and those below it.
  std::vector<std::int64_t> withheld;        // Likewise: idle, and not lent to others.

  std::int64_t share(QueueIndex queue) const { return shares[static_cast<std::size_t>(queue)]; }
  std::int64_t want(QueueIndex queue) const { return wanted[static_cast<std::size_t>(queue)]; }
  const EffectiveQuota& quota(QueueIndex queue) const { return tree.QuotaOf(queue, 0); }
};

Shared Share(QueueTree tree, std::vector<QueueDemand> demands) {
  Shared shared{std::move(tree), std::move(demands), {}, {}, {}};
  const auto size = static_cast<std::size_t>(shared.tree.size());
  shared.wanted.assign(size, 0);
  shared.withheld.assign(size, 0);
  for (QueueIndex queue = shared.tree.size() - 1; queue >= kRootQueue; --queue) {
    const auto at = static_cast<std::size_t>(queue);
    shared.wanted[at] = std::min(shared.wanted[at] + shared.demands[at].wanted, shared.quota(queue).limit);
    shared.withheld[at] = std::max(shared.withheld[at], shared.quota(queue).kept - shared.wanted[at]);
    if (queue == kRootQueue) break;
    const auto parent = static_cast<std::size_t>(shared.tree.ParentOf(queue));
    shared.wanted[parent] += shared.wanted[at];
    shared.withheld[parent] += shared.withheld[at];
  }
  shared.shares = FairShares(shared.tree, 0, shared.demands);
  return shared;
}

template <typename Check>
void ForRandomTrees(const Check& check) {
  for (unsigned seed = 0; seed < kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draws draws(seed);
    QueueTree tree = RandomTree(draws, kMostQueues);
    std::vector<QueueDemand> demands = RandomDemands(draws, tree);
    ASSERT_TRUE(tree.faults().empty());
    check(Share(std::move(tree), std::move(demands)), draws);
  }
}

TEST(FairSharesProperty, OfChildrenAddUpToThatOfTheirParent) {
  ForRandomTrees([](const Shared& shared, Draws&) {
    for (QueueIndex queue = kRootQueue; queue < shared.tree.size(); ++queue) {
      if (shared.tree.IsLeaf(queue)) continue;
      std::int64_t sum = 0;
      for (const QueueIndex child : shared.tree.At(queue).children) sum += shared.share(child);
      EXPECT_EQ(sum, shared.share(queue)) << shared.tree.NameOf(queue);
    }
    EXPECT_LE(shared.share(kRootQueue), shared.tree.PoolAt(0).milli);
  });
}

TEST(FairSharesProperty, NoQueueIsAboveItsLimitOrItsDemand) {
  ForRandomTrees([](const Shared& shared, Draws&) {
    for (QueueIndex queue = kRootQueue; queue < shared.tree.size(); ++queue) {
      EXPECT_GE(shared.share(queue), 0);
      EXPECT_LE(shared.share(queue), shared.quota(queue).limit);
      EXPECT_LE(shared.share(queue), shared.want(queue));
    }
  });
}

// A queue below it that does not lend keeps its part of the parent's guarantee.
TEST(FairSharesProperty, EachQueueHasItsGuaranteeAsFarAsItWantsIt) {
  ForRandomTrees([](const Shared& shared, Draws&) {
    for (QueueIndex queue = kRootQueue + 1; queue < shared.tree.size(); ++queue) {
      std::int64_t guaranteed = shared.quota(queue).guaranteed;
      for (const QueueIndex child : shared.tree.At(queue).children) {
        guaranteed -= shared.withheld[static_cast<std::size_t>(child)];
      }
      EXPECT_GE(shared.share(queue), std::min(shared.want(queue), guaranteed)) << shared.tree.NameOf(queue);
    }
  });
}

// Idle is only what nobody may use: all that is wanted is given, or all but what is withheld.
TEST(FairSharesProperty, NoGpuIsIdleThatAQueueWithinItsLimitsCouldUse) {
  ForRandomTrees([](const Shared& shared, Draws&) {
    const std::int64_t pool = shared.tree.PoolAt(0).milli;
    EXPECT_EQ(shared.share(kRootQueue),
              std::min(shared.want(kRootQueue), pool - shared.withheld[static_cast<std::size_t>(kRootQueue)]));
  });
}

// Max-min: of two children that both have more than their guarantee, the one that still wants has no less for its
// weight. All is lent here, so that what counts above the guarantee is plain.
TEST(FairSharesProperty, NoQueueCanGetMoreButFromOneWithMoreForItsWeight) {
  int compared = 0;
  ForRandomTrees([&](const Shared& shared, Draws&) {
    for (QueueIndex queue = kRootQueue + 1; queue < shared.tree.size(); ++queue) {
      if (shared.quota(queue).kept > 0) return;
    }
    const auto more = [&](QueueIndex queue) {
      return shared.share(queue) - std::min(shared.want(queue), shared.quota(queue).guaranteed);
    };
    for (QueueIndex queue = kRootQueue + 1; queue < shared.tree.size(); ++queue) {
      if (shared.share(queue) == shared.want(queue)) continue;
      for (const QueueIndex other : shared.tree.At(shared.tree.ParentOf(queue)).children) {
        if (other == queue || more(other) == 0) continue;
        ++compared;
        // Within the rounding of both.
        EXPECT_LT((more(other) - 1) * shared.quota(queue).weight, (more(queue) + 1) * shared.quota(other).weight)
            << shared.tree.NameOf(queue) << " and " << shared.tree.NameOf(other);
      }
    }
  });
  EXPECT_GT(compared, 1'000);
}

// More demand of one queue costs no other one its guarantee, and this one nothing.
TEST(FairSharesProperty, AQueueThatWantsMoreGetsNoLess) {
  ForRandomTrees([](const Shared& shared, Draws& draws) {
    const auto queue = static_cast<QueueIndex>(draws.Between(kRootQueue + 1, shared.tree.size() - 1));
    if (!shared.tree.IsLeaf(queue)) return;
    std::vector<QueueDemand> demands = shared.demands;
    demands[static_cast<std::size_t>(queue)].wanted += draws.Between(1, 20 * kOneGpu);
    const std::vector<std::int64_t> shares = FairShares(shared.tree, 0, demands);
    // A thousandth may move between siblings at each level: largest remainders are not monotone.
    EXPECT_GE(shares[static_cast<std::size_t>(queue)], shared.share(queue) - shared.tree.At(queue).level);
    EXPECT_GE(shares[kRootQueue], shared.share(kRootQueue));
  });
}

TEST(FairSharesProperty, NobodyGetsLessFromALargerPool) {
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    // given: the same queues in two pools
    Draws draws(seed);
    const QueueTree tree = RandomTree(draws, kMostQueues);
    std::vector<QueueSpec> specs;
    for (QueueIndex queue = kRootQueue + 1; queue < tree.size(); ++queue) {
      const EffectiveQuota& quota = tree.QuotaOf(queue, 0);
      PoolQuota spec{"a", quota.guaranteed, std::nullopt, quota.guaranteed - quota.kept, quota.weight};
      if (quota.limit != kNoLimit) spec.limit_milli = quota.limit;
      specs.push_back({.name = tree.NameOf(queue), .parent = tree.NameOf(tree.ParentOf(queue)), .quotas = {spec}});
    }
    const std::vector<PoolSize> larger = {{"a", tree.PoolAt(0).milli + draws.Between(1, 20 * kOneGpu)}};
    const QueueTree more = QueueTree::Build(specs, larger);
    const std::vector<QueueDemand> demands = RandomDemands(draws, tree);

    const std::vector<std::int64_t> before = FairShares(tree, 0, demands), after = FairShares(more, 0, demands);

    ASSERT_EQ(before.size(), after.size());
    for (QueueIndex queue = kRootQueue; queue < tree.size(); ++queue) {
      ASSERT_GE(after[static_cast<std::size_t>(queue)], before[static_cast<std::size_t>(queue)] - tree.At(queue).level)
          << "seed " << seed << " queue " << tree.NameOf(queue);
    }
  }
}

}  // namespace
}  // namespace grus
