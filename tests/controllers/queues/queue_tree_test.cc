// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "controllers/queues/queue_admission.h"
#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

using testing::HasSubstr;

// "QUEUE FIELD KIND" of each.
std::vector<std::string> FaultsOf(const QueueTree& tree) {
  std::vector<std::string> faults;
  for (const QueueFault& fault : tree.faults()) {
    faults.push_back(fault.queue + " " + fault.field + " " + std::string(ToString(fault.kind)));
  }
  return faults;
}

std::string MessageTo(const QueueTree& tree, const std::string& queue) {
  std::string messages;
  for (const QueueFault& fault : tree.faults()) {
    if (fault.queue == queue) messages += (messages.empty() ? "" : "\n") + fault.message;
  }
  return messages;
}

AdmissionReason WhenItNeedsAGpu(const QueueTree& tree, const std::string& queue, PoolIndex pool = 0) {
  return Admit(QueueUse(tree), {tree.Find(queue), {{pool, kOneGpu}}}).reason;
}

double GuaranteeOf(const QueueTree& tree, const std::string& queue) {
  return static_cast<double>(tree.QuotaOf(tree.Find(queue), 0).guaranteed) / kOneGpu;
}

QueueSpec Below(std::string name, std::string parent) { return {.name = std::move(name), .parent = std::move(parent)}; }

TEST(QueueTree, HasOneDefaultQueueWithoutAnySpec) {
  const QueueTree tree = TreeOf({}, 8);
  EXPECT_TRUE(tree.faults().empty());
  EXPECT_NE(tree.default_queue(), kNoQueue);
  EXPECT_EQ(Admit(QueueUse(tree), {tree.default_queue(), {{0, Gpus(8)}}, false}).reason, AdmissionReason::kUnshared);
}

TEST(QueueTree, HasTheDefaultQueueOfItsSpec) {
  const QueueTree tree = TreeOf({QueueIn("default", "", {.guaranteed = 3})}, 8);
  EXPECT_EQ(GuaranteeOf(tree, "default"), 3);
  EXPECT_EQ(tree.size(), 2);
}

TEST(QueueTree, DoesNotDependOnTheOrderOfSpecs) {
  std::vector<QueueSpec> specs = {QueueIn("b", "a", {1}), QueueIn("c", "a", {2}), QueueIn("a", "", {3}),
                                  QueueIn("d", "b", {.weight = 0}), Below("e", "nowhere")};
  const auto describe = [&] {
    const QueueTree tree = TreeOf(specs, 8);
    std::string text;
    for (QueueIndex queue = kRootQueue; queue < tree.size(); ++queue) {
      text += tree.NameOf(queue) + std::to_string(tree.ParentOf(queue)) + " ";
    }
    for (const QueueFault& fault : tree.faults()) text += fault.queue + fault.message;
    return text;
  };
  const std::string first = describe();
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    std::ranges::shuffle(specs, random);
    EXPECT_EQ(describe(), first);
  }
}

TEST(QueueTree, LeavesOutAQueueWithoutItsParentAndThoseBelowIt) {
  const QueueTree tree =
      TreeOf({QueueIn("lost", "nowhere", {4}), QueueIn("child", "lost", {2}), QueueIn("ok", "", {4})}, 8);

  EXPECT_EQ(FaultsOf(tree),
            (std::vector<std::string>{"child spec.parent ParentFaulty", "lost spec.parent ParentMissing"}));
  EXPECT_EQ(MessageTo(tree, "lost"),
            "there is no queue nowhere: create it, or name another parent; until then this queue and those below it "
            "start nothing new");
  EXPECT_EQ(WhenItNeedsAGpu(tree, "lost"), AdmissionReason::kLeftOut);
  EXPECT_EQ(WhenItNeedsAGpu(tree, "child"), AdmissionReason::kLeftOut);
  EXPECT_EQ(WhenItNeedsAGpu(tree, "ok"), AdmissionReason::kWithinGuarantee);
  EXPECT_EQ(GuaranteeOf(tree, "lost"), 0) << "it would count against the guarantees of others";
}

