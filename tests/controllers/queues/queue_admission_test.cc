// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_admission.h"

#include <gtest/gtest.h>

#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

Admission AdmitIn(const QueueUse& use, const std::string& queue, double gpus, bool is_preemptible = true) {
  return Admit(use, {use.tree().Find(queue), {{0, Gpus(gpus)}}, is_preemptible});
}

struct Case {
  const char* what;
  GpusByQueue used;
  const char* queue;
  double gpus;
  AdmissionReason reason;
  const char* text;
};

void ExpectAdmissions(const QueueTree& tree, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Admission admission = AdmitIn(UseOf(tree, c.used), c.queue, c.gpus);
    EXPECT_EQ(admission.reason, c.reason) << c.what << ": " << ToString(admission.reason);
    EXPECT_EQ(Explain(tree, admission), c.text) << c.what;
  }
}

// The queues of Kueue's borrowing example (documentation of ClusterQueue): 9 and 12.
TEST(Admit, LendsIdleGuarantees) {
  const QueueTree tree = TreeOf({QueueIn("a", "", {.guaranteed = 9}), QueueIn("b", "", {.guaranteed = 12})}, 21);
  ExpectAdmissions(
      tree,
      {
          {"all its own", {}, "a", 9, AdmissionReason::kWithinGuarantee, "within the guarantee of queue a"},
          {"all there is", {}, "a", 21, AdmissionReason::kBorrowing, "borrows 12 GPUs of pool a from queue b"},
          {"one more than there is",
           {},
           "a",
           22,
           AdmissionReason::kNothingIdle,
           "22 GPUs of pool a are needed, and the pool has 21 in all: ask for fewer, or add nodes"},
          {"the last one", {{"a", 20}}, "a", 1, AdmissionReason::kBorrowing, "borrows 1 GPU of pool a from queue b"},
          {"of a guarantee that is lent",
           {{"a", 21}},
           "b",
           12,
           AdmissionReason::kNothingIdle,
           "12 GPUs of pool a are needed; 0 GPUs are idle"},
          {"partly its own", {{"a", 8}}, "a", 2, AdmissionReason::kBorrowing, "borrows 1 GPU of pool a from queue b"},
          {"what the other one left",
           {{"a", 9}, {"b", 9.5}},
           "a",
           2.5,
           AdmissionReason::kBorrowing,
           "borrows 2.5 GPUs of pool a from queue b"},
      });
}

TEST(Admit, RespectsTheLimitOfEveryLevel) {
  const QueueTree tree =
      TreeOf({QueueIn("research", "", {.guaranteed = 4, .limit = 8}),
              QueueIn("vision", "research", {.guaranteed = 2, .limit = 6}), QueueIn("speech", "research", {})},
             32);
  ExpectAdmissions(
      tree,
      {
          {"its own",
           {{"vision", 4}},
           "vision",
           3,
           AdmissionReason::kLimit,
           "queue vision may use 6 GPUs of pool a; it uses 4, and 3 more are needed"},
          {"its parent's",
           {{"vision", 4}, {"speech", 3}},
           "vision",
           2,
           AdmissionReason::kLimit,
           "queue research may use 8 GPUs of pool a; it uses 7, and 2 more are needed"},
          {"for ever",
           {},
           "speech",
           9,
           AdmissionReason::kLimit,
           "queue research may use 8 GPUs of pool a at most, and 9 GPUs are needed: ask for fewer, or raise its limit"},
          {"up to it",
           {{"vision", 4}},
           "vision",
           2,
           AdmissionReason::kBorrowing,
           "borrows 2 GPUs of pool a that are guaranteed to no queue"},
      });
}

