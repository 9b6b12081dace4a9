// SPDX-License-Identifier: Apache-2.0
// Gangs of several queues over one ledger: who starts, who waits and why, who yields.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/controllers/policy/queued_gangs_fixture.h"

namespace grus {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(QueuedGangs, AQueueNeverUsesMoreThanItsLimit) {
  PutNodes(ledger_, 2);
  SetUpQueues({Team("a", 0, 6)});
  Put("a/one", 4);
  Put("a/two", 4);
  Plan();
  EXPECT_TRUE(IsPlaced("a/one"));
  EXPECT_FALSE(IsPlaced("a/two"));
  EXPECT_THAT(Why("a/two"), HasSubstr("queue a may use 6 GPUs of pool default; it uses 4, and 4 more are needed"));
}

TEST_F(QueuedGangs, MembersBeyondTheMinimumStayWithinTheLimit) {
  PutNodes(ledger_, 2);
  SetUpQueues({Team("a", 0, 6)});
  queues_.PutHolder("a/job", {.comes_back = true});
  GangDemand gang = Gang("a/job", 10, 1);
  gang.needed = 2;
  planner_.Put(gang);
  Plan();
  EXPECT_EQ(ledger_.PlacesOf("a/job").size(), 6U);
}

TEST_F(QueuedGangs, AQueueBelowItsGuaranteeComesBeforeAnOlderGangThatBorrows) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 0), Team("b", 8)});
  Put("a/old", 8);
  Put("b/new", 8);
  Plan();
  EXPECT_FALSE(IsPlaced("a/old"));
  EXPECT_TRUE(IsPlaced("b/new"));
}

TEST_F(QueuedGangs, WhyAGangWaitsIsOneWordInTheStatusOfItsQueue) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 0, 4), Team("b", 0)});
  Put("a/limited", 6);
  Put("b/large", 9);
  Put("b/first", 6);
  Put("b/second", 6);
  Plan();
  std::map<std::string, std::string> reasons;
  for (const WaitingDemand& wait : planner_.Waiting()) reasons[wait.owner] = wait.reason;
  EXPECT_EQ(reasons, (std::map<std::string, std::string>{
                         {"a/limited", "WaitingForQueue"}, {"b/large", "CannotFit"}, {"b/second", "WaitingForRoom"}}));
}

TEST_F(QueuedGangs, BorrowedGpusComeBackAfterANoticeAndGoToTheirOwner) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/borrower", "a", 8, 8);
  Put("b/next", 8);
  Put("a/owner", 8);
  Plan(1000);
  const std::optional<YieldNotice> notice = NoticeTo("b/borrower");
  ASSERT_TRUE(notice);
  EXPECT_EQ(*notice, (YieldNotice{0, YieldReason::kGuaranteeOfOther, "a/owner", 1030}));
  EXPECT_THAT(planner_.TakeToldToYield(), ElementsAre("b/borrower"));

  Plan(1020);
  EXPECT_EQ(NoticeTo("b/borrower")->by, 1030) << "a notice does not start anew";
  End("b/borrower", 8, 5);
  Plan(1030);
  EXPECT_FALSE(IsPlaced("b/next"));
  End("b/borrower", 5, 0);
  Plan(1031);
  EXPECT_TRUE(IsPlaced("a/owner"));
  EXPECT_FALSE(IsPlaced("b/next"));
  EXPECT_FALSE(NoticeTo("b/borrower"));
}

TEST_F(QueuedGangs, AGangThatWaitsKnowsWhoYieldsToItAndWhen) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/elastic", "a", 4, 1);
  Run("b/rigid", "a", 4, 4);
  Put("a/owner", 6);
  Put("b/more", 4);
  Plan(1000);
  EXPECT_EQ(planner_.StandingOf("a/owner")->yields,
            (YieldAnswer{ReclaimOutcome::kReclaimed, {"b/elastic", "b/rigid"}, 1030}));
  EXPECT_EQ(planner_.StandingOf("b/more")->yields->outcome, ReclaimOutcome::kNotEntitled);
  Plan(1010);
  EXPECT_THAT(planner_.StandingOf("a/owner")->yields->givers, ElementsAre("b/elastic", "b/rigid"));
}