TEST(QueueTree, TellsEachMemberOfACycleItsPath) {
  const QueueTree tree = TreeOf(
      {Below("a", "b"), Below("b", "c"), Below("c", "a"), Below("below", "a"), Below("self", "self"), Below("ok", "")},
      8);

  EXPECT_EQ(FaultsOf(tree), (std::vector<std::string>{"a spec.parent ParentCycle", "b spec.parent ParentCycle",
                                                      "below spec.parent ParentFaulty", "c spec.parent ParentCycle",
                                                      "self spec.parent ParentCycle"}));
  EXPECT_THAT(MessageTo(tree, "a"), HasSubstr("(a -> b -> c -> a): change the parent of one of these"));
  EXPECT_THAT(MessageTo(tree, "b"), HasSubstr("(b -> c -> a -> b)"));
  EXPECT_THAT(MessageTo(tree, "self"), HasSubstr("(self -> self)"));
  for (const char* queue : {"a", "b", "c", "below", "self"}) {
    EXPECT_EQ(WhenItNeedsAGpu(tree, queue), AdmissionReason::kLeftOut) << queue;
  }
  EXPECT_EQ(WhenItNeedsAGpu(tree, "ok"), AdmissionReason::kUnshared);
}

TEST(QueueTree, LeavesOutQueuesOfOneName) {
  const QueueTree tree =
      TreeOf({QueueIn("twin", "", {4}), QueueIn("twin", "", {2}), Below("child", "twin"), Below("ok", "")}, 8);

  EXPECT_EQ(FaultsOf(tree),
            (std::vector<std::string>{"child spec.parent ParentFaulty", "twin metadata.name DuplicateName"}));
  EXPECT_THAT(MessageTo(tree, "twin"), HasSubstr("2 queues have the name twin: rename all but one"));
  EXPECT_EQ(WhenItNeedsAGpu(tree, "child"), AdmissionReason::kLeftOut);
  EXPECT_FALSE(tree.At(tree.Find("ok")).is_left_out);
}

TEST(QueueTree, ClosesAQueueInThePoolOfAFaultyQuota) {
  struct Case {
    const char* what;
    std::vector<PoolQuota> quotas;  // Pool b is right.
    const char* fault;
    const char* message;
  };
  const auto a = [](const GpuQuota& quota) { return QuotaIn("a", quota); };
  for (const Case& c : {
           Case{"zero weight",
                {a({.guaranteed = 2, .weight = 0})},
                "spec.quotas[0].weight WeightTooSmall",
                "weight is 0: set at least 1; until then nothing new starts in pool a"},
           Case{"limit below guarantee",
                {a({.guaranteed = 8, .limit = 4.5})},
                "spec.quotas[0].limit LimitBelowGuarantee",
                "the limit of 4.5 GPUs is below the guarantee of 8 GPUs: raise it, or lower guaranteed; until then "
                "nothing new starts in pool a"},
           Case{"two quotas",
                {a({.guaranteed = 2}), a({.guaranteed = 1})},
                "spec.quotas[1].pool TwoQuotas",
                "quotas 0 and 1 are both for pool a: remove one; until then nothing new starts in pool a, and the "
                "smaller numbers hold"},
           Case{"negative guarantee",
                {a({.guaranteed = -2})},
                "spec.quotas[0].guaranteed NegativeNumber",
                "guaranteed is -2: set at least 0; until then nothing new starts in pool a"},
           Case{"negative lendable",
                {{.pool = "a", .lendable_milli = -500}},
                "spec.quotas[0].lendable NegativeNumber",
                "lendable is -0.5: set at least 0; until then nothing new starts in pool a"},
       }) {
    QueueSpec spec{.name = "x", .quotas = c.quotas};
    spec.quotas.push_back(QuotaIn("b", {.guaranteed = 2}));
    const std::vector<QueueSpec> specs = {spec, Below("child", "x"), QueueIn("ok", "", {1})};
    const std::vector<PoolSize> pools = {{"a", Gpus(8)}, {"b", Gpus(8)}};
    const QueueTree tree = QueueTree::Build(specs, pools);

    EXPECT_EQ(FaultsOf(tree), (std::vector<std::string>{"child spec.parent ParentFaulty", std::string("x ") + c.fault}))
        << c.what;
    EXPECT_EQ(MessageTo(tree, "x"), c.message);
    EXPECT_THAT(MessageTo(tree, "child"), HasSubstr("the quota of the queue x above it in pool a is faulty"));
    EXPECT_EQ(WhenItNeedsAGpu(tree, "child"), AdmissionReason::kQuotaFaulty) << c.what;
    EXPECT_NE(WhenItNeedsAGpu(tree, "child", 1), AdmissionReason::kQuotaFaulty) << c.what << ": the other pool";
    EXPECT_EQ(WhenItNeedsAGpu(tree, "ok"), AdmissionReason::kWithinGuarantee) << c.what;
  }
}

