// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_status.h"
#include "tests/controllers/elastic/view_builder.h"
#include "tests/kit/conditions.h"

namespace grus {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<int> Ordinals(const std::optional<HostList>& list) {
  std::vector<int> ordinals;
  if (!list) return ordinals;
  for (const Host& host : list->hosts) ordinals.push_back(OrdinalOf(host.pod, "bert-workers").value_or(-1));
  return ordinals;
}

bool IsTrue(const Plan& plan, const char* type) { return kube::IsConditionTrue(plan.status.conditions, type); }

std::string ReasonOf(const Plan& plan) { return kit::ReasonIn(plan.status.conditions); }

// A job of 2 to 4 that trains with four workers.
ViewBuilder Training() {
  return ViewBuilder()
      .MinMax(2, 4)
      .Granted(4)
      .Ready({0, 1, 2, 3})
      .Hosts({0, 1, 2, 3})
      .LauncherRuns()
      .LastScale("Started", -1000, 0, 4)
      .Job([](auto& job) { job.status.start_time = At(-1000); });
}

// Start.

TEST(ElasticPlan, WorkersThatTheServerWouldRefuseAreNotMadeAndToldOnce) {
  View view = ViewBuilder().MinMax(2, 4).Room(4).Build();
  view.may_start = false;
  view.refusal = "PriorityClass \"high\" does not exist";
  const Plan plan = PlanElasticJob(view);
  EXPECT_TRUE(!plan.workers || plan.workers->granted == 0);
  EXPECT_EQ(ReasonOf(plan), "TemplateRefused");
  EXPECT_TRUE(IsTrue(plan, "Stalled"));
  EXPECT_THAT(plan.events, SizeIs(1));

  auto job = std::make_shared<api::ElasticHorovodJob>(*view.job);
  job->status = plan.status;
  view.job = job;
  view.now = kube::Time{view.now.value + seconds(5)};
  const Plan again = PlanElasticJob(view);
  EXPECT_EQ(again.status, plan.status) << "nothing to write";
  EXPECT_THAT(again.events, IsEmpty());
}

TEST(ElasticPlan, ANewJobGetsItsWorkersButNoLauncherAndServiceYet) {
  const View view = ViewBuilder().MinMax(2, 4).Room(4).Build();
  const Plan plan = PlanElasticJob(view);
  ASSERT_TRUE(plan.workers);
  EXPECT_EQ(plan.workers->granted, 4);
  EXPECT_FALSE(plan.wants_launcher);
  EXPECT_FALSE(plan.hosts);
  EXPECT_EQ(plan.status.start_time, view.now);
  EXPECT_THAT(plan.events, IsEmpty());  // The usual start needs none.
}

TEST(ElasticPlan, WorkersStartAsMembersOfTheirGangAndKeepTheirGate) {
  struct Case {
    const char* rule;
    bool makes_gangs, must_protect;
    std::optional<Gang> now;  // Of workers that exist.
    Gang want;
  };
  for (const Case& c : {
           Case{"no gangs, no gate", false, true, {}, Gang::kNone},
           Case{"a start without competition needs no gate", true, false, {}, Gang::kUngated},
           Case{"a start whose places others could take waits behind the gate", true, true, {}, Gang::kGated},
           Case{"workers that exist keep their template", true, true, Gang::kUngated, Gang::kUngated},
           Case{"also when gangs are switched off", false, false, Gang::kGated, Gang::kGated},
       }) {
    SCOPED_TRACE(c.rule);
    View view = c.now ? ViewBuilder().MinMax(2, 4).Granted(4).Bound({0, 1, 2, 3}).Build()
                      : ViewBuilder().MinMax(2, 4).Room(4).Build();
    view.makes_gangs = c.makes_gangs;
    view.must_protect_places = c.must_protect;
    if (c.now) view.workers.gang = *c.now;
    const Plan plan = PlanElasticJob(view);
    ASSERT_TRUE(plan.workers);
    EXPECT_EQ(plan.workers->granted, 4);
    EXPECT_EQ(plan.workers->gang, c.want);
  }
}

TEST(ElasticPlan, AJobThatCannotStartLooksAgainWhenAnotherAnswerIsDue) {
  View view = ViewBuilder().MinMax(2, 4).NoRoom("no room").Build();
  view.may_start = false;
  EXPECT_EQ(PlanElasticJob(view).look_again, std::nullopt);
  view.pods_look_again = seconds(60);
  EXPECT_EQ(PlanElasticJob(view).look_again, kube::Duration(seconds(60)));
  view.queue_looks_again = seconds(15);
  EXPECT_EQ(PlanElasticJob(view).look_again, kube::Duration(seconds(15)));
}

// Also if a write of the start was refused, and the status says only that, and how many workers there are.
TEST(ElasticPlan, AStartOfWhichNothingWasSaidYetIsTold) {
  for (const int observed : {0, 1}) {
    api::ElasticHorovodJobStatus status;
    status.observed_generation = observed;
    status.replicas.granted = observed == 0 ? 0 : 4;
    const View view = ViewBuilder().Status(status).MinMax(2, 4).Granted(4).Ready({0}).Build();
    const Plan plan = PlanElasticJob(view);
    ASSERT_TRUE(plan.status.last_scale) << observed;
    EXPECT_EQ(plan.status.last_scale->to, 4);
    EXPECT_EQ(plan.status.last_scale->reason, ToString(ScaleReason::kStarted));
    EXPECT_THAT(plan.events, IsEmpty());
  }
}

TEST(ElasticPlan, AJobWithoutRoomHoldsNothing) {
  const View view = ViewBuilder().MinMax(2, 4).Room(1).Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 0);
  EXPECT_EQ(plan.missing, 0);
  EXPECT_FALSE(plan.wants_launcher);
  EXPECT_EQ(plan.status.phase, kPhaseWaiting);
}