TEST_F(QueuedGangs, AGangThatWaitsKnowsThatTooFewMayYieldToIt) {
  PutNodes(ledger_, 1);
  QueueSpec patient = Team("b", 0);
  patient.minimum_runtime_seconds = 600;
  SetUpQueues({Team("a", 8), patient});
  Run("b/young", "a", 8, 8, {.running_since = 900});
  Put("a/owner", 4);
  Plan(1000);
  EXPECT_EQ(planner_.StandingOf("a/owner")->yields, (YieldAnswer{.outcome = ReclaimOutcome::kNotEnough}));
}

TEST_F(QueuedGangs, WhatComesFreeForOneIsNotTakenByASmallerOne) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/one", "a", 4, 4);
  Run("b/two", "a", 4, 4);
  Put("a/owner", 8);
  Put("b/small", 2);
  Plan();
  End("b/one", 4, 0);
  Plan(1010);
  EXPECT_FALSE(IsPlaced("b/small"));
  End("b/two", 4, 0);
  Plan(1020);
  EXPECT_TRUE(IsPlaced("a/owner"));
}

TEST_F(QueuedGangs, ElasticSurplusYieldsBeforeAnythingIsStopped) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 4), Team("b", 0)});
  Run("b/elastic", "a", 6, 2);
  Run("b/rigid", "a", 2, 2);
  Put("a/owner", 4);
  Plan(1000);
  EXPECT_EQ(NoticeTo("b/elastic"), (YieldNotice{2, YieldReason::kGuaranteeOfOther, "a/owner", 1000}));
  EXPECT_FALSE(NoticeTo("b/rigid"));
}

TEST_F(QueuedGangs, ANoticeEndsWhenNobodyNeedsTheGpusAnyMore) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/borrower", "a", 8, 8);
  Put("a/owner", 8);
  Plan();
  ASSERT_TRUE(NoticeTo("b/borrower"));
  planner_.TakeToldToYield();
  planner_.Remove("a/owner");
  Plan(1005);
  EXPECT_FALSE(NoticeTo("b/borrower"));
  EXPECT_THAT(planner_.TakeToldToYield(), ElementsAre("b/borrower"));
}

TEST_F(QueuedGangs, PodsOfNobodyCountInTheQueueOfTheirNamespaceAndAreNotTouched) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 4, 6), Team("b", 4)});
  for (int i = 0; i < 6; ++i) ledger_.Bind(std::to_string(i), "a", GpuPod(1).request, OwnerOfOthers("a"));
  EXPECT_EQ(Used("a"), 6);
  Put("a/gang", 1);
  Put("b/gang", 4);
  Plan();
  EXPECT_FALSE(IsPlaced("a/gang"));
  EXPECT_FALSE(IsPlaced("b/gang"));
  EXPECT_THAT(queues_.yields(), IsEmpty());
}

TEST_F(QueuedGangs, PodsThatEndAreNotAskedForASecondTime) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 4), Team("b", 0)});
  Run("b/ends", "a", 4, 4);
  Run("b/runs", "a", 4, 4);
  for (int i = 0; i < 4; ++i) ledger_.NoteEnding("b/ends" + std::to_string(i));
  Put("a/owner", 4);
  Plan();
  EXPECT_THAT(queues_.yields(), IsEmpty());
}

TEST_F(QueuedGangs, AJobThatRunsGetsItsQueuesGuaranteeToo) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 4), Team("b", 0)});
  Run("a/elastic", "a", 2, 1, {.wanted_workers = 8});
  Run("b/elastic", "a", 6, 1);
  Plan();
  EXPECT_EQ(NoticeTo("b/elastic"), (YieldNotice{4, YieldReason::kGuaranteeOfOther, "a/elastic", 1000}));
  End("b/elastic", 6, 4);
  Plan(1001);
  EXPECT_EQ(queues_.HeadroomOf("a/elastic", 0, true), 2 * kOneGpu) << "what came free is kept for it";
  EXPECT_EQ(queues_.HeadroomOf("b/elastic", 0, true), 0);
}