TEST(Admit, SaysFromWhomAQueueBorrows) {
  const QueueTree tree =
      TreeOf({QueueIn("research", "", {.guaranteed = 12}), QueueIn("vision", "research", {.guaranteed = 4}),
              QueueIn("speech", "research", {.guaranteed = 2}), QueueIn("text", "research", {.guaranteed = 3}),
              QueueIn("product", "", {.guaranteed = 8})},
             24);
  // The nearest first: what the parent guarantees to none of its children, then the largest idle guarantee of a
  // sibling; then the same one level up.
  ExpectAdmissions(
      tree,
      {
          {"the parent", {}, "vision", 7, AdmissionReason::kBorrowing, "borrows 3 GPUs of pool a from queue research"},
          {"siblings",
           {},
           "vision",
           11,
           AdmissionReason::kBorrowing,
           "borrows 3 GPUs of pool a from queue research, 3 GPUs of pool a from queue text, 1 GPU of pool a from queue "
           "speech"},
          {"all",
           {},
           "vision",
           24,
           AdmissionReason::kBorrowing,
           "borrows 3 GPUs of pool a from queue research, 3 GPUs of pool a from queue text, 2 GPUs of pool a from "
           "queue "
           "speech, 4 GPUs of pool a that are guaranteed to no queue, 8 GPUs of pool a from queue product"},
          {"what others have not borrowed yet",
           {{"vision", 9}},
           "speech",
           5,
           AdmissionReason::kBorrowing,
           "borrows 1 GPU of pool a from queue text, 2 GPUs of pool a that are guaranteed to no queue"},
      });
}

TEST(Admit, LeavesIdleWhatIsNotLent) {
  const QueueTree tree = TreeOf({QueueIn("research", "", {.guaranteed = 16, .limit = -1, .lendable = 6}),
                                 QueueIn("vision", "research", {.guaranteed = 8, .limit = -1, .lendable = 3}),
                                 QueueIn("speech", "research", {}), QueueIn("product", "", {})},
                                20);
  ExpectAdmissions(
      tree,
      {
          {"6 of research, 4 of nobody",
           {},
           "product",
           10,
           AdmissionReason::kBorrowing,
           "borrows 4 GPUs of pool a that are guaranteed to no queue, 6 GPUs of pool a from queue research"},
          {"one more",
           {},
           "product",
           11,
           AdmissionReason::kWithheld,
           "11 GPUs of pool a are needed; 10 GPUs are idle that others lend, and queue research does not lend all "
           "that it is guaranteed"},
          {"within research only vision's",
           {},
           "speech",
           16,
           AdmissionReason::kWithheld,
           "16 GPUs of pool a are needed; 15 GPUs are idle that others lend, and queue vision does not lend all "
           "that it is guaranteed"},
          {"what is used need not be kept",
           {{"vision", 10}},
           "product",
           10,
           AdmissionReason::kBorrowing,
           "borrows 4 GPUs of pool a that are guaranteed to no queue, 6 GPUs of pool a from queue research"},
          {"its own",
           {{"product", 10}},
           "vision",
           8,
           AdmissionReason::kWithinGuarantee,
           "within the guarantee of queue vision"},
      });
}

TEST(Admit, StartsWhatCannotBePreemptedOnlyWithinTheGuarantee) {
  const QueueTree tree = TreeOf({QueueIn("a", "", {.guaranteed = 4}), QueueIn("b", "", {})}, 16);
  QueueUse use(tree);
  use.Add(tree.Find("a"), 0, {.used = Gpus(8), .fixed = Gpus(1)});

  // Jobs that can be preempted count as those that borrow.
  EXPECT_EQ(AdmitIn(use, "a", 3, false).reason, AdmissionReason::kBorrowing);
  const Admission refused = AdmitIn(use, "a", 4, false);
  EXPECT_EQ(refused.reason, AdmissionReason::kMustBeGuaranteed);
  EXPECT_EQ(Explain(tree, refused),
            "it cannot be preempted, and starts only within the guarantee of queue a: 4 GPUs of pool a, of which such "
            "jobs use 1; 4 GPUs are needed");
  EXPECT_EQ(AdmitIn(use, "b", 1, false).reason, AdmissionReason::kMustBeGuaranteed);
  EXPECT_TRUE(AdmitIn(use, "b", 1, true).is_admitted());
}

