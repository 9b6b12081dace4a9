// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/service_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

using Counts = std::map<std::string, int>;

// Starts jobs, each queue's all alike, in the order of service, until none can start. A queue whose job is refused is
// not tried again.
Counts StartAll(const QueueTree& tree, const std::map<std::string, std::vector<PoolNeed>>& jobs,
                std::vector<std::string>* sequence = nullptr) {
  QueueUse use(tree);
  ServiceOrder order(use);
  for (const auto& [queue, needs] : jobs) order.SetFirst(tree.Find(queue), needs);
  Counts started;
  while (order.Next() != kNoQueue) {
    const QueueIndex queue = order.Next();
    const std::string& name = tree.NameOf(queue);
    const std::vector<PoolNeed>& needs = jobs.at(name);
    if (!Admit(use, {queue, needs}).is_admitted()) {
      order.Remove(queue);
      continue;
    }
    for (const PoolNeed& need : needs) use.Add(queue, need.pool, {need.milli, 0, 0});
    order.Update(queue);
    ++started[name];
    if (sequence != nullptr) sequence->push_back(name);
  }
  return started;
}

// Two pools, "cpu" and "memory", without guarantees.
QueueTree DrfTree(std::int64_t cpus, std::int64_t gigabytes, const std::map<std::string, std::int64_t>& weights) {
  std::vector<QueueSpec> specs;
  for (const auto& [name, weight] : weights) {
    specs.push_back(
        {.name = name, .quotas = {QuotaIn("cpu", {.weight = weight}), QuotaIn("memory", {.weight = weight})}});
  }
  const std::vector<PoolSize> pools = {{"cpu", cpus * kOneGpu}, {"memory", gigabytes * kOneGpu}};
  return QueueTree::Build(specs, pools);
}

std::vector<PoolNeed> Task(std::int64_t cpus, std::int64_t gigabytes) {
  return {{0, cpus * kOneGpu}, {1, gigabytes * kOneGpu}};
}

// Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", NSDI 2011, section 4.1: 9
// CPUs and 18 GB; user A's tasks need <1 CPU, 4 GB>, user B's <3 CPUs, 1 GB>.
TEST(ServiceOrder, IsThatOfDominantResourceFairness) {
  std::vector<std::string> sequence;
  const Counts started =
      StartAll(DrfTree(9, 18, {{"A", 1}, {"B", 1}}), {{"A", Task(1, 4)}, {"B", Task(3, 1)}}, &sequence);
  EXPECT_EQ(started, (Counts{{"A", 3}, {"B", 2}}));
  // Table 1 of the paper starts with B; the first step is a tie, which the name decides here.
  EXPECT_EQ(sequence, (std::vector<std::string>{"A", "B", "A", "B", "A"}));
}

TEST(ServiceOrder, WeighsDominantShares) {
  // Twice the weight: twice the dominant share.
  EXPECT_EQ(StartAll(DrfTree(30, 30, {{"A", 2}, {"B", 1}}), {{"A", Task(1, 0)}, {"B", Task(1, 0)}}),
            (Counts{{"A", 20}, {"B", 10}}));
}

TEST(ServiceOrder, ServesAQueueBelowItsGuaranteeFirst) {
  const QueueTree tree = TreeOf({QueueIn("a", "", {}), QueueIn("b", "", {.guaranteed = 6})}, 12);
  QueueUse use = UseOf(tree, {{"b", 5}});
  ServiceOrder order(use);
  order.SetFirst(tree.Find("a"), {{0, Gpus(1)}});
  order.SetFirst(tree.Find("b"), {{0, Gpus(1)}});
  EXPECT_EQ(tree.NameOf(order.Next()), "b") << "although a uses nothing";

  // Its next job does not fit into the guarantee: then it has borrowed as little as a, and uses more.
  order.SetFirst(tree.Find("b"), {{0, Gpus(2)}});
  EXPECT_EQ(tree.NameOf(order.Next()), "a");
}

TEST(ServiceOrder, ComparesWhatQueuesHaveBorrowedForTheirWeight) {
  const QueueTree tree =
      TreeOf({QueueIn("a", "", {.guaranteed = 8, .weight = 1}), QueueIn("b", "", {.guaranteed = 0, .weight = 3})}, 24);
  struct Case {
    double a, b;
    const char* next;
  };
  for (const Case& c : {Case{8, 0, "b"},   // Nothing borrowed; b uses less.
                        Case{8, 1, "a"},   // a has borrowed nothing.
                        Case{10, 5, "b"},  // 2 for 1, 5 for 3.
                        Case{10, 6, "b"},  // 2 each; 10 and 2 in all.
                        Case{10, 7, "a"}}) {
    const QueueUse use = UseOf(tree, {{"a", c.a}, {"b", c.b}});
    ServiceOrder order(use);
    order.SetFirst(tree.Find("a"), {{0, Gpus(1)}});
    order.SetFirst(tree.Find("b"), {{0, Gpus(1)}});
    EXPECT_EQ(tree.NameOf(order.Next()), c.next) << c.a << " and " << c.b;
  }
}