TEST_F(QueuedGangs, AGangRunsInOnePoolAndFirstWhereItsQueueMayStartIt) {
  NodeState a100 = GpuNode("x", 4);
  a100.labels.emplace("gpu", "a100");
  ledger_.PutNode(a100);
  ledger_.PutNode(GpuNode("y", 4));
  SetUpQueues({Team("a", 4, 4, "a100"), Team("b", 0, 0, "a100")}, {{"a100", {{"gpu", "a100"}}, kGpuResource}});
  Put("b/gang", 3);
  Put("a/gang", 4);
  Put("a/large", 5);
  Plan();
  EXPECT_EQ(NodesOf(ledger_, "b/gang"), "yyy");
  EXPECT_EQ(NodesOf(ledger_, "a/gang"), "xxxx");
  EXPECT_TRUE(planner_.StandingOf("a/large")->can_never_fit) << "it is not spread over two pools";
}

TEST_F(QueuedGangs, NodesThatChangeTheirPoolTakeTheirUseWithThem) {
  NodeState node = GpuNode("x", 8);
  ledger_.PutNode(node);
  SetUpQueues({Team("a", 4)}, {{"a100", {{"gpu", "a100"}}, kGpuResource}});
  Run("a/gang", "x", 4, 4);
  EXPECT_EQ(Used("a"), 4);
  node.labels.emplace("gpu", "a100");
  ledger_.PutNode(node);
  EXPECT_EQ(Used("a"), 0);
  EXPECT_EQ(queues_.use().used(queues_.tree().Find("a"), queues_.tree().FindPool("a100")), 4 * kOneGpu);
}

TEST_F(QueuedGangs, StrictFifoLetsNobodyPass) {
  PutNodes(ledger_, 1);
  QueueSpec strict = Team("a", 8);
  strict.order = QueueOrder::kStrictFifo;
  SetUpQueues({strict});
  Run("a/runs", "a", 4, 4);
  Put("a/large", 8);
  Put("a/small", 2);
  Plan();
  EXPECT_FALSE(IsPlaced("a/small"));
  EXPECT_EQ(Why("a/small"), "queue a starts its jobs strictly in order, and a/large before it waits");
  EXPECT_EQ(planner_.StandingOf("a/small")->position, 2);
}

TEST_F(QueuedGangs, WithinAQueueInteractiveJobsComeFirst) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8)});
  Put("a/batch", 8);
  Put("a/notebook", 8, {.job_class = JobClass::kInteractive});
  Plan();
  EXPECT_TRUE(IsPlaced("a/notebook"));
  EXPECT_FALSE(IsPlaced("a/batch"));
}

TEST_F(QueuedGangs, OfThoseOfOneQueueTheOneWithLessServiceIsFirst) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8)});
  Put("a/served", 8, {.attained_gpu_seconds = 100});
  Put("a/new", 8);
  Plan();
  EXPECT_FALSE(IsPlaced("a/served"));
  EXPECT_TRUE(IsPlaced("a/new"));
}

TEST_F(QueuedGangs, APriorityCountsMoreThanService) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8)});
  Put("a/new", 8);
  queues_.PutHolder("a/urgent", {.comes_back = true, .attained_gpu_seconds = 1e6});
  GangDemand urgent = Gang("a/urgent", 8, 1);
  urgent.priority = 1;
  urgent.waiting_since = 100;
  planner_.Put(urgent);
  Plan();
  EXPECT_TRUE(IsPlaced("a/urgent"));
}

TEST_F(QueuedGangs, WhoComesLaterByMoreThanTheServiceOfAnotherDoesNotPassIt) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8)});
  Put("a/served", 8, {.attained_gpu_seconds = 100});
  since_ += 100;
  Put("a/later", 8);
  Plan();
  EXPECT_TRUE(IsPlaced("a/served")) << "or a stream of new jobs could keep it waiting for ever";
  EXPECT_FALSE(IsPlaced("a/later"));
}

