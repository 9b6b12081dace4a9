// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/controllers/elastic/view_builder.h"

namespace grus {
namespace {

using namespace std::chrono_literals;

using ::testing::HasSubstr;

using Status = api::ElasticHorovodJobStatus;

const kube::Condition& ConditionOf(const Status& status, const char* type) {
  static const kube::Condition kNone;
  const kube::Condition* found = kube::FindCondition(status.conditions, type);
  EXPECT_TRUE(found) << type;
  return found ? *found : kNone;
}

ViewBuilder Of(int granted) { return ViewBuilder().MinMax(2, 4).Granted(granted); }

TEST(ElasticStatus, CountsWorkersByWhatTheyAre) {
  const View view = ViewBuilder()
                        .MinMax(2, 9)
                        .Granted(5)
                        .Ready({0, 1})
                        .Bound({2})
                        .Waiting({3})
                        .Unschedulable({4}, -1)
                        .Lost({6})
                        .Ending({7})
                        .Build();
  const Status status = BaseStatus(view, SizesOf(view.job->spec));
  EXPECT_EQ(status.replicas.min, 2);
  EXPECT_EQ(status.replicas.max, 9);
  EXPECT_EQ(status.replicas.wanted, 9);
  EXPECT_EQ(status.replicas.granted, 5);
  EXPECT_EQ(status.replicas.created, 5);
  EXPECT_EQ(status.replicas.ready, 2);
  EXPECT_EQ(status.replicas.unschedulable, 1);
  EXPECT_EQ(status.available_replicas, 2);
}

TEST(ElasticStatus, AJobThatNoNodesCanHoldIsStalledAndDoesNotWaitForItsQueue) {
  View view = ViewBuilder().MinMax(1, 4).NoRoom("no node can hold a worker", true).Build();
  view.can_never_fit = true;
  const Status status = PlanElasticJob(view).status;
  EXPECT_EQ(status.phase, "Waiting");
  EXPECT_EQ(ConditionOf(status, "Ready").reason, "CannotFit");
  EXPECT_EQ(ConditionOf(status, "Ready").message,
            "cannot fit: 1 worker (1 GPU) and the launcher; no node can hold a worker");
  EXPECT_TRUE(ConditionOf(status, "Stalled").is_true());
  EXPECT_FALSE(ConditionOf(status, "Reconciling").is_true());
}

// As long as the reason stays the same, the event is not repeated, whatever the message says.
TEST(ElasticStatus, AReasonThatUsersWaitForIsToldOnce) {
  struct Case {
    const char* reason;
    kube::EventType type;
    bool can_never_fit, is_refused_by_queue;
  };
  for (const Case& c : {Case{"WaitingForRoom", kube::EventType::kNormal, false, false},
                        Case{"WaitingForQueue", kube::EventType::kNormal, false, true},
                        Case{"CannotFit", kube::EventType::kWarning, true, false}}) {
    View view = ViewBuilder().MinMax(1, 4).NoRoom("why", c.is_refused_by_queue).Build();
    view.can_never_fit = c.can_never_fit;
    const Plan plan = PlanElasticJob(view);
    ASSERT_EQ(plan.events.size(), 1U) << c.reason;
    EXPECT_EQ(plan.events.front().reason, c.reason);
    EXPECT_EQ(plan.events.front().type, c.type) << c.reason;
    EXPECT_EQ(plan.events.front().note, ConditionOf(plan.status, "Ready").message);

    auto job = std::make_shared<api::ElasticHorovodJob>(*view.job);
    job->status = plan.status;
    view.job = job;
    view.why_no_room = "something else";
    EXPECT_TRUE(PlanElasticJob(view).events.empty()) << c.reason;
  }
}

TEST(ElasticStatus, NamesWhatTheOriginalNamed) {
  const View view = Of(4).Build();
  const Status status = BaseStatus(view, SizesOf(view.job->spec));
  EXPECT_EQ(status.launcher, "job.batch/bert-launcher");
  EXPECT_EQ(status.workers, "pods -l ai.centauruscloud.io/job-name=bert,ai.centauruscloud.io/role=worker");
  EXPECT_EQ(status.selector, "ai.centauruscloud.io/job-name=bert,ai.centauruscloud.io/role=worker");
}

TEST(ElasticStatus, PhaseReasonAndConditionsAgree) {
  struct Case {
    const char* phase;
    const char* reason;
    bool ready, reconciling;
    ViewBuilder view;
    const char* message;
  };
  const Case kCases[] = {
      {"Waiting", "WaitingForRoom", false, true, ViewBuilder().MinMax(2, 4).NoRoom("2 of 3 have room"),
       "waiting for room for 2 workers (2 GPUs) and the launcher; 2 of 3 have room"},
      {"Waiting", "WaitingForRoom", false, true, ViewBuilder().MinMax(1, 4).Room(0, 0),
       "waiting for room for 1 worker (1 GPU) and the launcher"},
      {"Waiting", "WaitingForQueue", false, true, ViewBuilder().MinMax(1, 4).NoRoom("there is no queue a", true),
       "waiting for room for 1 worker (1 GPU) and the launcher; there is no queue a"},
      {"Waiting", "NoWorkersWanted", false, false, Of(0).MinMax(0, 4).Target(0), "no workers are wanted"},
      {"Waiting", "WaitingForQuota", false, true, ViewBuilder().MinMax(3, 4).Room(8).Quota(1),
       "waiting: quota \"team\" of namespace team-a leaves room for 1 more worker of the 3 needed "
       "(requests.nvidia.com/gpu: 7 of 8 used)"},
      {"Waiting", "WaitingForQuota", false, true, ViewBuilder().MinMax(2, 4).Room(8).Quota(0),
       "waiting: quota \"team\" of namespace team-a leaves no room for any of the 2 workers needed "
       "(requests.nvidia.com/gpu: 7 of 8 used)"},
      {"Running", "Training", true, false, Of(3).Ready({0, 1, 2}).LauncherRuns().Quota(3),
       "3 of 3 workers ready; 4 are wanted, quota \"team\" of namespace team-a admits no more "
       "(requests.nvidia.com/gpu)"},
      {"Pending", "WorkersStarting", false, true, Of(4).Ready({0}).Unschedulable({3}, -1),
       "1 of 4 workers ready, 1 unschedulable"},
      {"Pending", "WorkersStarting", false, true, Of(4).Ready({0}).GatedByOthers({2, 3}),
       "1 of 4 workers ready; 2 workers cannot start before another controller removes its scheduling gate "
       "example.com/admission"},
      {"Starting", "LauncherStarting", false, true, Of(4).Ready({0, 1, 2, 3}).Launcher(LauncherState::kActive),
       "4 of 4 workers ready"},
      {"Running", "Training", true, false, Of(4).Ready({0, 1, 2, 3}).LauncherRuns(), "4 of 4 workers ready"},
      {"Running", "Training", true, false, Of(4).Ready({0, 1, 2}).Waiting({3}).LauncherRuns(), "3 of 4 workers ready"},
      {"Running", "BelowMinimum", false, true, Of(4).Ready({0}).Waiting({1, 2, 3}).LauncherRuns(),
       "trains on fewer workers than the minimum of 2: 1 of 4 workers ready"},
      {"Running", "Training", true, false, Of(3).Ready({0, 1, 2}).LauncherRuns(), "3 of 3 workers ready; 4 are wanted"},
      {"Suspended", "Suspended", false, false, Of(4).Job([](auto& job) { job.spec.run_policy.suspend = true; }),
       "suspended by spec.runPolicy.suspend"},
  };
  for (Case c : kCases) {
    SCOPED_TRACE(c.message);
    const View view = c.view.Job([](auto& job) { job.metadata.generation = 7; }).Build();
    const Status status = PlanElasticJob(view).status;
    EXPECT_EQ(status.phase, c.phase);
    EXPECT_EQ(status.observed_generation, 7);
    EXPECT_EQ(ConditionOf(status, "Ready").is_true(), c.ready);
    EXPECT_EQ(ConditionOf(status, "Reconciling").is_true(), c.reconciling);
    EXPECT_FALSE(ConditionOf(status, "Stalled").is_true());
    EXPECT_EQ(ConditionOf(status, "Ready").message, c.message);
    for (const kube::Condition& condition : status.conditions) {
      EXPECT_EQ(condition.reason, c.reason) << condition.type;
      EXPECT_EQ(condition.observed_generation, 7) << condition.type;
      EXPECT_EQ(condition.last_transition_time, view.now) << condition.type;
    }
  }
}

TEST(ElasticStatus, ATransitionTimeIsThatOfTheChange) {
  const View first = Of(4).Ready({0}).Build();
  const Status before = PlanElasticJob(first).status;
  View second = Of(4).Ready({0, 1, 2, 3}).LauncherRuns().Status(before).Build();
  second.now = At(50);
  const Status after = PlanElasticJob(second).status;
  EXPECT_EQ(ConditionOf(after, "Ready").last_transition_time, At(50));
  EXPECT_EQ(ConditionOf(after, "Stalled").last_transition_time, At(0));
}

TEST(ElasticStatus, OnlyAReallyRunningLauncherIsTraining) {
  View view = Of(4).Ready({0, 1, 2, 3}).LauncherRuns().Build();
  view.launcher_pods.front().is_ending = true;
  EXPECT_EQ(PlanElasticJob(view).status.phase, kPhaseStarting);
}

TEST(ElasticStatus, ALauncherThatHasJustEndedStillRunsUntilItsJobSaysHow) {
  View view = Of(4).Ready({0, 1, 2, 3}).LauncherRuns().Job([](auto& job) { job.status.phase = "Running"; }).Build();
  view.launcher_pods.front().is_ending = true;
  view.launcher_pods.front().is_running = false;
  EXPECT_EQ(PlanElasticJob(view).status.phase, kPhaseRunning);
}

// The Job waits before it tries again, for up to ten minutes.
TEST(ElasticStatus, ALauncherThatEndedAWhileAgoTrainsNoMore) {
  View view = Of(4).Ready({0, 1, 2, 3}).LauncherRuns().Job([](auto& job) { job.status.phase = "Running"; }).Build();
  view.launcher_pods.front().is_ending = true;
  view.launcher_pods.front().is_running = false;
  view.launcher_pods.front().ended = At(-4);

  const Plan soon = PlanElasticJob(view);
  EXPECT_EQ(soon.status.phase, kPhaseRunning);
  EXPECT_EQ(soon.look_again, std::chrono::seconds(1));

  view.now = At(1);
  const Status after = PlanElasticJob(view).status;
  EXPECT_EQ(after.phase, kPhaseStarting);
  EXPECT_EQ(ConditionOf(after, "Ready").status, "False");
  EXPECT_EQ(ConditionOf(after, "Ready").reason, "LauncherStarting");
}

TEST(ElasticStatus, ASchedulerThatSaysNothingOfAPodIsNamedAfterAWhile) {
  constexpr char kHint[] = "scheduler \"volcano\" has said nothing of pod ";
  View view = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0}).Waiting({1}).Build();
  view.pods[1].silent_scheduler = "volcano";
  view.pods[1].asked_since = At(-10);
  const Plan soon = PlanElasticJob(view);
  EXPECT_EQ(ConditionOf(soon.status, "Ready").message, "1 of 2 workers ready");
  EXPECT_EQ(soon.look_again, 20s);