TEST(ElasticPlan, TheLauncherStartsWithEnoughReadyWorkersAndWaitsALittleForMore) {
  struct Case {
    const char* rule;
    ViewBuilder view;
    bool starts;
    std::optional<int> look_again;
    std::size_t events = 0;  // The usual start, with all that are wanted, is told by the phase alone.
  };
  const Case kCases[] = {
      {"one less than the minimum", ViewBuilder().Ready({0}).Bound({1, 2, 3}, -5), false, 15},
      {"the minimum, and the last one just became ready", ViewBuilder().Ready({0}).Ready({1}, -1).Waiting({2, 3}),
       false, 2},
      {"the minimum, and the settle time is over", ViewBuilder().Ready({0, 1}, -3).Waiting({2, 3}), true, {}, 1},
      {"all that are granted, at once", ViewBuilder().Ready({0, 1, 2, 3}, 0), true, {}},
      {"a lost one is not ready", ViewBuilder().Ready({0}).Lost({1}), false, {}},
  };
  for (Case c : kCases) {
    SCOPED_TRACE(c.rule);
    const View view = c.view.MinMax(2, 4).Granted(4).Build();
    const Plan plan = PlanElasticJob(view);
    EXPECT_EQ(plan.wants_launcher, c.starts);
    EXPECT_EQ(plan.hosts.has_value(), c.starts);
    EXPECT_EQ(plan.events.size(), c.events);
    if (c.look_again) {
      EXPECT_EQ(plan.look_again, kube::Duration(seconds(*c.look_again)));
    }
  }
}

TEST(ElasticPlan, TheLauncherStartsWithoutWorkersThatAreToLeave) {
  const View view = ViewBuilder().MinMax(2, 4).Target(2).Granted(4).Ready({0, 1, 2, 3}).Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 2);
  EXPECT_THAT(Ordinals(plan.hosts), ElementsAre(0, 1));
  const View early = ViewBuilder().MinMax(2, 4).Target(2).Granted(4).Bound({0, 1}).Ready({2, 3}).Build();
  EXPECT_THAT(Ordinals(PlanElasticJob(early).hosts), ElementsAre(2, 3)) << "those that are ready stay";
}

TEST(ElasticPlan, ALauncherThatIsEndingIsAwaited) {
  const View view = Training().LauncherEnding().Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_FALSE(plan.wants_launcher);
  EXPECT_FALSE(plan.restart_launcher);
}

TEST(ElasticPlan, AHostListDeletedByHandComesBackNewerThanTheLaunchersOwn) {
  View view = Training().Build();
  view.hosts.reset();
  view.launcher_pods.front().hosts_revision = 5;
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.hosts->revision, 6);
  EXPECT_THAT(Ordinals(plan.hosts), ElementsAre(0, 1, 2, 3));
}