TEST(QueueTree, KeepsWhatIsRightOfAFaultyQuota) {
  const QueueTree tree = TreeOf({QueueIn("low", "", {.guaranteed = 6, .limit = 4}),
                                 {.name = "two", .quotas = {QuotaIn("a", {2}), QuotaIn("a", {1, 3})}},
                                 QueueIn("weightless", "", {.guaranteed = 1, .weight = 0})},
                                8);
  EXPECT_EQ(GuaranteeOf(tree, "low"), 4) << "its limit";
  EXPECT_EQ(GuaranteeOf(tree, "two"), 1);
  EXPECT_EQ(tree.QuotaOf(tree.Find("two"), 0).limit, Gpus(3));
  EXPECT_EQ(GuaranteeOf(tree, "weightless"), 1);
}

TEST(QueueTree, IgnoresAQuotaInAPoolThatIsNotThere) {
  const QueueTree tree = TreeOf({{.name = "x", .quotas = {QuotaIn("gone", {4}), QuotaIn("a", {2})}}}, 8);

  EXPECT_EQ(FaultsOf(tree), (std::vector<std::string>{"x spec.quotas[0].pool PoolMissing"}));
  EXPECT_TRUE(IsWarning(tree.faults().front().kind));
  EXPECT_EQ(MessageTo(tree, "x"), "there is no pool gone: create it, or remove this quota, which counts nowhere");
  EXPECT_EQ(WhenItNeedsAGpu(tree, "x"), AdmissionReason::kWithinGuarantee);
}

TEST(QueueTree, LowersGuaranteesOfSiblingsThatExceedTheirParent) {
  const QueueTree tree = TreeOf({QueueIn("parent", "", {8}), QueueIn("a", "parent", {6}), QueueIn("b", "parent", {4}),
                                 QueueIn("none", "parent", {}), QueueIn("other", "", {8})},
                                32);

  EXPECT_EQ(FaultsOf(tree), (std::vector<std::string>{"a spec.quotas[0].guaranteed GuaranteesExceedParent",
                                                      "b spec.quotas[0].guaranteed GuaranteesExceedParent"}));
  EXPECT_EQ(MessageTo(tree, "a"),
            "the queues below parent are guaranteed 10 GPUs in pool a together, and the parent parent has 8: lower "
            "guarantees by 2 in all, or raise the parent's; until then 4.8 are guaranteed to this queue");
  EXPECT_EQ(GuaranteeOf(tree, "a"), 4.8);
  EXPECT_EQ(GuaranteeOf(tree, "b"), 3.2);
  EXPECT_EQ(GuaranteeOf(tree, "other"), 8);
  EXPECT_EQ(WhenItNeedsAGpu(tree, "a"), AdmissionReason::kWithinGuarantee) << "a warning";
}

TEST(QueueTree, LowersGuaranteesThatExceedThePool) {
  // Nodes may be lost: 16 GPUs of the 24 that are guaranteed are left.
  const QueueTree tree = TreeOf({QueueIn("p", "", {16}), QueueIn("child", "p", {12}), QueueIn("q", "", {8})}, 16);

  EXPECT_EQ(FaultsOf(tree), (std::vector<std::string>{"p spec.quotas[0].guaranteed GuaranteesExceedPool",
                                                      "q spec.quotas[0].guaranteed GuaranteesExceedPool"}));
  EXPECT_EQ(
      MessageTo(tree, "q"),
      "the queues without parent are guaranteed 24 GPUs in pool a together, and the pool has 16: lower guarantees "
      "by 8 in all, or add nodes; until then 5.333 are guaranteed to this queue");
  EXPECT_EQ(GuaranteeOf(tree, "p"), 10.667);
  EXPECT_EQ(GuaranteeOf(tree, "child"), 10.667) << "no more than its parent has; only that one is told";
}

