// SPDX-License-Identifier: Apache-2.0
// The end of a job that runs for too long: by its own limit, or by that of its queue.
#include "controllers/elastic/job_deadline.h"

#include <gmock/gmock.h>

#include "controllers/elastic/elastic_plan.h"
#include "controllers/elastic/elastic_status.h"
#include "tests/controllers/elastic/elastic_fixture.h"
#include "tests/controllers/elastic/view_builder.h"
#include "tests/kit/conditions.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A training on four workers, that has run for `run_seconds` before and for 100 s since.
ViewBuilder Training(int run_seconds = 0) {
  return ViewBuilder()
      .MinMax(2, 4)
      .Granted(4)
      .Ready({0, 1, 2, 3})
      .Hosts({0, 1, 2, 3})
      .LauncherRuns()
      .LastScale("Started", -100, 0, 4)
      .Job([run_seconds](auto& job) {
        job.status.start_time = At(-1000);
        job.status.replicas.granted = 4;
        job.status.usage = api::JobUsage{.run_seconds = run_seconds};
      });
}

View Limited(const ViewBuilder& builder, std::int64_t limit) {
  View view = builder.Build();
  view.runtime_limit = RuntimeLimit{"batch", limit};
  return view;
}

void OwnDeadline(api::ElasticHorovodJob& job, std::int64_t limit) {
  job.spec.run_policy.active_deadline_seconds = limit;
}

TEST(JobDeadline, AJobEndsWhenAllItsRunsTogetherReachTheLimitOfItsQueue) {
  for (const auto& [limit, is_over] : {std::pair(401, false), {400, true}}) {
    const Plan plan = PlanElasticJob(Limited(Training(300), limit));
    EXPECT_EQ(HasEnded(plan.status), is_over) << limit;
    EXPECT_EQ(plan.restart_launcher, is_over) << limit;
    EXPECT_EQ(plan.wants_launcher, !is_over) << limit;
    EXPECT_THAT(plan.drop, SizeIs(is_over ? 4 : 0)) << limit;
    if (!is_over) {
      EXPECT_EQ(plan.look_again, kube::Duration(seconds(1)));
      continue;
    }
    EXPECT_EQ(plan.status.phase, "Failed");
    EXPECT_EQ(kit::ReasonIn(plan.status.conditions), "DeadlineExceeded");
    EXPECT_THAT(kit::MessageIn(plan.status.conditions),
                AllOf(HasSubstr("400 s"), HasSubstr("GpuQueue batch"), HasSubstr("spec.maximumRuntimeSeconds"),
                      HasSubstr("spec.runPolicy.activeDeadlineSeconds")));
    ASSERT_THAT(plan.events, SizeIs(1));
    EXPECT_EQ(plan.events[0].reason, "DeadlineExceeded");
  }
}

TEST(JobDeadline, WhileItRunsTheJobSaysWhenItsQueueEndsIt) {
  const View view = Limited(Training(300), 460);
  const Plan plan = PlanElasticJob(view);
  EXPECT_THAT(kit::MessageIn(plan.status.conditions),
              HasSubstr("GpuQueue batch ends it at " + kube::ToText(At(60)) + " (spec.maximumRuntimeSeconds)"));
  EXPECT_EQ(LatestEnd(view, plan.status), UnixSeconds(At(60)));
}

TEST(JobDeadline, TimeInWhichAJobWaitsDoesNotCountForTheLimitOfItsQueue) {
  const View waits =
      Limited(ViewBuilder().MinMax(2, 4).NoRoom("").LastScale("Preempted", -5000, 4, 0).Job([](auto& job) {
        job.status.start_time = At(-9000);
        job.status.usage = api::JobUsage{.run_seconds = 300};
      }),
              400);
  const Plan plan = PlanElasticJob(waits);
  EXPECT_EQ(plan.status.phase, "Waiting");
  EXPECT_EQ(LongestRun(waits), 100);
  EXPECT_EQ(LatestEnd(waits, plan.status), std::nullopt);
}

TEST(JobDeadline, AJobThatWaitsAfterItsLimitWasLoweredStartsNoMore) {
  const View waits = Limited(ViewBuilder().MinMax(2, 4).Room(4).LastScale("Preempted", -5000, 4, 0).Job([](auto& job) {
    job.status.usage = api::JobUsage{.run_seconds = 300};
  }),
                             300);
  const Plan plan = PlanElasticJob(waits);
  EXPECT_EQ(plan.status.phase, "Failed");
  EXPECT_EQ(plan.missing, 0);
  EXPECT_FALSE(plan.wants_launcher);
}

TEST(JobDeadline, AChangeOfSizeKeepsWhatTheJobHasRun) {
  const Plan shrunk = PlanElasticJob(Limited(Training(300).Target(2).Hosts({0, 1}, 2), 1000));
  ASSERT_EQ(shrunk.status.last_scale->to, 2);
  EXPECT_EQ(shrunk.status.usage->run_seconds, 400);
  EXPECT_EQ(shrunk.status.usage->gpu_seconds, 400);
  const View view = Limited(Training(300), 1000);
  EXPECT_EQ(LatestEnd(view, shrunk.status), LatestEnd(view, view.job->status)) << "its end stays";
}

// grus died when it had made the workers, and before it wrote the status that says so.
TEST(JobDeadline, ARunThatTheStatusDoesNotTellOfCountsFromWhenItIsSeen) {
  const View view = Limited(Training(300).LastScale("Preempted", -500, 4, 0), 400);
  const Plan plan = PlanElasticJob(view);
  ASSERT_EQ(plan.status.last_scale, (api::LastScale{0, 4, "Started", At(0)}));
  EXPECT_EQ(LatestEnd(view, plan.status), UnixSeconds(At(100)));
}