TEST(ElasticPlan, ARunningLauncherIsGivenTheNewerHostList) {
  const View view = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1, 2}).Hosts({0, 1}, 3).LauncherRuns(3).Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.hosts->revision, 4);
  EXPECT_THAT(plan.push_hosts_to, ElementsAre(&view.launcher_pods.front()));

  const View told = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1}).Hosts({0, 1}, 3).LauncherRuns(3).Build();
  EXPECT_THAT(PlanElasticJob(told).push_hosts_to, IsEmpty());
}

// Size.

TEST(ElasticPlan, AUsersShrinkDrainsFirst) {
  ViewBuilder builder = Training().Target(2);

  const View listed = ViewBuilder(builder).Build();
  const Plan first = PlanElasticJob(listed);
  EXPECT_THAT(Ordinals(first.hosts), ElementsAre(0, 1));
  EXPECT_EQ(first.workers->granted, 4);
  EXPECT_EQ(first.status.last_scale, listed.job->status.last_scale);
  EXPECT_EQ(first.look_again, kube::Duration(seconds(30))) << "nothing else might bring the job back";

  const View draining = ViewBuilder(builder).Hosts({0, 1}, 2, -10).Build();
  const Plan held = PlanElasticJob(draining);
  EXPECT_EQ(held.workers->granted, 4);
  EXPECT_EQ(held.look_again, kube::Duration(seconds(20)));

  const View drained = ViewBuilder(builder).Hosts({0, 1}, 2, -30).Build();
  const Plan done = PlanElasticJob(drained);
  EXPECT_EQ(done.workers->granted, 2);
  ASSERT_TRUE(done.status.last_scale);
  EXPECT_EQ(*done.status.last_scale, (api::LastScale{4, 2, "SpecChanged", drained.now}));
  ASSERT_THAT(done.events, SizeIs(1));
  EXPECT_EQ(done.events[0].reason, "WorkersShrunk");
  EXPECT_THAT(done.events[0].note, HasSubstr("from 4 to 2 workers"));
}

// It is deleted, or has lost the labels that we see it by: the launcher goes on with the list that it had.
TEST(ElasticPlan, WithoutAHostListNoWorkerIsGivenUp) {
  View view = Training().Target(2).Build();
  view.hosts.reset();
  view.launcher_pods.front().hosts_revision = 5;
  const Plan plan = PlanElasticJob(view);
  EXPECT_THAT(Ordinals(plan.hosts), ElementsAre(0, 1));
  EXPECT_EQ(plan.hosts->revision, 6) << "newer than what the launcher has";
  EXPECT_EQ(plan.workers->granted, 4);
  EXPECT_THAT(plan.drop, IsEmpty());

  view.hosts = plan.hosts;
  const Plan next = PlanElasticJob(view);
  EXPECT_THAT(next.push_hosts_to, ElementsAre(&view.launcher_pods.front()));
  EXPECT_EQ(next.workers->granted, 4) << "the launcher has just heard of it";
  view.hosts->published = At(-30);
  EXPECT_EQ(PlanElasticJob(view).workers->granted, 2);
}

TEST(ElasticPlan, NoWorkerIsGivenUpUnderALauncherOutOfSight) {
  View view = Training().Target(2).Launcher(LauncherState::kAbsent).Build();
  EXPECT_THAT(PlanElasticJob(view).drop, SizeIs(2)) << "nobody trains";
  view.has_stray_launcher = true;  // Its Job has lost the labels that we see it by.
  const Plan plan = PlanElasticJob(view);
  EXPECT_THAT(Ordinals(plan.hosts), ElementsAre(0, 1)) << "they leave the list first";
  EXPECT_THAT(plan.drop, IsEmpty());
  view.hosts = plan.hosts;
  view.hosts->published = At(-30);
  EXPECT_THAT(PlanElasticJob(view).drop, SizeIs(2));
}

TEST(ElasticPlan, NoWorkerIsMadeToBeDrained) {
  const View view =
      ViewBuilder().MinMax(2, 8).Target(3).Granted(6).Ready({0, 1, 2, 3}).Hosts({0, 1, 2, 3}).LauncherRuns().Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 6) << "worker 3 leaves the training first";
  EXPECT_EQ(plan.missing, 0);
}

