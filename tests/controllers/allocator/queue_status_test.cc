// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/frame/kstatus.h"
#include "tests/kit/conditions.h"
#include "tests/kit/moment.h"

namespace grus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::GpuQueue Queue(const std::string& name, const std::string& parent = "") {
  api::GpuQueue queue;
  queue.metadata.name = name;
  queue.metadata.generation = 3;
  queue.spec.parent = parent;
  return queue;
}
QueuesView ViewOf(QueuesReport report) { return {.report = std::move(report), .now = testing::At(0)}; }
QueuesView WithFaults(std::vector<QueueFault> faults) {
  return ViewOf({.queues = {}, .pools = {}, .faults = std::move(faults)});
}

// "Ready=True Reason", with " Stalled", " Reconciling" and " Suspended" where these are true.
template <typename T>
std::string Standing(const T& status) {
  const kube::Condition* ready = kube::FindCondition(status.conditions, "Ready");
  std::string text = "Ready=" + ready->status + " " + ready->reason;
  for (const char* type : {"Stalled", "Reconciling", "Suspended"}) {
    if (kube::IsConditionTrue(status.conditions, type)) text += std::string(" ") + type;
  }
  return text;
}

TEST(QueueStatus, CountsAreRoundedUpInEachPoolAndAddedUp) {
  QueueReport report{.queue = "vision", .running = 3, .waiting = 2};
  report.pools = {{"a100", 12'000, 8'500, 0, 3'500, 12'000, 0}, {"v100", 0, 2'333, 2'333, 0, 500, 4'000}};
  const auto status = PlanStatus(Queue("vision"), ViewOf({.queues = {{.queue = "other"}, report}})).status;

  EXPECT_EQ(status.observed_generation, 3);
  EXPECT_THAT(status.pools, ElementsAre(api::QueuePoolStatus{"a100", 12, 9, 0, 4, 12, 0},
                                        api::QueuePoolStatus{"v100", 0, 3, 3, 0, 1, 4}));
  EXPECT_EQ(status.total, (api::QueueTotals{12, 12, 3, 4, 4}));
  EXPECT_EQ(status.running_jobs, 3);
  EXPECT_EQ(status.waiting_jobs, 2);
  EXPECT_EQ(Standing(status), "Ready=True Ready");
}

TEST(QueueStatus, TheFirstThatWaitAreNamedAsUsersKnowThem) {
  QueueReport report{.queue = "q", .waiting = 9};
  report.first_waiting = {{"team-a/bert", 1'500, "NoRoom"},
                          {"team-a/gang", 8'000, "Limit"},
                          {"scheduling.sigs.k8s.io/team-b/old", 1'000, "CannotFit"}};
  for (int i = 0; i < 5; ++i) report.first_waiting.push_back({"team-c/more", 1'000, "NoRoom"});
  QueuesView view = ViewOf({.queues = {report}});
  view.is_job = [](const kube::ObjectKey& key) { return key.name == "bert"; };
  const auto waiting = PlanStatus(Queue("q"), view).status.first_waiting;

  ASSERT_EQ(waiting.size(), 5U);
  EXPECT_EQ(waiting[0], (api::WaitingJob{"ElasticHorovodJob", "team-a", "bert", 2, "NoRoom"}));
  EXPECT_EQ(waiting[1], (api::WaitingJob{"PodGroup", "team-a", "gang", 8, "Limit"}));
  EXPECT_EQ(waiting[2], (api::WaitingJob{"PodGroup", "team-b", "old", 1, "CannotFit"}));
}

TEST(QueueStatus, FaultsThatStopAQueueStallItAndWarningsDoNot) {
  struct Case {
    QueueFaultKind kind;
    const char* standing;
  };
  for (const Case& c : {Case{QueueFaultKind::kParentMissing, "Ready=False ParentMissing Stalled"},
                        Case{QueueFaultKind::kParentCycle, "Ready=False ParentCycle Stalled"},
                        Case{QueueFaultKind::kParentFaulty, "Ready=False ParentFaulty Stalled"},
                        Case{QueueFaultKind::kTwoQuotas, "Ready=False InvalidSpec Stalled"},
                        Case{QueueFaultKind::kInvalidSelector, "Ready=False InvalidSelector Stalled"},
                        Case{QueueFaultKind::kPoolMissing, "Ready=True PoolMissing"},
                        Case{QueueFaultKind::kGuaranteesExceedParent, "Ready=True GuaranteesExceedParent"},
                        Case{QueueFaultKind::kGuaranteesExceedPool, "Ready=True GuaranteesExceedPool"},
                        Case{QueueFaultKind::kLimitBelowUse, "Ready=True LimitBelowUse"},
                        Case{QueueFaultKind::kNamespaceInTwoQueues, "Ready=True NamespaceInTwoQueues"}}) {
    const auto plan = PlanStatus(Queue("q"), WithFaults({{"q", "spec.x", c.kind, "why"}, {"other", "", c.kind, ""}}));
    EXPECT_EQ(Standing(plan.status), c.standing);
    EXPECT_EQ(kit::MessageIn(plan.status.conditions), "spec.x: why");
    EXPECT_EQ(plan.faults.size(), 1U);
  }
}

TEST(QueueStatus, OfSeveralFaultsTheWorstGivesTheReasonAndTheMessageNamesAll) {
  const auto plan = PlanStatus(
      Queue("q"), WithFaults({{"q", "spec.quotas[0].pool", QueueFaultKind::kPoolMissing, "there is no pool x"},
                              {"q", "spec.parent", QueueFaultKind::kParentMissing, "there is no queue y"}}));
  EXPECT_EQ(kit::ReasonIn(plan.status.conditions), "ParentMissing");
  EXPECT_EQ(kit::MessageIn(plan.status.conditions),
            "spec.parent: there is no queue y; spec.quotas[0].pool: there is no pool x");
}

TEST(QueueStatus, AStoppedQueueSaysWhichStopItIs) {
  struct Case {
    api::QueueStop above, own;
    std::int64_t used;
    const char *standing, *message;
  };
  using enum api::QueueStop;
  for (const Case& c : {
           Case{kNone, kHold, 8'000, "Ready=False Held Suspended", "spec.stop is Hold: no job starts"},
           Case{kHold, kNone, 0, "Ready=False Held Suspended", "spec.stop of the queue org above it is Hold"},
           Case{kHold, kDrain, 0, "Ready=False Drained Suspended", "spec.stop is Drain: "},
           Case{kDrain, kHold, 2'500, "Ready=False Draining Reconciling Suspended",
                "the queue org above it is Drain: no job starts or grows, and those that run give back the 2.5 GPUs"},
       }) {
    api::GpuQueue org = Queue("org"), team = Queue("team", "org");
    org.spec.stop = c.above;
    team.spec.stop = c.own;
    QueueReport report{.queue = "team", .pools = {{.pool = "a", .used = c.used}}};
    QueuesView view = ViewOf({.queues = {report}});
    view.queues = {{"org", &org}, {"team", &team}};
    team.status = PlanStatus(team, view).status;
    EXPECT_EQ(Standing(team.status), c.standing);
    EXPECT_THAT(kit::MessageIn(team.status.conditions), HasSubstr(c.message));

    org.spec.stop = team.spec.stop = kNone;
    EXPECT_EQ(Standing(PlanStatus(team, view).status), "Ready=True Ready") << "resumed";
  }
}

TEST(QueueStatus, ParentsThatAreACycleHaveAnEnd) {
  api::GpuQueue a = Queue("a", "b"), b = Queue("b", "a");
  QueuesView view = ViewOf({});
  view.queues = {{"a", &a}, {"b", &b}};
  EXPECT_EQ(Standing(PlanStatus(a, view).status), "Ready=True Ready") << "its faults are those of the report";
}

TEST(QueueStatus, WhatGrusDoesNotSeeIsSaid) {
  api::GpuQueue open = Queue("open"), selecting = Queue("selecting");
  selecting.spec.namespace_selector.match_labels = {{"team", "a"}};
  QueuesView view = ViewOf({});
  view.sees_all_pods = false;
  EXPECT_EQ(Standing(PlanStatus(open, view).status), "Ready=True NamespacesNotWatched");
  EXPECT_THAT(PlanStatus(open, view).faults, IsEmpty()) << "no event: nothing is wrong with this queue";
  view.sees_namespaces = false;
  EXPECT_EQ(Standing(PlanStatus(open, view).status), "Ready=True NamespacesNotWatched");
  EXPECT_EQ(Standing(PlanStatus(selecting, view).status), "Ready=False NotPermitted Stalled");
}

TEST(QueueStatus, TheConditionsOfTheCrdGoWithTheFirstPass) {
  api::GpuQueue queue = Queue("q");
  Kstatus(queue.status.conditions, 0, {}).Set("Reconciling", true, "Pending", "waiting for grus-manager");
  EXPECT_EQ(Standing(PlanStatus(queue, ViewOf({})).status), "Ready=True Ready");
}

TEST(PoolStatus, SaysWhetherJobsCanRunThere) {
  struct Case {
    PoolReport report;
    const char *standing, *message;
  };
  for (const Case& c : {
           Case{{.pool = "a", .nodes = 2, .milli = 16'000, .used = 2'500, .free = 13'000}, "Ready=True Ready", ""},
           Case{{.pool = "a"}, "Ready=False NoNodes Reconciling", "spec.nodeSelector: no node has the labels gpu=a100"},
           Case{{.pool = "a", .nodes = 2},
                "Ready=False NoGpus Reconciling",
                "spec.resource: no node of the pool has nvidia"},
           Case{{.pool = "a", .nodes = 2, .taken_by_older = 1, .milli = 16'000},
                "Ready=True PoolsOverlap",
                "1 more node with the labels gpu=a100"},
           Case{{.pool = "a", .taken_by_older = 2}, "Ready=False PoolsOverlap Stalled", "2 nodes with the labels"},
           Case{{.pool = "a", .nodes = 2, .taken_by_older = 1},
                "Ready=False NoGpus Reconciling",
                "; spec.nodeSelector: "},
           Case{{.pool = "other", .nodes = 2, .milli = 16'000}, "Ready=False NoNodes Reconciling", "gpu=a100"},
       }) {
    api::NodePool pool;
    pool.metadata.name = "a";
    pool.spec.node_selector = {{"gpu", "a100"}};
    const auto plan = PlanStatus(pool, ViewOf({.pools = {c.report}}));
    EXPECT_EQ(Standing(plan.status), c.standing);
    EXPECT_THAT(kit::MessageIn(plan.status.conditions), HasSubstr(c.message));
  }
}

TEST(PoolStatus, PartsOfAGpuCountAsUsedAndNotAsFree) {
  api::NodePool pool;
  pool.metadata.name = "a";
  const auto status =
      PlanStatus(pool, ViewOf({.pools = {{.pool = "a", .nodes = 1, .milli = 8'000, .used = 2'001, .free = 5'999}}}))
          .status;
  EXPECT_EQ(std::tie(status.nodes, status.gpus, status.used, status.free), std::make_tuple(1, 8, 3, 5));
}

}  // namespace
}  // namespace grus
