// SPDX-License-Identifier: Apache-2.0
// What the account counts of its decisions.
#include "controllers/cluster/account_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "controllers/cluster/cluster_account.h"
#include "controllers/policy/allocation.h"
#include "tests/controllers/policy/queued_gangs_fixture.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/reconciler_fixture.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One node of 8 GPUs. Namespaces are named like the queues that select them.
class AccountMetricsTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    StartCaches();
    Settle();
  }
  void SetUpQueues(std::vector<QueueSpec> specs) { account_.SetQueues(SetupOf(std::move(specs))); }
  // For members with one GPU each.
  GangStanding Ask(const std::string& key, int members) {
    GangDemand demand = Gang(key, members, one_);
    demand.waiting_since = 1;
    return account_.Ask(demand);
  }
  // Workers with one GPU each that run, or are about to.
  void Run(const std::string& key, int workers, int min) {
    account_.KeepPlaces(key, one_, workers);
    account_.PutHolder(key, {.comes_back = true, .workers = workers, .min_workers = min});
  }
  void AddNode(const std::string& name) {
    ReconcilerFixture::AddNode(name);
    Settle();
  }
  void AddPod(const std::string& name, int gpus, const std::string& node) {
    Create("pods", kit::MakePod(name, kit::PodSpec(gpus, R"({"nodeName":")" + node + R"("})"), {}, "team-a"));
    Settle();
  }
  std::string Text() const { return metrics_.Text(); }
  static ::testing::Matcher<std::string> Notices(const std::string& labels, int count) {
    return HasSubstr("grus_queue_yield_notices_total{" + labels + "} " + std::to_string(count) + "\n");
  }
  // Of the queue "default": how many waits, and their seconds together.
  static ::testing::Matcher<std::string> Waits(int count, int seconds) {
    return AllOf(HasSubstr("grus_queue_wait_seconds_count{queue=\"default\"} " + std::to_string(count) + "\n"),
                 HasSubstr("grus_queue_wait_seconds_sum{queue=\"default\"} " + std::to_string(seconds) + "\n"));
  }

  const ShapePtr one_ = GpuShape(1);
  kube::Registry metrics_;
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  ClusterAccount account_{nodes_, pods_, clock_, Nominations::kAuto, nullptr, nullptr, &metrics_};
};

TEST_F(AccountMetricsTest, AGangsWaitCountsOnceWhenItIsPlacedWhoeverPlans) {
  ASSERT_TRUE(Ask("team-a/first", 8).is_placed);
  EXPECT_THAT(Text(), Waits(1, 0));
  ASSERT_FALSE(Ask("team-a/second", 8).is_placed);
  clock_.Advance(40s);
  ASSERT_FALSE(Ask("team-a/second", 8).is_placed);
  clock_.Advance(50s);
  EXPECT_THAT(Text(), Waits(1, 0)) << "it still waits";

  account_.Forget("team-a/first");
  ASSERT_FALSE(Ask("team-a/third", 8).is_placed);
  EXPECT_THAT(Text(), Waits(2, 90));
  EXPECT_THAT(Text(), HasSubstr(R"(grus_queue_wait_seconds_bucket{queue="default",le="120"} 2)"));
  EXPECT_THAT(Text(), HasSubstr(R"(grus_queue_wait_seconds_bucket{queue="default",le="60"} 1)"));
  ASSERT_TRUE(Ask("team-a/second", 8).is_placed);
  EXPECT_THAT(Text(), Waits(2, 90)) << "it hears of it";
}

TEST_F(AccountMetricsTest, WhoAsksNoMoreDoesNotWait) {
  ASSERT_TRUE(Ask("team-a/first", 8).is_placed);
  ASSERT_FALSE(Ask("team-a/second", 8).is_placed);
  clock_.Advance(1h);
  account_.StopAsking("team-a/second");
  clock_.Advance(1h);
  ASSERT_FALSE(Ask("team-a/second", 8).is_placed);
  clock_.Advance(7s);
  account_.Forget("team-a/first");
  ASSERT_TRUE(Ask("team-a/second", 8).is_placed);
  EXPECT_THAT(Text(), Waits(2, 7));
}

TEST_F(AccountMetricsTest, OnlyStartsWait) {
  GangDemand extra = Gang("team-a/extra", 1, one_), rest = Gang("team-a/half-started", 1, one_);
  extra.waiting_since = 1;
  extra.needed = 0;
  ASSERT_TRUE(account_.Ask(extra).is_placed);
  rest.waiting_since = 0;
  ASSERT_TRUE(account_.Ask(rest).is_placed);
  EXPECT_THAT(Text(), Not(HasSubstr("grus_queue_wait_seconds")));
}