TEST(ElasticPlan, AWorkerThatEndsIsReplacedAtOnceUnlessItEndedAtItsStart) {
  for (const auto& [age, missing, look_again] : {std::tuple(9, 0, 1), {10, 1, 0}}) {
    View view = Training().Build();
    view.pods[3].is_ready = false;
    view.pods[3].is_ending = view.pods[3].has_ended = true;
    view.pods[3].created = At(-age);
    view.hosts->hosts.pop_back();  // The training has left it.
    const Plan plan = PlanElasticJob(view);
    EXPECT_EQ(plan.missing, missing) << age;
    EXPECT_EQ(plan.drop.contains(&view.pods[3]), missing == 1) << age;
    if (look_again > 0) {
      EXPECT_EQ(plan.look_again, kube::Duration(seconds(look_again)));
    }
  }
}

TEST(ElasticPlan, AnUnschedulableWorkerNeedsNoDrain) {
  const View view = ViewBuilder()
                        .MinMax(1, 4)
                        .Granted(4)
                        .Ready({0, 1, 2})
                        .Unschedulable({3}, -20)
                        .Hosts({0, 1, 2})
                        .LauncherRuns()
                        .Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 3);
  EXPECT_TRUE(plan.wants_launcher);
  EXPECT_EQ(plan.hosts, view.hosts);
  ASSERT_THAT(plan.events, SizeIs(1));
  EXPECT_EQ(plan.events[0].type, kube::EventType::kWarning);
  EXPECT_THAT(plan.events[0].note, HasSubstr("shrunk from 4 to 3 workers"));
  EXPECT_THAT(plan.events[0].note, HasSubstr("15 s"));
}

TEST(ElasticPlan, BelowTheMinimumTheLauncherGoesToo) {
  const View view = ViewBuilder()
                        .MinMax(3, 4)
                        .Granted(4)
                        .Ready({0, 1})
                        .Unschedulable({2, 3}, -20)
                        .Hosts({0, 1})
                        .LauncherRuns()
                        .Room(0)
                        .Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 0);
  EXPECT_TRUE(plan.restart_launcher);
  EXPECT_FALSE(plan.wants_launcher);
  EXPECT_FALSE(plan.hosts);
  EXPECT_EQ(plan.status.phase, kPhaseWaiting);
  EXPECT_EQ(plan.status.last_scale->reason, "BelowMinimum");
  EXPECT_EQ(plan.status.usage->restarts, 1);
}

// A deletion may fail, or grus may die before it.
TEST(ElasticPlan, WhatWasMadeBeforeTheLastRestartIsDeletedAndNotTakenAgain) {
  View view = ViewBuilder().MinMax(2, 2).Ready({0, 1}).Hosts({0, 1}).LauncherRuns().Room(2).Build();
  for (Worker& worker : view.pods) worker.is_left_over = true;
  view.is_launcher_left_over = true;
  view.workers = ReadWorkersState(view);
  const Plan plan = PlanElasticJob(view);
  EXPECT_THAT(plan.drop, SizeIs(2));
  EXPECT_TRUE(plan.restart_launcher);
  EXPECT_EQ(plan.workers->granted, 0);  // More pods than it wants would exist otherwise.

  for (Worker& worker : view.pods) worker.is_ending = true;
  view.is_launcher_ending = true;
  EXPECT_EQ(PlanElasticJob(view).missing, 2);
}

TEST(ElasticPlan, OfTwoRestartsTheChildrenOfTheFirstAreLeftOver) {
  api::ElasticHorovodJob job = *ViewBuilder().Build().job;
  const auto made_by = [](const api::ElasticHorovodJob& maker) {
    kube::ObjectMeta child;
    const kube::Json worker = MakeWorker(maker, 0, Gang::kNone);
    if (const kube::Json* restarts = worker.At({"metadata", "annotations", kRestartsAnnotation})) {
      child.annotations[kRestartsAnnotation] = *restarts->AsString();
    }
    return child;
  };
  const kube::ObjectMeta first = made_by(job);
  EXPECT_FALSE(IsLeftOver(first, job));
  job.status.usage.emplace().restarts = 9;
  const kube::ObjectMeta tenth = made_by(job);
  EXPECT_TRUE(IsLeftOver(first, job));
  EXPECT_FALSE(IsLeftOver(tenth, job));
  job.status.usage->restarts = 10;
  EXPECT_TRUE(IsLeftOver(tenth, job));
}