TEST(Admit, LetsEverybodyUseAPoolInWhichNoQueueHasAQuota) {
  const std::vector<QueueSpec> specs = {{.name = "x", .quotas = {QuotaIn("a", {4})}}};
  const std::vector<PoolSize> pools = {{"a", Gpus(8)}, {"b", Gpus(8)}};
  const QueueTree tree = QueueTree::Build(specs, pools);
  const QueueUse use(tree);
  for (const char* queue : {"x", "default"}) {
    EXPECT_EQ(Admit(use, {tree.Find(queue), {{1, Gpus(8)}}, false}).reason, AdmissionReason::kUnshared) << queue;
    EXPECT_EQ(Admit(use, {tree.Find(queue), {{1, Gpus(9)}}, false}).reason, AdmissionReason::kNothingIdle) << queue;
  }
  EXPECT_EQ(Admit(use, {tree.default_queue(), {{0, Gpus(1)}}, false}).reason, AdmissionReason::kMustBeGuaranteed);
}

TEST(Admit, NeedsRoomInAllPoolsThatAJobUses) {
  const std::vector<QueueSpec> specs = {
      {.name = "x", .quotas = {QuotaIn("a", {4}), QuotaIn("b", {.guaranteed = 1, .limit = 2})}}};
  const std::vector<PoolSize> pools = {{"a", Gpus(8)}, {"b", Gpus(8)}};
  const QueueTree tree = QueueTree::Build(specs, pools);
  const QueueUse use(tree);
  const auto admit = [&](double a, double b) { return Admit(use, {tree.Find("x"), {{0, Gpus(a)}, {1, Gpus(b)}}}); };

  EXPECT_EQ(admit(4, 1).reason, AdmissionReason::kWithinGuarantee);
  EXPECT_EQ(admit(4, 2).reason, AdmissionReason::kBorrowing);
  EXPECT_EQ(admit(4, 2).loans, (std::vector<Loan>{{1, kRootQueue, Gpus(1)}}));
  EXPECT_EQ(admit(4, 3).reason, AdmissionReason::kLimit);
  EXPECT_EQ(admit(4, 3).pool, 1);
  EXPECT_EQ(admit(9, 1).reason, AdmissionReason::kNothingIdle);
}

TEST(Admit, CountsGpusUntilTheirPodsAreGone) {
  const QueueTree tree = TreeOf({QueueIn("a", "", {.guaranteed = 8})}, 8);
  QueueUse use(tree);
  use.Add(tree.default_queue(), 0, {.used = Gpus(8), .fixed = 0, .yielding = Gpus(3)});

  const Admission refused = AdmitIn(use, "a", 2);
  EXPECT_EQ(refused.reason, AdmissionReason::kNothingIdle);
  EXPECT_EQ(Explain(tree, refused), "2 GPUs of pool a are needed; 0 GPUs are idle, and jobs are giving up 3");
  EXPECT_TRUE(AdmitIn(use.AfterYields(), "a", 3).is_admitted());
}

TEST(Admit, NamesTheQueueThatStopsIt) {
  std::vector<QueueSpec> specs = {QueueIn("top", "", {}),           QueueIn("held", "top", {}),
                                  QueueIn("leaf", "held", {}),      QueueIn("lost", "nowhere", {}),
                                  QueueIn("lost-leaf", "lost", {}), QueueIn("bad", "top", {.weight = 0})};
  specs[1].stop = QueueStop::kHold;
  const QueueTree tree = TreeOf(specs, 8);
  ExpectAdmissions(
      tree,
      {
          {"held above",
           {},
           "leaf",
           1,
           AdmissionReason::kHeld,
           "queue held is held: set its spec.stop to None to start jobs"},
          {"left out above", {}, "lost-leaf", 1, AdmissionReason::kLeftOut, "queue lost is faulty: see its status"},
          {"a faulty quota",
           {},
           "bad",
           1,
           AdmissionReason::kQuotaFaulty,
           "the quota of queue bad in pool a is faulty: see its status"},
          {"children",
           {},
           "top",
           1,
           AdmissionReason::kHasChildren,
           "queue top has queues below it: name one of these in queueName"},
      });
}