TEST(ServiceOrder, ComparesAtEachLevel) {
  const QueueTree tree = TreeOf({QueueIn("one", "", {}), QueueIn("one-a", "one", {}), QueueIn("one-b", "one", {}),
                                 QueueIn("two", "", {}), QueueIn("two-a", "two", {})},
                                12);
  const std::vector<PoolNeed> job = {{0, Gpus(1)}};
  // Each half of the tree gets half, however many queues are below it.
  EXPECT_EQ(StartAll(tree, {{"one-a", job}, {"one-b", job}, {"two-a", job}}),
            (Counts{{"one-a", 3}, {"one-b", 3}, {"two-a", 6}}));
}

TEST(ServiceOrder, ServesAQueueBelowItsGuaranteeWhateverItsSiblingsUse) {
  const QueueTree tree = TreeOf({QueueIn("one", "", {.guaranteed = 4}), QueueIn("one-a", "one", {.guaranteed = 4}),
                                 QueueIn("one-b", "one", {}), QueueIn("two", "", {})},
                                16);
  const QueueUse use = UseOf(tree, {{"one-b", 10}});
  ServiceOrder order(use);
  order.SetFirst(tree.Find("two"), {{0, Gpus(1)}});
  order.SetFirst(tree.Find("one-a"), {{0, Gpus(1)}});
  EXPECT_EQ(tree.NameOf(order.Next()), "one-a") << "although its parent has borrowed 6, and two nothing";
}

TEST(ServiceOrder, EndsTiesByName) {
  const QueueTree tree = TreeOf({QueueIn("b", "", {}), QueueIn("a", "", {}), QueueIn("c", "", {})}, 3);
  std::vector<std::string> sequence;
  const std::vector<PoolNeed> job = {{0, Gpus(1)}};
  StartAll(tree, {{"c", job}, {"b", job}, {"a", job}}, &sequence);
  EXPECT_EQ(sequence, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(ServiceOrder, ForgetsQueuesThatAreRemoved) {
  const QueueTree tree = TreeOf({QueueIn("p", "", {}), QueueIn("a", "p", {}), QueueIn("b", "", {})}, 8);
  const QueueUse use(tree);
  ServiceOrder order(use);
  EXPECT_EQ(order.Next(), kNoQueue);
  order.SetFirst(tree.Find("a"), {{0, kOneGpu}});
  EXPECT_EQ(tree.NameOf(order.Next()), "a");
  order.Remove(tree.Find("a"));
  EXPECT_EQ(order.Next(), kNoQueue);
}

TEST(ServiceOrderProperty, IsTheSameAfterChangesAsWhenMadeAnew) {
  for (unsigned seed = 0; seed < 1'000; ++seed) {
    Draws draws(seed);
    const QueueTree tree = RandomTree(draws, 12);
    QueueUse use(tree);
    ServiceOrder order(use);
    std::map<QueueIndex, std::int64_t> first;
    for (int step = 0; step < 30; ++step) {
      const auto queue = static_cast<QueueIndex>(draws.Between(kRootQueue + 1, tree.size() - 1));
      if (!tree.IsLeaf(queue)) continue;
      if (draws.OneIn(3)) {
        use.Add(queue, 0, {draws.Between(0, 9 * kOneGpu), 0, 0});
        order.Update(queue);
      } else if (draws.OneIn(4)) {
        first.erase(queue);
        order.Remove(queue);
      } else {
        first[queue] = draws.Between(1, 8 * kOneGpu);
        order.SetFirst(queue, {{0, first[queue]}});
      }
      ServiceOrder anew(use);
      for (const auto& [of, milli] : first) anew.SetFirst(of, {{0, milli}});
      ASSERT_EQ(order.Next(), anew.Next()) << "seed " << seed << " step " << step;
    }
  }
}

// No queue with demand below its guarantee waits for one that borrows.
TEST(ServiceOrderProperty, NoQueueThatBorrowsIsServedBeforeAGuarantee) {
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    Draws draws(seed);
    const QueueTree tree = RandomTree(draws, 12);
    QueueUse use(tree);
    ServiceOrder order(use);
    std::map<QueueIndex, std::int64_t> first;
    for (QueueIndex queue = kRootQueue + 1; queue < tree.size(); ++queue) {
      if (!tree.IsLeaf(queue)) continue;
      use.Add(queue, 0, {draws.Between(0, 9 * kOneGpu), 0, 0});
      first[queue] = draws.Between(1, 8 * kOneGpu);
    }
    for (const auto& [queue, milli] : first) order.SetFirst(queue, {{0, milli}});
    const auto fits = [&](QueueIndex queue, QueueIndex above) {
      return use.used(above, 0) + first[queue] <= tree.QuotaOf(above, 0).guaranteed;
    };
    const bool is_owed =
        std::any_of(first.begin(), first.end(), [&](const auto& of) { return fits(of.first, of.first); });
    if (!is_owed) continue;

    const QueueIndex next = order.Next();

    // Its own guarantee, or that of a queue above it.
    bool is_within = false;
    for (QueueIndex above = next; above != kRootQueue; above = tree.ParentOf(above)) is_within |= fits(next, above);
    ASSERT_TRUE(is_within) << "seed " << seed;
  }
}

}  // namespace
}  // namespace grus