TEST(ElasticPlan, PodsOfALostNodeAreEndedByForce) {
  View view =
      ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1, 2}).Lost({3}).Hosts({0, 1, 2, 3}).LauncherRuns().Build();
  EXPECT_THAT(PlanElasticJob(view).bury, ElementsAre(PodName(3)));
}

// The node may come back, and they with it: nothing would look at the job again.
TEST(ElasticPlan, ThoseOfAJobThatHasEndedToo) {
  ViewBuilder lost = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1, 2}).Lost({3}).Hosts({0, 1, 2, 3});
  View ends = lost.Launcher(LauncherState::kSucceeded).Build();
  EXPECT_THAT(PlanElasticJob(ends).bury, ElementsAre(PodName(3)));
  EXPECT_THAT(PlanElasticJob(ends).drop, SizeIs(3));
  View ended = lost.Status(PlanElasticJob(ends).status).Build();
  EXPECT_THAT(PlanElasticJob(ended).bury, ElementsAre(PodName(3)));
}

TEST(ElasticPlan, ABoundWorkerThatDoesNotStartMayLackItsKey) {
  for (const auto& [age, check] : {std::pair(19, false), {20, true}}) {
    const View view = ViewBuilder().MinMax(1, 1).Granted(1).Bound({0}, -age).Build();
    EXPECT_EQ(PlanElasticJob(view).check_secret, check) << age;
  }
}

TEST(ElasticPlan, ATargetOfNoneHoldsNothing) {
  const View view = Training().MinMax(0, 4).Target(0).Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 0);
  EXPECT_TRUE(plan.restart_launcher);
  EXPECT_FALSE(IsTrue(plan, "Ready"));
  EXPECT_FALSE(IsTrue(plan, "Reconciling"));
}

// Suspend and resume.

TEST(ElasticPlan, ASuspendedJobHoldsNothingAndForgetsItsClock) {
  const View view =
      Training().Job([](auto& job) { job.spec.run_policy.suspend = true; }).LastScale("Started", -9).Build();
  const Plan plan = PlanElasticJob(view);
  EXPECT_EQ(plan.workers->granted, 0);
  EXPECT_TRUE(plan.restart_launcher);
  EXPECT_FALSE(plan.hosts);
  EXPECT_FALSE(plan.status.start_time);
  EXPECT_FALSE(plan.status.last_scale);
  EXPECT_EQ(plan.status.phase, kPhaseSuspended);
  EXPECT_TRUE(IsTrue(plan, "Suspended"));
  EXPECT_THAT(plan.events, SizeIs(1));

  const View again =
      ViewBuilder().Status(plan.status).Granted(0).Job([](auto& job) { job.spec.run_policy.suspend = true; }).Build();
  EXPECT_THAT(PlanElasticJob(again).events, IsEmpty());
}

TEST(ElasticPlan, AResumedJobStartsAtOnceWithANewClock) {
  const View suspended = Training().Job([](auto& job) { job.spec.run_policy.suspend = true; }).Build();
  const View resumed = ViewBuilder().MinMax(2, 4).Status(PlanElasticJob(suspended).status).Granted(0).Room(4).Build();
  const Plan plan = PlanElasticJob(resumed);
  EXPECT_EQ(plan.workers->granted, 4);
  EXPECT_EQ(plan.status.start_time, resumed.now);
  EXPECT_FALSE(IsTrue(plan, "Suspended"));
  EXPECT_EQ(plan.status.phase, kPhasePending);
}

TEST(ElasticPlan, SuspendedTimeDoesNotCountForTheDeadline) {
  const View view = Training()
                        .Job([](auto& job) {
                          job.spec.run_policy.suspend = true;
                          job.spec.run_policy.active_deadline_seconds = 10;
                        })
                        .Build();
  EXPECT_EQ(PlanElasticJob(view).status.phase, kPhaseSuspended);
}

// The end.