TEST(LendersBelow, AttributeWhatIsLent) {
  const QueueTree tree = TreeOf(
      {QueueIn("a", "", {.guaranteed = 2}), QueueIn("b", "", {.guaranteed = 6}), QueueIn("c", "", {.guaranteed = 5})},
      16);
  // 3 are guaranteed to nobody; a borrows 7: these 3, then of the 5 that b has idle, then of c's 3.
  const std::vector<Lender> lenders = LendersBelow(UseOf(tree, {{"a", 9}, {"b", 1}, {"c", 2}}), kRootQueue, 0);

  ASSERT_EQ(lenders.size(), 3U);
  const auto expect = [&](std::size_t i, QueueIndex queue, double idle, double lent) {
    EXPECT_EQ(lenders[i].queue, queue);
    EXPECT_EQ(lenders[i].idle, Gpus(idle));
    EXPECT_EQ(lenders[i].lent, Gpus(lent));
  };
  expect(0, kRootQueue, 3, 3);
  expect(1, tree.Find("b"), 5, 4);
  expect(2, tree.Find("c"), 3, 0);
}

// What is admitted, is within every bound; and the headroom is exactly what is admitted.
TEST(AdmitProperty, AdmitsUpToTheHeadroomAndNothingBreaksABound) {
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    Draws draws(seed);
    const QueueTree tree = RandomTree(draws, 12);
    QueueUse use(tree);
    for (int step = 0; step < 30; ++step) {
      const auto queue = static_cast<QueueIndex>(draws.Between(kRootQueue + 1, tree.size() - 1));
      if (!tree.IsLeaf(queue)) continue;
      if (use.used(queue, 0) > 0 && draws.OneIn(4)) {
        const UsedGpus all = use.Of(queue, 0);
        use.Add(queue, 0, {-all.used, -all.fixed, -all.yielding});
        continue;
      }
      const bool is_preemptible = !draws.OneIn(3);
      const std::int64_t headroom = HeadroomOf(use, queue, 0, is_preemptible);
      const std::int64_t milli = draws.OneIn(2) && headroom > 0 ? headroom : draws.Between(1, 16 * kOneGpu);
      const Admission admission = Admit(use, {queue, {{0, milli}}, is_preemptible});
      ASSERT_EQ(admission.is_admitted(), milli <= headroom) << "seed " << seed << " " << Explain(tree, admission);
      if (!admission.is_admitted()) continue;
      std::int64_t borrowed = 0;
      for (const Loan& loan : admission.loans) borrowed += loan.milli;
      const std::int64_t before = use.borrowed(queue, 0);
      use.Add(queue, 0, {milli, is_preemptible ? 0 : milli, 0});
      ASSERT_EQ(borrowed, use.borrowed(queue, 0) - before) << "seed " << seed;

      std::int64_t withheld = 0;
      for (QueueIndex at = tree.size() - 1; at > kRootQueue; --at) {
        ASSERT_LE(use.used(at, 0), tree.QuotaOf(at, 0).limit) << "seed " << seed;
        ASSERT_LE(use.Of(at, 0).fixed, tree.QuotaOf(at, 0).guaranteed) << "seed " << seed;
        if (tree.ParentOf(at) == kRootQueue) withheld += use.withheld(at, 0);
        ASSERT_GE(use.withheld(at, 0), tree.QuotaOf(at, 0).kept - use.used(at, 0)) << "seed " << seed;
      }
      ASSERT_GE(use.Idle(0), 0) << "seed " << seed;
      ASSERT_GE(use.Idle(0), withheld) << "seed " << seed << ": what is not lent is there when it is needed";
    }
  }
}

}  // namespace
}  // namespace grus