  view.now = At(20);
  EXPECT_EQ(ConditionOf(PlanElasticJob(view).status, "Ready").message,
            "1 of 2 workers ready; " + std::string(kHint) + "bert-workers-1: does it run?");

  View launcher = ViewBuilder().MinMax(2, 2).Granted(2).Ready({0, 1}).LauncherRuns().Build();
  launcher.launcher_pods[0].is_bound = launcher.launcher_pods[0].is_running = false;
  launcher.launcher_pods[0].silent_scheduler = "volcano";
  launcher.launcher_pods[0].created = At(-30);
  EXPECT_THAT(ConditionOf(PlanElasticJob(launcher).status, "Ready").message, HasSubstr(kHint));
}

// The quota may have much left: no job that ends helps.
TEST(ElasticStatus, AQuotaOnWhatPodsDoNotStateIsToldWithTheRemedy) {
  for (const bool is_of_launcher : {false, true}) {
    View view = ViewBuilder().MinMax(2, 4).Room(8).Build();
    view.quota =
        QuotaLimit{0, "team", "limits.cpu", "container worker must state limits.cpu", is_of_launcher, {}, true};
    const std::string field = is_of_launcher ? "launcherSpec" : "workersSpec";
    EXPECT_EQ(ConditionOf(PlanElasticJob(view).status, "Ready").message,
              "quota \"team\" of namespace team-a admits only pods that state what it counts (container worker must "
              "state limits.cpu); waiting does not help: state it in spec." +
                  field + ".template, or give the namespace a LimitRange with defaults");
  }
}