TEST(ElasticPlan, TheLaunchersEndIsTheJobsEnd) {
  const View succeeded = Training().Launcher(LauncherState::kSucceeded).Build();
  const Plan success = PlanElasticJob(succeeded);
  EXPECT_EQ(success.status.phase, kPhaseSucceeded);
  EXPECT_EQ(success.status.completion_time, succeeded.now);
  EXPECT_TRUE(IsTrue(success, "Complete"));
  EXPECT_TRUE(IsTrue(success, "Ready"));

  const View failed = Training().Launcher(LauncherState::kFailed).LauncherMessage("exit code 137").Build();
  const Plan failure = PlanElasticJob(failed);
  EXPECT_EQ(failure.status.phase, kPhaseFailed);
  EXPECT_TRUE(IsTrue(failure, "Failed"));
  EXPECT_EQ(ReasonOf(failure), "LauncherFailed");
  ASSERT_THAT(failure.events, SizeIs(1));
  EXPECT_EQ(failure.events[0].type, kube::EventType::kWarning);
  EXPECT_THAT(failure.events[0].note, HasSubstr("exit code 137"));
}

TEST(ElasticPlan, CleanPodPolicySaysWhatStaysAfterTheEnd) {
  struct Case {
    api::CleanPodPolicy policy;
    bool workers, launcher, launcher_goes;
  };
  const Case kCases[] = {{api::CleanPodPolicy::kRunning, false, true, false},
                         {api::CleanPodPolicy::kAll, false, false, true},
                         {api::CleanPodPolicy::kNone, true, true, false}};
  for (const Case& c : kCases) {
    const auto policy = [&c](auto& job) { job.spec.run_policy.clean_pod_policy = c.policy; };
    const View ends = Training().Launcher(LauncherState::kSucceeded).Job(policy).Build();
    const Plan at_end = PlanElasticJob(ends);
    const View ended = Training().Launcher(LauncherState::kSucceeded).Status(at_end.status).Job(policy).Build();
    const Plan after = PlanElasticJob(ended);
    for (const Plan* plan : {&at_end, &after}) {
      EXPECT_EQ(plan->workers.has_value(), c.workers);
      EXPECT_EQ(plan->hosts.has_value(), c.workers);
      EXPECT_EQ(plan->wants_launcher, c.launcher);
      EXPECT_EQ(plan->restart_launcher, c.launcher_goes);
    }
    EXPECT_EQ(after.status, at_end.status);
    EXPECT_THAT(after.events, IsEmpty());
  }
}

TEST(ElasticPlan, AnEndedJobIsNeverStartedAgain) {
  const View ends = Training().Launcher(LauncherState::kSucceeded).Build();
  const View without_children = ViewBuilder().MinMax(2, 4).Room(4).Status(PlanElasticJob(ends).status).Build();
  const Plan plan = PlanElasticJob(without_children);
  EXPECT_FALSE(plan.workers);
  EXPECT_FALSE(plan.wants_launcher);
  EXPECT_FALSE(plan.restart_launcher);
}

TEST(ElasticPlan, TheJobIsDeletedWhenItsTimeToLiveIsOver) {
  for (const auto& [ttl, is_over] : {std::pair(61, false), {60, true}, {0, true}}) {
    const View view = Training()
                          .Launcher(LauncherState::kSucceeded)
                          .Job([ttl = ttl](auto& job) {
                            job.spec.run_policy.ttl_seconds_after_finished = ttl;
                            job.status.phase = kPhaseSucceeded;
                            job.status.completion_time = At(-60);
                          })
                          .Build();
    const Plan plan = PlanElasticJob(view);
    EXPECT_EQ(plan.delete_job, is_over) << ttl;
    if (!is_over) {
      EXPECT_EQ(plan.look_again, kube::Duration(seconds(1)));
    }
  }
}

// Whose job it is.

TEST(ElasticPlan, AnotherControllersJobIsLeftAlone) {
  for (const auto& [manager, is_ours] :
       {std::pair("", true), {"ai.centauruscloud.io/grus", true}, {"kueue.x-k8s.io/multikueue", false}}) {
    const View view = Training().Job([m = manager](auto& job) { job.spec.run_policy.managed_by = m; }).Build();
    EXPECT_EQ(IsOurs(*view.job), is_ours) << manager;
  }
}

TEST(ElasticPlan, AJobThatIsBeingDeletedIsLeftToTheGarbageCollector) {
  const View view = Training().Job([](auto& job) { job.metadata.deletion_timestamp = At(-1); }).Build();
  EXPECT_FALSE(IsOurs(*view.job));
}