TEST_F(QueuedGangs, ServiceThatIsLearntOfLaterChangesTheOrder) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8)});
  Put("a/first", 8);
  Put("a/second", 8);
  queues_.PutHolder("a/first", {.comes_back = true, .attained_gpu_seconds = 50});
  planner_.Rerank("a/first");
  Plan();
  EXPECT_TRUE(IsPlaced("a/second"));
}

TEST_F(QueuedGangs, TheRuntimeLimitOfAJobIsThatOfItsQueue) {
  QueueSpec limited = Team("a", 0);
  limited.maximum_runtime_seconds = 60;
  SetUpQueues({limited, Team("b", 0)});
  queues_.PutHolder("a/job", {});
  queues_.PutHolder("b/job", {});
  queues_.PutHolder("b/stranger", {.queue_name = "a"});
  EXPECT_EQ(queues_.RuntimeLimitOf("a/job"), (RuntimeLimit{"a", 60}));
  EXPECT_EQ(queues_.RuntimeLimitOf("b/job"), std::nullopt);
  EXPECT_THAT(queues_.RuntimeLimits(), ElementsAre(Key("a/job"))) << "the stranger is in no queue";
}

TEST_F(QueuedGangs, AQueueThatIsNotThereStartsNothing) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8)});
  Put("a/typo", 1, {.queue_name = "aa"});
  Put("z/stranger", 1, {.queue_name = "a"});
  Put("z/default", 1);
  Plan();
  EXPECT_EQ(Why("a/typo"), "there is no queue aa: create it, or change queueName");
  EXPECT_THAT(Why("z/stranger"), HasSubstr("the queue a is not for namespace z"));
  EXPECT_EQ(planner_.StandingOf("a/typo")->position, 0) << "it is in no queue, and so has no place in one";
  EXPECT_EQ(planner_.StandingOf("z/stranger")->position, 0);
  EXPECT_TRUE(IsPlaced("z/default"));
}

TEST_F(QueuedGangs, AQueueThatDrainsStopsItsJobsAndStartsNone) {
  PutNodes(ledger_, 1);
  QueueSpec drains = Team("a", 8);
  drains.stop = QueueStop::kDrain;
  SetUpQueues({drains});
  Run("a/runs", "a", 4, 2);
  Put("a/waits", 1);
  Plan(1000);
  EXPECT_EQ(NoticeTo("a/runs"), (YieldNotice{0, YieldReason::kDrained, "", 1030}));
  EXPECT_FALSE(IsPlaced("a/waits"));
}

TEST_F(QueuedGangs, AQueueMayWaitForAnAutoscalerBeforeItTakesFromOthers) {
  PutNodes(ledger_, 1);
  QueueSpec patient = Team("a", 8);
  patient.preemption_delay_seconds = 60;
  SetUpQueues({patient, Team("b", 0)});
  Run("b/runs", "a", 8, 8);
  Put("a/waits", 8);
  Plan(since_ + 59);
  EXPECT_FALSE(NoticeTo("b/runs"));
  Plan(since_ + 70);
  EXPECT_TRUE(NoticeTo("b/runs"));
}

TEST_F(QueuedGangs, OnACordonedNodeOnlyWhatIsUsedCounts) {
  PutNodes(ledger_, 1);
  NodeState cordoned = GpuNode("z", 8);
  cordoned.is_cordoned = true;
  ledger_.PutNode(cordoned);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/one", "a", 8, 8);
  Run("b/two", "z", 2, 2);
  EXPECT_EQ(queues_.tree().PoolAt(0).milli, 10 * kOneGpu);
  Put("a/owner", 8);
  Plan();
  EXPECT_TRUE(NoticeTo("b/one"));
}