TEST_F(AccountMetricsTest, AWaitIsOfTheQueueThatTheGangIsIn) {
  SetUpQueues({Team("vision", 8)});
  ASSERT_TRUE(Ask("vision/train", 2).is_placed);
  EXPECT_THAT(Text(), HasSubstr(R"(grus_queue_wait_seconds_count{queue="vision"} 1)"));
  EXPECT_THAT(Text(), Not(HasSubstr("train")));
}

TEST_F(AccountMetricsTest, ANoticeCountsOnceHoweverOftenItIsRenewed) {
  SetUpQueues({Team("owns", 8), Team("borrows", 0)});
  Run("borrows/rigid", 8, 8);
  ASSERT_FALSE(Ask("owns/train", 8).is_placed);
  ASSERT_EQ(account_.YieldOf("borrows/rigid")->to, 0);
  const auto once = Notices(R"(queue="borrows",reason="GuaranteeOfOther",kind="preempt")", 1);
  EXPECT_THAT(Text(), once);

  clock_.Advance(15s);
  ASSERT_FALSE(Ask("owns/train", 8).is_placed);
  EXPECT_THAT(Text(), once) << "the plan was made anew";
  QueueSpec patient = Team("owns", 8);
  patient.preemption_notice_seconds = 100;
  SetUpQueues({patient, Team("borrows", 0)});
  ASSERT_FALSE(Ask("owns/train", 8).is_placed);
  ASSERT_TRUE(account_.YieldOf("borrows/rigid"));
  EXPECT_THAT(Text(), once) << "other queues ask anew";

  account_.StopAsking("owns/train");
  account_.Queues();
  ASSERT_FALSE(account_.YieldOf("borrows/rigid")) << "nobody needs it any more";
  ASSERT_FALSE(Ask("owns/train", 8).is_placed);
  ASSERT_TRUE(account_.YieldOf("borrows/rigid"));
  EXPECT_THAT(Text(), Notices(R"(queue="borrows",reason="GuaranteeOfOther",kind="preempt")", 2));
}

TEST_F(AccountMetricsTest, ANoticeThatAsksForMoreCountsAgain) {
  SetUpQueues({Team("owns", 8), Team("borrows", 0)});
  Run("borrows/elastic", 8, 2);
  ASSERT_FALSE(Ask("owns/one", 2).is_placed);
  ASSERT_EQ(account_.YieldOf("borrows/elastic")->to, 6);
  EXPECT_THAT(Text(), Notices(R"(queue="borrows",reason="GuaranteeOfOther",kind="shrink")", 1));
  ASSERT_FALSE(Ask("owns/two", 2).is_placed);
  ASSERT_EQ(account_.YieldOf("borrows/elastic")->to, 4);
  EXPECT_THAT(Text(), Notices(R"(queue="borrows",reason="GuaranteeOfOther",kind="shrink")", 2));
}

TEST_F(AccountMetricsTest, AJobMadeAnewHasANoticeOfItsOwn) {
  SetUpQueues({Team("owns", 8), Team("borrows", 0)});
  for (int count = 1; count <= 2; ++count) {
    Run("borrows/rigid", 8, 8);
    ASSERT_FALSE(Ask("owns/train", 8).is_placed);
    ASSERT_TRUE(account_.YieldOf("borrows/rigid"));
    EXPECT_THAT(Text(), Notices(R"(queue="borrows",reason="GuaranteeOfOther",kind="preempt")", count));
    account_.RemoveHolder("borrows/rigid");
  }
}

TEST_F(AccountMetricsTest, ANoticeToAJobThatGainsLessSaysSo) {
  const std::int64_t start = std::chrono::system_clock::to_time_t(clock_.WallNow()) - 7200;
  const auto run = [&](const std::string& key, int workers, double on_eight) {
    const std::vector<SpeedPoint> curve = {{1, 1, 1, 1}, {8, on_eight, on_eight, on_eight}};
    account_.KeepPlaces(key, one_, workers);
    account_.PutHolder(key, {.comes_back = true,
                             .workers = workers,
                             .worker_milli = kOneGpu,
                             .min_workers = 1,
                             .wanted_workers = 8,
                             .running_since = start,
                             .attained_gpu_seconds = 7200.0 * workers,
                             .curve = std::make_shared<const std::vector<SpeedPoint>>(curve),
                             .queued_since = start});
  };
  run("team-a/flat", 7, 1.1);
  run("team-a/linear", 1, 8);
  account_.TargetOf("team-a/linear");
  ASSERT_TRUE(account_.YieldOf("team-a/flat"));
  EXPECT_THAT(Text(), Notices(R"(queue="default",reason="WorthMore",kind="shrink")", 1));
  EXPECT_THAT(Text(), HasSubstr(R"(grus_decision_duration_seconds_count{decision="sizes"} 1)"));
}