// Once the plan is carried out, planning again changes nothing: a status write never causes the next one.
TEST(ElasticPlan, Q10ACarriedOutPlanPlansNoSecondStatus) {
  const std::pair<const char*, ViewBuilder> kCases[] = {
      {"waiting", ViewBuilder().MinMax(2, 4).Room(1)},
      {"starting", ViewBuilder().MinMax(2, 4).Room(4)},
      {"workers starting", ViewBuilder().MinMax(2, 4).Granted(4).Ready({0}).Bound({1, 2, 3})},
      {"training", Training()},
      {"unschedulable", ViewBuilder().MinMax(1, 4).Granted(4).Ready({0, 2}).Unschedulable({1, 3}, -20).LauncherRuns()},
      {"below the minimum", ViewBuilder().MinMax(3, 4).Granted(4).Ready({0}).Unschedulable({1, 2, 3}, -20).Room(0)},
      {"room", ViewBuilder().MinMax(1, 4).Granted(2).Ready({0, 1}).Room(1).LauncherRuns()},
      {"lost", ViewBuilder().MinMax(1, 4).Granted(4).Ready({0, 1, 2}).Lost({3}).LauncherRuns()},
      {"draining", Training().Target(2)},
      {"suspended", Training().Job([](auto& job) { job.spec.run_policy.suspend = true; })},
      {"succeeded", Training().Launcher(LauncherState::kSucceeded)},
      {"failed", Training().Launcher(LauncherState::kFailed)},
      {"past the deadline", Training().Job([](auto& job) { job.spec.run_policy.active_deadline_seconds = 9; })},
  };
  for (const auto& [name, builder] : kCases) {
    const View view = builder.Build();
    const Plan plan = PlanElasticJob(view);

    View next = view;
    auto job = std::make_shared<api::ElasticHorovodJob>(*view.job);
    job->status = plan.status;
    next.job = job;
    next.workers = plan.workers.value_or(WorkersState());
    for (std::size_t i = 0; i < view.pods.size(); ++i) {
      if (plan.drop.contains(&view.pods[i])) next.pods[i].is_ending = true;
    }
    next.hosts = plan.hosts;
    if (plan.restart_launcher) next.launcher = LauncherState::kAbsent, next.launcher_pods.clear();
    next.room = {view.room.copies, view.room.nodes};

    EXPECT_EQ(PlanElasticJob(next).status, plan.status) << name;
    EXPECT_THAT(PlanElasticJob(next).events, IsEmpty()) << name;
  }
}

TEST(ElasticPlan, AWorkerThatLeavesTheListUnaskedIsAnEvent) {
  struct Case {
    const char* rule;
    std::function<void(View&)> change;
    const char* reason;
    const char* note;
  };
  const Case kCases[] = {
      {"killed",
       [](View& v) {
         v.pods[1].is_ready = false;
         v.pods[1].end = "exit code 137 (OOMKilled)";
       },
       "WorkerLost", "worker bert-workers-1 was lost: exit code 137 (OOMKilled); 2 workers go on"},
      {"drained",
       [](View& v) {
         v.pods[1].is_ready = false;
         v.pods[1].is_ending = true;
       },
       "WorkerLeaves", "worker bert-workers-1 leaves the training: its pod is being deleted; 2 workers go on"},
      {"gone", [](View& v) { v.pods.erase(v.pods.begin() + 1); }, "WorkerLost",
       "worker bert-workers-1 was lost: its pod is gone; 2 workers go on"},
      {"replaced", [](View& v) { v.pods[1].address = "10.9.9.9"; }, "WorkerLost",
       "worker bert-workers-1 was lost: it was restarted and has another address; 3 workers go on"},
      {"while none trains",
       [](View& v) {
         v.pods.erase(v.pods.begin() + 1);
         v.launcher_pods.clear();
       },
       "WorkerLost", "worker bert-workers-1 was lost: its pod is gone; 2 workers left"},
  };
  for (const Case& c : kCases) {
    View view = ViewBuilder().MinMax(1, 3).Granted(3).Ready({0, 1, 2}).Hosts({0, 1, 2}).LauncherRuns().Build();
    c.change(view);
    const Plan plan = PlanElasticJob(view);
    ASSERT_EQ(plan.events.size(), 1U) << c.rule;
    EXPECT_EQ(plan.events.front().reason, c.reason) << c.rule;
    EXPECT_EQ(plan.events.front().note, c.note) << c.rule;
  }
}

}  // namespace
}  // namespace grus