// A claim outlives neither its queue nor its pool.
TEST_F(QueuedGangs, QueuesAndPoolsMayGoWhileGpusAreKept) {
  PutNodes(ledger_, 1);
  const std::vector<PoolSpec> pools = {{"a100", {{"gpu", "a100"}}, kGpuResource}};
  for (const bool has_queue : {true, false}) {
    SetUpQueues({Team("a", 8), Team("b", 0)}, pools);
    Run("b/runs", "a", 8, 8);
    Put("a/waits", 8);
    Plan(1000);
    ASSERT_THAT(queues_.claims(), SizeIs(1));
    SetUpQueues(has_queue ? std::vector{Team("a", 8)} : std::vector{Team("b", 0)}, {});
    Plan(1001);
    EXPECT_EQ(queues_.Report(planner_.Waiting()).queues.size(), 2U) << "and the default queue";
    planner_.Remove("a/waits");
    End("b/runs", 8, 0);
    Plan(1002);
  }
}

TEST_F(QueuedGangs, AClaimantMayAskForOneMore) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/runs", "a", 4, 4);
  Put("a/waits", 6);
  Plan(1000);
  Put("a/waits", 7);
  End("b/runs", 4, 0);
  Plan(1001);
  EXPECT_EQ(ledger_.PlacesOf("a/waits").size(), 7U);
}

// What one gives up is for the first of those who wait for it, whoever else gives up GPUs.
TEST_F(QueuedGangs, WhatComesFreeIsTakenInTheSamePass) {
  PutNodes(ledger_, 3);
  SetUpQueues({Team("a", 16), Team("b", 0)});
  Run("b/one", "a", 8, 8);
  Run("b/two", "b", 8, 8);
  Run("b/three", "c", 8, 8);
  Put("a/first", 8);
  Put("a/second", 8);
  Plan(1000);
  ASSERT_THAT(queues_.yields(), SizeIs(2));
  for (const int free : {1, 2}) {
    End(queues_.yields().begin()->first, 8, 0);
    Plan(1029 + free);
    EXPECT_EQ(IsPlaced("a/first") + IsPlaced("a/second"), free);
  }
  EXPECT_THAT(queues_.yields(), IsEmpty());
}

TEST_F(QueuedGangs, NobodyIsStoppedForAGangThatMayNotRunThere) {
  PutNodes(ledger_, 2);
  SetUpQueues({Team("a", 8), Team("b", 8), Team("c", 0)});
  Run("b/own", "a", 8, 8);
  Run("c/borrows", "b", 8, 8);
  PodShape only_a = GpuPod(1);
  only_a.node_selector[kHostnameLabel] = "a";
  Put(Gang("a/pinned", 8, Shared(only_a)));
  Plan();
  EXPECT_THAT(queues_.yields(), IsEmpty());
}

TEST_F(QueuedGangs, AGuaranteeHoldsInTheSecondPool) {
  NodeState a100 = GpuNode("x", 8);
  a100.labels.emplace("gpu", "a100");
  ledger_.PutNode(a100);
  ledger_.PutNode(GpuNode("y", 8));
  SetUpQueues({Team("a", 8), Team("b", 0), Team("c", 8, {}, "a100")}, {{"a100", {{"gpu", "a100"}}, kGpuResource}});
  Run("c/own", "x", 8, 8);
  Run("b/borrows", "y", 8, 8);
  Put("a/owner", 8);
  Plan();
  EXPECT_TRUE(NoticeTo("b/borrows"));
  EXPECT_FALSE(NoticeTo("c/own"));
}

TEST_F(QueuedGangs, PodsThatEndOnALostNodeFreeNothing) {
  PutNodes(ledger_, 1);
  NodeState lost = GpuNode("z", 8);
  lost.is_cordoned = true;
  ledger_.PutNode(lost);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/stuck", "z", 8, 8);
  for (int i = 0; i < 8; ++i) ledger_.NoteEnding("b/stuck" + std::to_string(i));
  Run("b/borrows", "a", 8, 8);
  Put("a/owner", 8);
  Plan();
  EXPECT_TRUE(NoticeTo("b/borrows"));
}