TEST_F(AccountMetricsTest, PlansCountOnlyIfTheyDecideAnew) {
  const auto decisions = [](int count) {
    return HasSubstr("grus_decision_duration_seconds_count{decision=\"starts\"} " + std::to_string(count) + "\n");
  };
  EXPECT_THAT(Text(), decisions(0));
  ASSERT_FALSE(Ask("team-a/large", 9).is_placed);
  EXPECT_THAT(Text(), decisions(1));
  ASSERT_FALSE(Ask("team-a/large", 9).is_placed);
  EXPECT_THAT(Text(), decisions(1)) << "nothing has changed";
  AddPod("p", 1, "n1");
  ASSERT_FALSE(Ask("team-a/large", 9).is_placed);
  EXPECT_THAT(Text(), decisions(2));
}

TEST(AccountMetrics, DecisionsAreTimed) {
  kube::Registry registry;
  kube::testing::ManualClock clock;
  ClusterLedger ledger;
  ClusterQueues queues(ledger);
  AccountMetrics metrics(&registry, queues, clock);
  const kube::TimePoint began = clock.Now();
  clock.Advance(2ms);
  metrics.NoteDecision(AccountMetrics::Decision::kStarts, began);
  EXPECT_THAT(registry.Text(),
              AllOf(HasSubstr(R"(grus_decision_duration_seconds_bucket{decision="starts",le="0.001"} 0)"),
                    HasSubstr(R"(grus_decision_duration_seconds_bucket{decision="starts",le="0.0025"} 1)"),
                    HasSubstr(R"(grus_decision_duration_seconds_sum{decision="starts"} 0.002)"),
                    HasSubstr(R"(grus_decision_duration_seconds_count{decision="sizes"} 0)")));
}

TEST_F(AccountMetricsTest, ResizesCountByQueueAndDirection) {
  SetUpQueues({Team("vision", 8)});
  account_.NoteResize("vision/train", 2, 4);
  account_.NoteResize("vision/train", 4, 3);
  account_.NoteResize("vision/other", 1, 8);
  EXPECT_THAT(Text(), AllOf(HasSubstr(R"(grus_elastic_resizes_total{queue="vision",direction="grow"} 2)"),
                            HasSubstr(R"(grus_elastic_resizes_total{queue="vision",direction="shrink"} 1)")));
}

// Of the pool.
::testing::Matcher<std::string> Free(const std::string& pool, int empty, int partly_used) {
  const std::string of_pool = "grus_pool_free_gpus{pool=\"" + pool + "\",nodes=\"";
  return AllOf(HasSubstr(of_pool + "empty\"} " + std::to_string(empty) + "\n"),
               HasSubstr(of_pool + "partly_used\"} " + std::to_string(partly_used) + "\n"));
}

TEST_F(AccountMetricsTest, FreeGpusBesideOthersAreToldFromThoseOfWholeNodes) {
  AddNode("n2");
  EXPECT_THAT(Text(), Free("default", 16, 0));
  AddPod("n1-part", 5, "n1");
  EXPECT_THAT(Text(), Free("default", 8, 3));
  ASSERT_TRUE(account_.Ask(Gang("team-a/promised", 1, GpuShape(6))).is_placed);
  EXPECT_THAT(Text(), Free("default", 0, 5)) << "GPUs are held before their pod is bound";
  AddPod("n1-rest", 3, "n1");
  EXPECT_THAT(Text(), Free("default", 0, 2));
  AddPod("cpu", 0, "n1");
  AddNode("n3");
  Edit("nodes", {"", "n3"}, [](kube::Json& node) { node["spec"]["unschedulable"] = true; });
  Settle();
  EXPECT_THAT(Text(), Free("default", 0, 2)) << "nobody can have those of a cordoned node";
}

TEST_F(AccountMetricsTest, FreeGpusAreCountedByPoolAlsoIfOneHasTheNameOfTheDefault) {
  AddNode("n2");
  AddPod("part", 5, "n2");
  const auto pool_of = [](const std::string& name, const std::string& node) {
    return PoolSpec{name, {{"kubernetes.io/hostname", node}}, kGpuResource};
  };
  account_.SetQueues({.pools = {pool_of("a100", "n1")}, .queues = {}, .namespaces = {}});
  EXPECT_THAT(Text(), AllOf(Free("a100", 8, 0), Free("default", 0, 3)));
  account_.SetQueues({.pools = {pool_of("default", "n1")}, .queues = {}, .namespaces = {}});
  EXPECT_THAT(Text(), Free("default", 8, 3));
}

}  // namespace
}  // namespace grus
