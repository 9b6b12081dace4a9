// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

std::vector<QueueSpec> Flat(const std::map<std::string, GpuQuota>& quotas) {
  std::vector<QueueSpec> specs;
  for (const auto& [name, quota] : quotas) specs.push_back(QueueIn(name, "", quota));
  return specs;
}

struct FlatCase {
  const char* what;
  double pool;
  std::map<std::string, GpuQuota> quotas;
  GpusByQueue wanted, shares;
};

void ExpectShares(const std::vector<FlatCase>& cases) {
  for (const FlatCase& c : cases) {
    const QueueTree tree = TreeOf(Flat(c.quotas), c.pool);
    EXPECT_EQ(SharesOf(tree, c.wanted), c.shares) << c.what;
  }
}

TEST(FairShares, AreMaxMin) {
  ExpectShares({
      // S. Keshav, "An Engineering Approach to Computer Networking", 1997, pages 215 to 217.
      {"equal weights",
       10,
       {{"1", {}}, {"2", {}}, {"3", {}}, {"4", {}}},
       {{"1", 2}, {"2", 2.6}, {"3", 4}, {"4", 5}},
       {{"1", 2}, {"2", 2.6}, {"3", 2.7}, {"4", 2.7}}},
      {"weights",
       16,
       {{"1", {.weight = 5}}, {"2", {.weight = 8}}, {"3", {.weight = 1}}, {"4", {.weight = 2}}},
       {{"1", 4}, {"2", 2}, {"3", 10}, {"4", 4}},
       {{"1", 4}, {"2", 2}, {"3", 6}, {"4", 4}}},
      {"thirds, exactly",
       10,
       {{"1", {}}, {"2", {}}, {"3", {}}},
       {{"1", 9}, {"2", 9}, {"3", 9}},
       {{"1", 3.334}, {"2", 3.333}, {"3", 3.333}}},
      {"less is wanted than there is", 10, {{"1", {}}, {"2", {}}}, {{"1", 2}, {"2", 3}}, {{"1", 2}, {"2", 3}}},
      {"no GPU", 0, {{"1", {}}, {"2", {}}}, {{"1", 2}, {"2", 3}}, {{"1", 0}, {"2", 0}}},
  });
}

// The numbers of Kueue's borrowing example (documentation of ClusterQueue): two queues with quotas of 9 and 12.
TEST(FairShares, GiveTheGuaranteeFirstAndLendWhatIsIdle) {
  ExpectShares({
      {"the other one wants nothing", 21, {{"a", {9}}, {"b", {12}}}, {{"a", 30}, {"b", 0}}, {{"a", 21}, {"b", 0}}},
      {"both want all", 21, {{"a", {9}}, {"b", {12}}}, {{"a", 30}, {"b", 30}}, {{"a", 9}, {"b", 12}}},
      {"the other one wants some", 21, {{"a", {9}}, {"b", {12}}}, {{"a", 30}, {"b", 5}}, {{"a", 16}, {"b", 5}}},
      {"a limit of 1 above the guarantee",
       21,
       {{"a", {9, 10}}, {"b", {12}}},
       {{"a", 30}, {"b", 0}},
       {{"a", 10}, {"b", 0}}},
      {"the other one lends 1 of 12",
       21,
       {{"a", {9}}, {"b", {12, -1, 1}}},
       {{"a", 30}, {"b", 0}},
       {{"a", 10}, {"b", 0}}},
      {"the other one lends nothing, but uses it",
       21,
       {{"a", {9}}, {"b", {12, -1, 0}}},
       {{"a", 30}, {"b", 30}},
       {{"a", 9}, {"b", 12}}},
  });
}

TEST(FairShares, CountWeightsAboveTheGuarantee) {
  ExpectShares({
      {"what is guaranteed to nobody, 1 to 3",
       20,
       {{"a", {4, -1, -1, 1}}, {"b", {8, -1, -1, 3}}},
       {{"a", 30}, {"b", 30}},
       {{"a", 6}, {"b", 14}}},
      {"a queue without guarantee", 20, {{"a", {10}}, {"b", {}}}, {{"a", 30}, {"b", 30}}, {{"a", 15}, {"b", 5}}},
      {"a limit passes its part on",
       20,
       {{"a", {0, 2}}, {"b", {}}, {"c", {}}},
       {{"a", 30}, {"b", 30}, {"c", 30}},
       {{"a", 2}, {"b", 9}, {"c", 9}}},
  });
}

// The 480 servers of Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads", SoCC 2013: two
// halves, one of them divided 2 : 1 : 2.
TEST(FairShares, OfChildrenComeFromTheirParent) {
  const QueueTree tree = TreeOf(
      {
          QueueIn("left", "", {}),
          QueueIn("right", "", {}),
          QueueIn("dev", "right", {.weight = 2}),
          QueueIn("test", "right", {.weight = 1}),
          QueueIn("prod", "right", {.weight = 2}),
      },
      480);

  EXPECT_EQ(SharesOf(tree, {{"left", 999}, {"dev", 999}, {"test", 999}, {"prod", 999}}),
            (GpusByQueue{{"left", 240}, {"dev", 96}, {"test", 48}, {"prod", 96}}));
  // What one does not want goes to its siblings before anybody else.
  EXPECT_EQ(SharesOf(tree, {{"left", 999}, {"dev", 0}, {"test", 999}, {"prod", 999}}),
            (GpusByQueue{{"left", 240}, {"dev", 0}, {"test", 80}, {"prod", 160}}));
  EXPECT_EQ(SharesOf(tree, {{"left", 999}, {"dev", 10}, {"test", 20}, {"prod", 30}}),
            (GpusByQueue{{"left", 420}, {"dev", 10}, {"test", 20}, {"prod", 30}}));
}