TEST_F(QueuedGangs, AJobDoesNotGrowBeyondItsTargetNorInItsCooldown) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/borrows", "a", 6, 1);
  Run("a/cools", "a", 2, 1, {.grows_from = 5000, .wanted_workers = 8});
  Plan(1000);
  EXPECT_THAT(queues_.yields(), IsEmpty());
  queues_.SetTargets({{"a/cools", 3}});
  Plan(5000);
  EXPECT_EQ(NoticeTo("b/borrows")->to, 5);
}

TEST_F(QueuedGangs, AStrictQueueIsNotPassedByWhatOthersGiveUp) {
  PutNodes(ledger_, 1);
  QueueSpec strict = Team("a", 4);
  strict.order = QueueOrder::kStrictFifo;
  SetUpQueues({strict, Team("b", 0)});
  Run("b/borrows", "a", 8, 2);
  Put("a/large", 6);
  Put("a/small", 2);
  Plan();
  EXPECT_THAT(queues_.claims(), Not(Contains(Key("a/small"))));
}

TEST_F(QueuedGangs, AClockThatIsSetBackStopsNoReclaim) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  since_ = 1'000'000;
  Run("b/borrows", "a", 8, 8);
  Put("a/owner", 8);
  Plan(1000);
  EXPECT_TRUE(NoticeTo("b/borrows"));
}

// As when a queue is deleted and made again, or its guarantee raised.
TEST_F(QueuedGangs, ANoticeIsWithdrawnOnceItIsNotDue) {
  PutNodes(ledger_, 1);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  Run("b/runs", "a", 8, 8);
  Put("a/waits", 8);
  Plan(1000);
  ASSERT_TRUE(NoticeTo("b/runs"));
  SetUpQueues({Team("a", 8), Team("b", 0), Team("c", 0)});
  Plan(1010);
  EXPECT_EQ(NoticeTo("b/runs")->by, 1030) << "still due, by the same time";
  SetUpQueues({Team("a", 0), Team("b", 8)});
  Plan(1020);
  EXPECT_FALSE(NoticeTo("b/runs"));
}

TEST_F(QueuedGangs, DevicesOfAnotherKindDoNotCount) {
  PutNodes(ledger_, 1);
  NodeState amd = GpuNode("amd", 0);
  amd.allocatable.AddExtended("amd.com/gpu", 8);
  ledger_.PutNode(amd);
  SetUpQueues({Team("a", 8), Team("b", 0)});
  EXPECT_EQ(queues_.tree().PoolAt(0).milli, 8 * kOneGpu);
}

// What the ledger tells one by one is what a count of everything finds.
TEST_F(QueuedGangs, SumsStayExact) {
  PutNodes(ledger_, 4);
  SetUpQueues({Team("a", 4), Team("b", 8), Team("c", 0)});
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int step = 0; step < 2000; ++step) {
    const std::string key = std::string(1, static_cast<char>('a' + pick(3))) + "/" + std::to_string(pick(4));
    const std::string uid = key + std::to_string(pick(3)), node(1, static_cast<char>('a' + pick(4)));
    switch (pick(6)) {
      case 0: ledger_.Bind(uid, node, GpuPod(1 + pick(2)).request, key); break;
      case 1: ledger_.Release(uid); break;
      case 2: ledger_.NoteEnding(uid); break;
      case 3: ledger_.KeepPlaces(key, GpuPod(1), pick(3)); break;
      case 4: ledger_.DropPlaces(key); break;
      default: queues_.PutHolder(key, {.comes_back = pick(2) == 0, .workers = 1 + pick(3), .min_workers = 1});
    }
    ClusterQueues fresh(ledger_);
    fresh.SetUp(queues_.setup());
    for (const char* owner : {"a/0", "a/1", "a/2", "a/3", "b/0", "b/1", "b/2", "b/3", "c/0", "c/1", "c/2", "c/3"}) {
      fresh.PutHolder(owner, queues_.HolderOf(owner));
    }
    for (QueueIndex queue = 0; queue < queues_.tree().size(); ++queue) {
      ASSERT_EQ(queues_.use().Of(queue, 0), fresh.use().Of(queue, 0)) << "step " << step << " queue " << queue;
    }
  }
}

}  // namespace
}  // namespace grus