TEST(QueueTree, GuaranteesToAParentWithoutQuotaWhatItsChildrenHave) {
  const QueueTree tree = TreeOf({Below("group", ""), QueueIn("a", "group", {6}), QueueIn("b", "group", {4})}, 12);
  EXPECT_TRUE(tree.faults().empty());
  EXPECT_EQ(GuaranteeOf(tree, "group"), 10);
  EXPECT_EQ(tree.QuotaOf(tree.Find("group"), 0).limit, kNoLimit);
}

TEST(QueueTree, AQuotaThatSaysNothingOfGuaranteesIsGuaranteedWhatTheQueuesBelowAre) {
  QueueSpec group = Below("group", "");
  group.quotas = {{.pool = "a", .limit_milli = Gpus(12)}};
  const QueueSpec a = QueueIn("a", "group", {6}), b = QueueIn("b", "group", {4});
  const QueueTree tree = TreeOf({group, a, b}, 16);
  EXPECT_TRUE(tree.faults().empty());
  EXPECT_EQ(GuaranteeOf(tree, "group"), 10);
  EXPECT_EQ(GuaranteeOf(tree, "a"), 6);

  group.quotas[0].limit_milli = Gpus(5);
  const QueueTree tight = TreeOf({group, a, b}, 16);
  EXPECT_EQ(GuaranteeOf(tight, "group"), 5) << "no more than it may use";
  EXPECT_EQ(FaultsOf(tight), (std::vector<std::string>{"a spec.quotas[0].guaranteed GuaranteesExceedParent",
                                                       "b spec.quotas[0].guaranteed GuaranteesExceedParent"}));
}

TEST(QueueTree, TakesAbsurdNumbersForAsManyGpusAsAnyClusterHas) {
  constexpr std::int64_t kAbsurd = std::numeric_limits<std::int64_t>::max();
  const std::vector<QueueSpec> specs = {
      {.name = "x", .quotas = {{.pool = "a", .guaranteed_milli = kAbsurd, .limit_milli = kAbsurd, .weight = kAbsurd}}},
      {.name = "y", .quotas = {{.pool = "a", .guaranteed_milli = kAbsurd, .weight = kAbsurd}}}};
  const std::vector<PoolSize> pools = {{"a", kAbsurd}};
  const QueueTree tree = QueueTree::Build(specs, pools);

  EXPECT_EQ(tree.QuotaOf(tree.Find("x"), 0).guaranteed, kMostMilli / 2);
  std::vector<QueueDemand> demands(static_cast<std::size_t>(tree.size()), {0, kMostMilli});
  EXPECT_EQ(FairShares(tree, 0, demands)[kRootQueue], kMostMilli);
}

TEST(QueueTree, HoldsAndDrainsTheQueuesBelow) {
  struct Case {
    QueueStop above, below;
    AdmissionReason reason;
  };
  for (const Case& c : {Case{QueueStop::kHold, QueueStop::kNone, AdmissionReason::kHeld},
                        Case{QueueStop::kDrain, QueueStop::kHold, AdmissionReason::kDraining},
                        Case{QueueStop::kHold, QueueStop::kDrain, AdmissionReason::kDraining}}) {
    QueueSpec above = Below("above", ""), below = Below("below", "above");
    above.stop = c.above;
    below.stop = c.below;
    EXPECT_EQ(WhenItNeedsAGpu(TreeOf({above, below}, 8), "below"), c.reason);
  }
}

TEST(LimitsBelowUse, AreToldAndStopNothing) {
  const QueueTree tree = TreeOf({QueueIn("x", "", {.guaranteed = 2, .limit = 4}), QueueIn("y", "", {2})}, 16);
  const QueueUse use = UseOf(tree, {{"x", 6.5}, {"y", 8}});

  const std::vector<QueueFault> faults = LimitsBelowUse(use);

  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].queue, "x");
  EXPECT_EQ(faults[0].field, "spec.quotas[0].limit");
  EXPECT_TRUE(IsWarning(faults[0].kind));
  EXPECT_EQ(
      faults[0].message,
      "uses 6.5 GPUs in pool a, above its limit of 4: nothing is stopped for it, and nothing new starts until 2.5 "
      "of them are free; to change that, raise the limit");
  EXPECT_EQ(Admit(use, {tree.Find("x"), {{0, kOneGpu}}}).reason, AdmissionReason::kLimit);
}

}  // namespace
}  // namespace grus