TEST(FairShares, RespectGuaranteesAndLimitsAtEveryLevel) {
  const QueueTree tree = TreeOf(
      {
          QueueIn("research", "", {.guaranteed = 12, .limit = 16}),
          QueueIn("vision", "research", {.guaranteed = 8}),
          QueueIn("speech", "research", {}),
          QueueIn("product", "", {.guaranteed = 8}),
      },
      32);
  struct Case {
    const char* what;
    GpusByQueue wanted, shares;
  };
  for (const Case& c : {
           // 12 are guaranteed to research, 8 of these to vision; limited to 16, it gets 4 of the 12 more.
           Case{"all want all",
                {{"vision", 99}, {"speech", 99}, {"product", 99}},
                {{"vision", 12}, {"speech", 4}, {"product", 16}}},
           // Speech uses its parent's guarantee before product gets any of it.
           Case{"vision wants nothing",
                {{"vision", 0}, {"speech", 99}, {"product", 99}},
                {{"vision", 0}, {"speech", 16}, {"product", 16}}},
           Case{"product wants nothing",
                {{"vision", 99}, {"speech", 99}, {"product", 0}},
                {{"vision", 12}, {"speech", 4}, {"product", 0}}},
           Case{"only product",
                {{"vision", 0}, {"speech", 0}, {"product", 99}},
                {{"vision", 0}, {"speech", 0}, {"product", 32}}},
       }) {
    EXPECT_EQ(SharesOf(tree, c.wanted), c.shares) << c.what;
  }
}

TEST(FairShares, LeaveIdleWhatIsNotLentAtAnyLevel) {
  const QueueTree tree = TreeOf(
      {
          QueueIn("research", "", {.guaranteed = 16, .limit = -1, .lendable = 6}),
          QueueIn("vision", "research", {.guaranteed = 8, .limit = -1, .lendable = 3}),
          QueueIn("speech", "research", {}),
          QueueIn("product", "", {}),
      },
      20);
  // Vision lends 3 of 8 to speech, research 6 of 16 to product; 4 are guaranteed to nobody.
  EXPECT_EQ(SharesOf(tree, {{"speech", 99}, {"product", 0}}), (GpusByQueue{{"speech", 15}, {"product", 0}}));
  EXPECT_EQ(SharesOf(tree, {{"speech", 0}, {"product", 99}}), (GpusByQueue{{"speech", 0}, {"product", 10}}));
  EXPECT_EQ(SharesOf(tree, {{"speech", 2}, {"product", 99}}), (GpusByQueue{{"speech", 2}, {"product", 10}}));
  EXPECT_EQ(SharesOf(tree, {{"speech", 8}, {"product", 99}}), (GpusByQueue{{"speech", 8}, {"product", 7}}));
}

TEST(FairShares, OfQueuesThatStartNothingAreWhatTheyUse) {
  struct Case {
    const char* what;
    QueueStop stop;
    std::int64_t weight;
    double share;
  };
  for (const Case& c : {Case{"open", QueueStop::kNone, 1, 8}, Case{"held", QueueStop::kHold, 1, 3},
                        Case{"drains", QueueStop::kDrain, 1, 0}, Case{"faulty", QueueStop::kNone, 0, 3}}) {
    QueueSpec spec = QueueIn("x", "", {.guaranteed = 4, .limit = -1, .lendable = 0, .weight = c.weight});
    spec.stop = c.stop;
    const QueueTree tree = TreeOf({spec, QueueIn("y", "", {})}, 12);
    const GpusByQueue shares = SharesOf(tree, {{"x", 99}, {"y", 99}}, {{"x", 3}});
    // Nothing is kept idle for a queue that cannot start anything.
    EXPECT_EQ(shares, (GpusByQueue{{"x", c.share}, {"y", 12 - c.share}})) << c.what;
  }
}

TEST(FairShares, CountJobsOfAQueueWithOthersBelowItLikeOneMoreQueue) {
  const QueueTree tree = TreeOf(
      {QueueIn("research", "", {.guaranteed = 12}), QueueIn("vision", "research", {}), QueueIn("y", "", {})}, 12);
  // They want what they use, and no more.
  EXPECT_EQ(SharesOf(tree, {{"research", 99}, {"vision", 99}}, {{"research", 4}}),
            (GpusByQueue{{"research", 12}, {"vision", 8}}));
  EXPECT_EQ(SharesOf(tree, {{"research", 99}, {"vision", 99}}, {{"research", 9}}),
            (GpusByQueue{{"research", 12}, {"vision", 6}}));
}

TEST(FairShares, WithoutQueuesAllGoesToTheDefaultQueue) {
  EXPECT_EQ(SharesOf(TreeOf({}, 12), {{"default", 99}}), (GpusByQueue{{"default", 12}}));
}

TEST(FairShares, DoNotDependOnTheOrderOfSpecs) {
  std::vector<QueueSpec> specs = Flat({{"a", {3}}, {"b", {2}}, {"c", {}}, {"d", {}}});
  const GpusByQueue wanted = {{"a", 9}, {"b", 9}, {"c", 9}, {"d", 9}};
  const GpusByQueue shares = SharesOf(TreeOf(specs, 10), wanted);
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    std::ranges::shuffle(specs, random);
    EXPECT_EQ(SharesOf(TreeOf(specs, 10), wanted), shares);
  }
}

}  // namespace
}  // namespace grus