TEST(ElasticStatus, PodsThatCannotStartAreTold) {
  const auto refused = [](View view) {
    view.refused_workers = Refusal{"FailedCreate: pods are forbidden", At(-5)};
    return view;
  };
  const auto launcher = [](View view) {
    LauncherPod pod;
    pod.name = "bert-launcher-x";
    pod.trouble = "cannot be scheduled: 0/1 nodes";
    pod.created = At(-5);
    view.launcher_pods.push_back(pod);
    return view;
  };
  const auto silent = [](View view) {
    view.pods.front().silent_since = At(-10);
    return view;
  };
  struct Case {
    const char* rule;
    View view;
    const char* phase;
    const char* message;
  };
  const Case kCases[] = {
      {"a worker", Of(2).Ready({0}).Broken({1}, -5).Build(), "Pending",
       "1 of 2 workers ready; 4 are wanted; worker bert-workers-1: cannot pull its image"},
      {"several", Of(4).Broken({0, 1, 3}, -5).Bound({2}).Build(), "Pending",
       "0 of 4 workers ready; worker bert-workers-0: cannot pull its image (and 2 other workers)"},
      {"no ssh server", silent(Of(4).Bound({0, 1, 2, 3}).Build()), "Pending",
       "0 of 4 workers ready; worker bert-workers-0: its ssh server does not answer on port 2222"},
      {"refused", refused(Of(4).Build()), "Pending", "0 of 4 workers ready; FailedCreate: pods are forbidden"},
      {"launcher", launcher(Of(4).Ready({0, 1, 2, 3}).Launcher(LauncherState::kActive).Build()), "Starting",
       "4 of 4 workers ready; launcher bert-launcher-x: cannot be scheduled: 0/1 nodes"},
  };
  for (const Case& c : kCases) {
    const Status status = PlanElasticJob(c.view).status;
    EXPECT_EQ(status.phase, c.phase) << c.rule;
    EXPECT_EQ(ConditionOf(status, "Stalled").reason, "PodsBroken") << c.rule;
    EXPECT_TRUE(ConditionOf(status, "Stalled").is_true()) << c.rule;
    EXPECT_FALSE(ConditionOf(status, "Ready").is_true()) << c.rule;
    EXPECT_EQ(ConditionOf(status, "Ready").message, c.message) << c.rule;
  }
}