TEST(JobDeadline, TheLimitOfAJobIsItsOwnIfItHasOne) {
  const View view = Limited(Training(300).Job([](auto& job) { OwnDeadline(job, 1060); }), 1);
  const Plan plan = PlanElasticJob(view);
  EXPECT_FALSE(HasEnded(plan.status));
  EXPECT_EQ(plan.look_again, kube::Duration(seconds(60)));
  EXPECT_EQ(LatestEnd(view, plan.status), UnixSeconds(At(60)));
  EXPECT_EQ(LongestRun(view), 1060);
}

TEST(JobDeadline, ItsOwnLimitCountsFromTheStartAndStopsTheLauncher) {
  for (const auto& [limit, is_over] : {std::pair(1001, false), {1000, true}}) {
    const Plan plan = PlanElasticJob(Training().Job([limit = limit](auto& job) { OwnDeadline(job, limit); }).Build());
    EXPECT_EQ(plan.restart_launcher, is_over);
    EXPECT_EQ(plan.workers.has_value(), !is_over);
    if (is_over) {
      EXPECT_EQ(kit::ReasonIn(plan.status.conditions), "DeadlineExceeded");
      EXPECT_THAT(kit::MessageIn(plan.status.conditions), HasSubstr("1000 s"));
    } else {
      EXPECT_EQ(plan.look_again, kube::Duration(seconds(1)));
    }
  }
}

TEST(JobDeadline, OneLaterThanAnyClockIsNone) {
  for (const std::int64_t limit : {std::int64_t{10'000'000'000}, INT64_MAX}) {
    const Plan plan = PlanElasticJob(Training().Job([limit](auto& job) { OwnDeadline(job, limit); }).Build());
    EXPECT_FALSE(plan.restart_launcher) << limit;
    EXPECT_TRUE(plan.workers) << limit;
  }
}

TEST(JobDeadline, AJobThatMissedItHoldsNothingWhateverIsToBeKept) {
  const auto keeps_all = [](auto& job) { job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kNone; };
  const View view = Limited(Training(300).Job(keeps_all), 400);
  const Plan ends = PlanElasticJob(view);
  EXPECT_THAT(ends.drop, SizeIs(4));
  // grus died right after it had written the status.
  const Plan next = PlanElasticJob(Limited(Training(300).Job(keeps_all).Status(ends.status), 10'000));
  EXPECT_EQ(next.status.phase, "Failed") << "a limit that is raised later brings no job back";
  EXPECT_THAT(next.drop, SizeIs(4));
  EXPECT_TRUE(next.restart_launcher);
  EXPECT_FALSE(next.wants_launcher);
  EXPECT_THAT(next.events, IsEmpty());
}

TEST(JobDeadline, AClockThatIsSetBackGivesNoMoreThanTheWholeLimit) {
  const View view = Limited(Training(300).LastScale("Started", 5000, 0, 4), 400);
  EXPECT_EQ(TimeUntilDeadline(view), kube::Duration(seconds(100)));
}

class JobDeadlineTest : public ElasticFixture {
 protected:
  void Limit(std::int64_t limit) {
    account_.SetQueues({.pools = {}, .queues = {{.name = kDefaultQueue, .maximum_runtime_seconds = limit}}});
  }
  std::string Phase() { return Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.phase; }
};

TEST_F(JobDeadlineTest, ALimitThatIsSetUnderARunningJobWakesAndEndsIt) {
  AddRunningJob();
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);
  clock_.Advance(seconds(100));

  Limit(50);

  EXPECT_EQ(queue_.counts().depth, 1U);
  Settle();
  EXPECT_EQ(Phase(), "Failed");
  EXPECT_TRUE(Live<kube::Pod>({"team-a", PodName(0)})->metadata.is_being_deleted());
  EXPECT_EQ(server_.Get("jobs.batch", {"team-a", "bert-launcher"}), nullptr);
}

TEST_F(JobDeadlineTest, AnotherManagerGoesOnCountingWhereTheLastOneStopped) {
  AddRunningJob();
  Limit(100);
  clock_.Advance(seconds(60));
  ASSERT_TRUE(Pass());
  EXPECT_EQ(Phase(), "Starting");
  ClusterAccount account{nodes_, pods_, clock_};
  account.SetQueues({.pools = {}, .queues = {{.name = kDefaultQueue, .maximum_runtime_seconds = 100}}});
  const auto job = Live<api::ElasticHorovodJob>({"team-a", "bert"});
  View view;
  view.job = job;
  view.now = kube::Time{clock_.WallNow()};
  view.runtime_limit = account.RuntimeLimitOf("team-a/bert");
  const auto left = TimeUntilDeadline(view);
  ASSERT_TRUE(left);
  EXPECT_LE(*left, seconds(40));
  EXPECT_GT(*left, seconds(20));
}

TEST_F(JobDeadlineTest, WhatWaitsForAJobKnowsWhenItEnds) {
  AddRunningJob();
  Limit(1000);
  Settle();
  GangDemand large = Gang("team-a/large", 8, 1);
  large.waiting_since = 1;
  const GangStanding standing = account_.Ask(large);
  ASSERT_TRUE(standing.has_reservation);
  const auto job = Live<api::ElasticHorovodJob>({"team-a", "bert"});
  EXPECT_EQ(standing.expected_start, UnixSeconds(job->status.last_scale->time) + 1000);
}

}  // namespace
}  // namespace grus