TEST(ElasticStatus, OfAWorkerWhoseNodeIsLostOnlyThatIsTold) {
  View view = Of(4).Ready({0, 1, 2}).Lost({3}).LauncherRuns().Build();
  view.pods.back().is_ready = false;
  const std::string before = ConditionOf(PlanElasticJob(view).status, "Ready").message;
  view.pods.back().trouble = "cannot pull its image";
  EXPECT_EQ(ConditionOf(PlanElasticJob(view).status, "Ready").message, before);
}

TEST(ElasticStatus, ATrainingGoesOnBesideABrokenWorker) {
  const Status status = PlanElasticJob(Of(4).Ready({0, 1, 2}).Broken({3}, -5).LauncherRuns().Build()).status;
  EXPECT_TRUE(ConditionOf(status, "Ready").is_true());
  EXPECT_THAT(ConditionOf(status, "Ready").message, HasSubstr("worker bert-workers-3: cannot pull its image"));
}

TEST(ElasticStatus, ASilentTrainingIsNotCalledReady) {
  View view = Of(4).Ready({0, 1, 2, 3}).Hosts({0, 1, 2, 3}).LauncherRuns().Build();
  view.launcher_pods.front().silent_since = At(-600);

  const Plan plan = PlanElasticJob(view);

  EXPECT_EQ(plan.status.phase, kPhaseRunning);
  EXPECT_EQ(ConditionOf(plan.status, "Ready").status, "Unknown");
  EXPECT_EQ(ConditionOf(plan.status, "Ready").reason, "NoOutput");
  EXPECT_THAT(ConditionOf(plan.status, "Ready").message,
              HasSubstr("launcher bert-launcher-x has printed nothing since " + kube::ToText(At(-600))));
  ASSERT_EQ(plan.events.size(), 1U);
  EXPECT_EQ(plan.events.front().reason, "NoOutput");
  View again = Of(4).Ready({0, 1, 2, 3}).Hosts({0, 1, 2, 3}).LauncherRuns().Status(plan.status).Build();
  again.launcher_pods.front().silent_since = At(-600);
  again.now = At(30);
  EXPECT_EQ(PlanElasticJob(again).status.conditions, plan.status.conditions) << "no write at rest";
  EXPECT_TRUE(PlanElasticJob(again).events.empty()) << "told once";
  again.launcher_pods.front().silent_since.reset();
  EXPECT_TRUE(ConditionOf(PlanElasticJob(again).status, "Ready").is_true()) << "it speaks again";
}

TEST(ElasticStatus, WhatWasWrongStandsUntilTheNextTry) {
  const View broken = Of(4).Broken({0, 1, 2, 3}, -70).Build();
  const Plan given_back = PlanElasticJob(broken);
  ASSERT_EQ(given_back.workers->granted, 0);
  const std::string message = ConditionOf(given_back.status, "Stalled").message;
  EXPECT_THAT(message, HasSubstr("cannot pull its image"));
  EXPECT_THAT(message, HasSubstr("tries again in 5 minutes or when the spec changes"));

  View later = ViewBuilder().MinMax(2, 4).Granted(0).Status(given_back.status).Room(4).Build();
  later.now = At(120);

  const Status status = PlanElasticJob(later).status;
  EXPECT_EQ(status.phase, kPhaseWaiting);
  EXPECT_EQ(ConditionOf(status, "Stalled").message, message);
  EXPECT_EQ(status.conditions, given_back.status.conditions);
}

TEST(ElasticStatus, AnEndIsFinalForKstatus) {
  // Ready=False alone reads as "still under way": a failed job must be Stalled, so that nobody waits for it.
  const View view = Of(4).Build();
  for (const auto& [reason, is_success] :
       {std::pair(Reason::kSucceeded, true), {Reason::kLauncherFailed, false}, {Reason::kDeadlineExceeded, false}}) {
    Status status;
    SetEnd(status, view, reason, "because");
    EXPECT_EQ(status.phase, is_success ? "Succeeded" : "Failed");
    EXPECT_EQ(ConditionOf(status, "Ready").is_true(), is_success);
    EXPECT_FALSE(ConditionOf(status, "Reconciling").is_true());
    EXPECT_EQ(ConditionOf(status, "Stalled").is_true(), !is_success);
    EXPECT_EQ(ConditionOf(status, is_success ? "Complete" : "Failed").message, "because");
    EXPECT_EQ(status.completion_time, view.now);
  }
}

TEST(ElasticStatus, ARefusedJobIsStalledAndKeepsItsPhase) {
  for (const auto& [before, after] : {std::pair("", kPhasePending), {"Running", kPhaseRunning}}) {
    const View view = Of(4)
                          .Job([b = before](auto& job) {
                            job.status.phase = b;
                            job.metadata.generation = 3;
                          })
                          .Build();
    const Status status = RefusedStatus(view, Reason::kTemplateRefused, "field is immutable");
    EXPECT_EQ(status.phase, after);
    EXPECT_FALSE(ConditionOf(status, "Ready").is_true());
    EXPECT_FALSE(ConditionOf(status, "Reconciling").is_true());
    EXPECT_TRUE(ConditionOf(status, "Stalled").is_true());
    EXPECT_EQ(ConditionOf(status, "Stalled").reason, "TemplateRefused");
    EXPECT_EQ(ConditionOf(status, "Stalled").message, "field is immutable");
    EXPECT_EQ(status.observed_generation, 3);
  }
}

TEST(ElasticStatus, ARefusedJobThatIsRightAgainIsNoLongerStalled) {
  const View view = Of(4).Ready({0, 1, 2, 3}).LauncherRuns().Build();
  const View healed =
      Of(4).Ready({0, 1, 2, 3}).LauncherRuns().Status(RefusedStatus(view, Reason::kNameTaken, "taken")).Build();
  EXPECT_FALSE(ConditionOf(PlanElasticJob(healed).status, "Stalled").is_true());
}

TEST(ElasticStatus, AJobThatShrinksIsReadyAndUnderWay) {
  const api::ElasticHorovodJobStatus status =
      PlanElasticJob(Of(4).Target(2).Ready({0, 1, 2, 3}).Hosts({0, 1}, 2, -5).LauncherRuns(2).Build()).status;
  EXPECT_TRUE(ConditionOf(status, "Ready").is_true());
  EXPECT_THAT(ConditionOf(status, "Ready").message,
              ::testing::HasSubstr("4 of 4 workers ready; shrinks to 2 workers: 2 workers leave the training"));
  EXPECT_TRUE(ConditionOf(status, "Reconciling").is_true());
}

TEST(ElasticStatus, WhatOthersMeasuredIsKept) {
  api::Progress progress;
  progress.step = 1200;
  const View view = Of(4).Job([&](auto& job) { job.status.progress = progress; }).Build();
  ASSERT_TRUE(PlanElasticJob(view).status.progress);
  EXPECT_EQ(PlanElasticJob(view).status.progress->step, 1200);
}

TEST(ElasticStatus, AllReasonsHaveNamesTheApiTakes) {
  std::set<std::string_view> names;
  for (int reason = 0; reason <= static_cast<int>(Reason::kPreempting); ++reason) {
    const std::string_view name = ToString(static_cast<Reason>(reason));
    ASSERT_FALSE(name.empty()) << reason;
    EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](char c) { return std::isalpha(c) != 0; })) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(ScaleMessage, SaysTheNumbersAndWhy) {
  const View view = ViewBuilder().MinMax(3, 8).Room(1).Build();
  const Sizes sizes = SizesOf(view.job->spec);
  struct Case {
    int from, to;
    ScaleReason reason;
    const char* text;
  };
  const Case kCases[] = {
      {34, 32, ScaleReason::kUnschedulable, "shrunk from 34 to 32 workers: the rest was unschedulable for 15 s"},
      {4, 0, ScaleReason::kBelowMinimum,
       "fewer than the minimum of 3 fit; waiting for room for 3 workers (3 GPUs) and the launcher"},
      {0, 5, ScaleReason::kStarted, "grown from 0 to 5 workers: there is room for no more; 8 are wanted"},
      {2, 1, ScaleReason::kSpecChanged, "shrunk from 2 to 1 worker: the spec changed"},
      {1, 2, ScaleReason::kRoomAppeared, "grown from 1 to 2 workers: there is room"},
  };
  for (const Case& c : kCases) {
    EXPECT_THAT(ScaleMessage(view, sizes, c.from, c.to, c.reason), HasSubstr(c.text));
  }
}

TEST(ScaleMessage, AShrinkSaysWhetherTrainingGoesOn) {
  const View view = Of(4).Ready({0, 1}).LauncherRuns().Build();
  EXPECT_THAT(ScaleMessage(view, SizesOf(view.job->spec), 4, 2, ScaleReason::kUnschedulable),
              HasSubstr("unschedulable for 15 s; training goes on"));
}

TEST(ScaleMessage, AMinimumOfNoneIsToldAsTheOneThatIsNeeded) {
  const View view = ViewBuilder().MinMax(0, 8).Build();
  EXPECT_THAT(ScaleMessage(view, SizesOf(view.job->spec), 2, 0, ScaleReason::kBelowMinimum),
              HasSubstr("the minimum of 1 fit"));
}

TEST(PatienceFor, WhatAJobThatWaitsIsToldMayWaitForCompanyButNoDecision) {
  const auto status_of = [](ViewBuilder builder) { return PlanElasticJob(builder.Build()).status; };
  Status before = status_of(ViewBuilder().MinMax(2, 4).NoRoom("second in the queue"));
  before.observed_generation = 1;
  Status after = before;
  EXPECT_EQ(PatienceFor(before, status_of(ViewBuilder().MinMax(2, 4).NoRoom("first in the queue"))), 30s);
  after.replicas.created = 7;
  EXPECT_EQ(PatienceFor(before, after), 3s);
  EXPECT_EQ(PatienceFor(before, status_of(ViewBuilder().MinMax(2, 4).Room(8).Quota(1))), 0s);
  EXPECT_EQ(PatienceFor(before, status_of(Of(4).Ready({0, 1, 2, 3}).LauncherRuns())), 0s);
}

TEST(ElasticStatus, TheRoomIsToldInTheAcceleratorsOfTheJob) {
  const auto message = [](auto change) {
    const View view = ViewBuilder().MinMax(2, 4).Room(1).Job(change).Build();
    return ConditionOf(PlanElasticJob(view).status, "Ready").message;
  };
  EXPECT_EQ(message([](auto& job) { job.spec.workers.gpus_per_worker = 0; }),
            "waiting for room for 2 workers and the launcher");
  EXPECT_EQ(message([](auto& job) {
              job.spec.workers.pod_template = *kube::ParseJson(
                  R"({"spec":{"containers":[{"name":"worker","resources":{"limits":{"amd.com/gpu":4}}}]}})");
            }),
            "waiting for room for 2 workers (8 amd.com/gpu) and the launcher");
}

}  // namespace
}  // namespace grus
