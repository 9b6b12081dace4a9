// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_plan.h"

#include <gmock/gmock.h>

#include <chrono>
#include <limits>
#include <random>

#include "controllers/trial/trial_budget.h"
#include "controllers/trial/trial_outcome.h"
#include "tests/controllers/trial/trial_world.h"

namespace grus {
namespace {

using api::TrialJobPhase;
using api::TrialPhase;
using api::TrialReason;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Seen;
using ::testing::SizeIs;
using testing::TestTrialJob;
using testing::TrialWorld;

double Scaling(const api::TrialConfig& config) { return 100.0 * std::min(config.gpus, 4); }

TEST(PlanTrials, RunsTheSizesOneAfterAnotherAndRecommends) {
  TrialWorld world(TestTrialJob({1, 2, 4, 8}));

  world.RunAll(Scaling);

  EXPECT_EQ(world.status().phase, TrialJobPhase::kSucceeded);
  EXPECT_EQ(world.status().progress, "4/4");
  for (int gpus : {1, 2, 4, 8}) EXPECT_EQ(world.TrialOf(gpus)->phase, TrialPhase::kSucceeded) << gpus;
  ASSERT_THAT(world.status().recommendation, SizeIs(3));
  EXPECT_EQ(world.status().recommendation[2].goal, api::Goal::kKnee);
  EXPECT_EQ(world.status().recommendation[2].gpus, 4);
  ASSERT_TRUE(world.status().model);
  EXPECT_TRUE(kube::IsConditionTrue(world.status().conditions, "Complete"));
}

TEST(PlanTrials, NoMoreThanParallelismRunAtATime) {
  for (const int parallelism : {1, 2, 3}) {
    api::TrialJob job = TestTrialJob({1, 2, 4, 8});
    job.spec.strategy.parallelism = parallelism;
    TrialWorld world(job);
    EXPECT_THAT(world.Pass().start, SizeIs(static_cast<std::size_t>(parallelism)));
    EXPECT_THAT(world.Active(), SizeIs(static_cast<std::size_t>(parallelism)));
  }
}

TEST(PlanTrials, TheNextWaitsUntilTheGpusOfTheLastAreFree) {
  TrialWorld world(TestTrialJob({1, 2}));
  world.Pass();
  const std::string first = world.Active().front();
  world.now = 20;
  world.run(first).speed = Seen(100, 20);
  const TrialRun running = world.run(first);

  const TrialPlan end = world.Pass();
  world.run(first) = running;  // The pods go slowly.
  const TrialPlan meanwhile = world.Pass();
  world.run(first) = {};
  const TrialPlan after = world.Pass();

  EXPECT_THAT(end.end, ::testing::ElementsAre(first));
  EXPECT_THAT(end.start, IsEmpty());
  EXPECT_THAT(meanwhile.start, IsEmpty());
  EXPECT_THAT(after.start, SizeIs(1));
}

TEST(PlanTrials, MoreGpusThatDoNotHelpEndTheLadderAndNotTheGrid) {
  const auto no_gain = [](const api::TrialConfig& config) { return 100.0 * std::min(config.gpus, 2); };
  api::TrialJob grid = TestTrialJob({1, 2, 4, 8, 16});
  grid.spec.strategy.type = api::StrategyType::kGrid;
  TrialWorld ladder(TestTrialJob({1, 2, 4, 8, 16})), all(grid);

  ladder.RunAll(no_gain);
  all.RunAll(no_gain);

  EXPECT_EQ(ladder.TrialOf(8)->reason, TrialReason::kNoMoreGain);
  EXPECT_EQ(ladder.TrialOf(16)->phase, TrialPhase::kSkipped);
  EXPECT_EQ(all.TrialOf(16)->phase, TrialPhase::kSucceeded);
}

TEST(PlanTrials, TenThousandConfigurationsTakeMillisecondsAndFitTheStatus) {
  std::vector<std::int32_t> counts, batches;
  for (int i = 1; i <= 125; ++i) counts.push_back(i);
  for (int i = 1; i <= 40; ++i) batches.push_back(i);
  api::TrialJob job = TestTrialJob(counts, batches);
  job.spec.space.gpu_types = {{"A100", {}}, {"H100", {}}};
  job.spec.strategy.max_trials = 256;
  TrialWorld world(job);

  const auto start = std::chrono::steady_clock::now();
  world.Pass();
  const auto took = std::chrono::steady_clock::now() - start;

  EXPECT_LT(took, std::chrono::milliseconds(500));  // About 20 ms; a busy machine takes longer.
  EXPECT_LE(static_cast<std::int64_t>(world.status().trials.size()), api::kMaxTrials);
  job.spec.strategy.max_trials = 4;
  TrialWorld few(job);
  few.Pass();
  EXPECT_EQ(few.status().trials.size(), 4u + 16u);
  EXPECT_THAT(few.status().trials.back().message, HasSubstr("9980 more are not listed"));
}

TEST(PlanTrials, FailuresHaveTheirReasonAndThoseOfTheImageEndAll) {
  struct Case {
    const char* what;
    std::function<void(TrialRun&)> happens;
    std::int64_t after;
    TrialReason want;
    bool ends_all;
  };
  const auto output = [](TrialRun& run, SpeedState state) {
    run.speed.emplace();
    run.speed->state = state;
    run.speed->counts.lines = 7;
  };
  const Case cases[] = {
      {"image", [](TrialRun& run) { run.pods.image_problem = "ErrImagePull: not found"; }, 3,
       TrialReason::kImageUnavailable, true},
      {"oom", [](TrialRun& run) { run.pods.out_of_memory = "pod x"; }, 3, TrialReason::kOutOfMemory, false},
      {"cuda",
       [&](TrialRun& run) {
         output(run, SpeedState::kWaiting);
         run.speed->counts.out_of_memory = 1;
         run.child->phase = "Failed";
       },
       3, TrialReason::kOutOfMemory, false},
      {"crash",
       [](TrialRun& run) {
         run.child->phase = "Failed";
         run.pods.exit = "exit code 1";
       },
       3, TrialReason::kCrashed, false},
      {"node",
       [](TrialRun& run) {
         run.child->phase = "Failed";
         run.pods.has_lost_node = true;
       },
       3, TrialReason::kNodeLost, false},
      {"pattern", [&](TrialRun& run) { output(run, SpeedState::kNotMatched); }, 300, TrialReason::kNothingMatched,
       true},
      {"silent", [&](TrialRun& run) { output(run, SpeedState::kSilent); }, 300, TrialReason::kNoOutput, true},
      {"ended", [](TrialRun& run) { run.child->phase = "Succeeded"; }, 3, TrialReason::kWorkloadEnded, false},
      {"refused",
       [](TrialRun& run) {
         run = {};
         run.refusal = "spec is bad";
       },
       3, TrialReason::kRefused, true},
      {"template",
       [](TrialRun& run) {
         run.child->refusal = "no such volume";
         run.child->refused_for = std::chrono::seconds(20);
       },
       21, TrialReason::kRefused, true},
      {"deleted", [](TrialRun& run) { run.child.reset(); }, 3, TrialReason::kCrashed, false},
      {"slice", [](TrialRun&) {}, 600, TrialReason::kTimeSpent, false},
  };
  for (const Case& c : cases) {
    api::TrialJob job = TestTrialJob({1, 2});
    job.spec.measure.startup_seconds = 300;
    TrialWorld world(job);
    world.Pass();
    world.now = 1;
    world.Pass();
    const std::string name = world.Active().front();
    world.now = c.after;
    c.happens(world.run(name));
    world.Pass();
    EXPECT_EQ(world.TrialOf(1)->phase, TrialPhase::kFailed) << c.what;
    EXPECT_EQ(world.TrialOf(1)->reason, c.want) << c.what << ": " << world.TrialOf(1)->message;
    EXPECT_EQ(world.TrialOf(2)->phase == TrialPhase::kSkipped, c.ends_all) << c.what;
    EXPECT_FALSE(world.TrialOf(1)->message.empty()) << c.what;
  }
}

TEST(PlanTrials, AnOutOfMemoryBatchSizeRulesOutTheLargerOnes) {
  TrialWorld world(TestTrialJob({2}, {32, 64, 128}));
  world.Pass();
  world.run(world.Active().front()).pods.out_of_memory = "pod x";
  world.Pass();
  EXPECT_EQ(world.TrialOf(2, 64)->reason, TrialReason::kOutOfMemory);
  EXPECT_EQ(world.TrialOf(2, 128)->phase, TrialPhase::kSkipped);
}

TEST(PlanTrials, WhatIsLargerThanTheClusterIsSkipped) {
  TrialWorld world(TestTrialJob({1, 16}));
  world.view().nodes[""] = {8, 8};
  world.Pass();
  EXPECT_EQ(world.TrialOf(16)->reason, TrialReason::kDoesNotFit);
  EXPECT_EQ(world.TrialOf(1)->phase, TrialPhase::kStarting);
}

TEST(PlanTrials, ASpeedThatIsNotPreciseCountsWhenItsWindowEnds) {
  TrialWorld world(TestTrialJob({1}));
  world.Pass();
  const std::string name = world.Active().front();
  world.now = 40;
  world.run(name).speed = Seen(100, 40, 0.3);
  world.Pass();
  EXPECT_EQ(world.TrialOf(1)->phase, TrialPhase::kMeasuring);
  world.run(name).speed = Seen(100, 60, 0.3);
  world.Pass();
  EXPECT_EQ(world.TrialOf(1)->reason, TrialReason::kWindowEnded);
}

// A process that has just begun has read nothing of the log of a trial.
void Unread(TrialRun& run) {
  run.speed.emplace();
  run.is_log_awaited = true;
}
// The trial of a world in which it runs since a second, and is unread.
TrialRun& UnreadTrial(TrialWorld& world) {
  world.Pass();
  world.now = 1;
  world.Pass();
  TrialRun& run = world.run(world.Active().front());
  Unread(run);
  return run;
}

TEST(PlanTrials, AMeasurementThatIsWrittenDownCountsWhenAProcessBeginsAtTheEndOfTheSlice) {
  TrialWorld world(TestTrialJob({1}));
  world.Pass();
  TrialRun& run = world.run(world.Active().front());
  world.now = 40;
  run.speed = Seen(100, 40, 0.3);
  world.Pass();
  world.now = 300;
  Unread(run);
  world.Pass();
  ASSERT_EQ(world.TrialOf(1)->phase, TrialPhase::kMeasuring);

  world.now = 620;
  world.Pass();

  EXPECT_EQ(world.TrialOf(1)->phase, TrialPhase::kSucceeded);
  EXPECT_EQ(world.TrialOf(1)->reason, TrialReason::kWindowEnded);
  EXPECT_NEAR(std::stod(world.TrialOf(1)->measured->throughput), 100, 1);
}

TEST(PlanTrials, ATrainingIsNotSilentWhileItsLogIsNotReadYet) {
  TrialWorld world(TestTrialJob({1}));
  TrialRun& run = UnreadTrial(world);
  run.speed->state = SpeedState::kSilent;
  world.now = 130;
  world.Pass();
  EXPECT_EQ(world.TrialOf(1)->phase, TrialPhase::kWarming);
  EXPECT_EQ(world.TrialOf(1)->reason, TrialReason::kNone);

  run.is_log_awaited = false;
  world.Pass();
  EXPECT_EQ(world.TrialOf(1)->reason, TrialReason::kNoOutput);
}

TEST(PlanTrials, TheEndOfASliceWaitsOnePollForALogThatIsNotReadYet) {
  for (const std::int64_t read_after : {2, 5}) {
    TrialWorld world(TestTrialJob({1}));
    TrialRun& run = UnreadTrial(world);
    world.now = 600;
    world.Pass();
    ASSERT_FALSE(HasEnded(world.TrialOf(1)->phase)) << read_after;

    world.now = 600 + read_after;
    if (read_after < 5) run.speed = Seen(100, 40, 0.3);
    world.Pass();

    EXPECT_EQ(world.TrialOf(1)->phase, read_after < 5 ? TrialPhase::kSucceeded : TrialPhase::kFailed) << read_after;
  }
}

TEST(PlanTrials, WhatATrialEndedWithIsJudgedOnceItsLogIsRead) {
  for (const char* phase : {"Failed", "Succeeded"}) {
    TrialWorld world(TestTrialJob({1}));
    world.Pass();
    TrialRun& run = world.run(world.Active().front());
    run.child->phase = phase;
    run.is_log_awaited = true;
    world.Pass();
    EXPECT_THAT(world.Active(), SizeIs(1)) << phase;

    run.speed = Seen(100, 3);
    run.speed->counts.out_of_memory = 1;
    run.is_log_awaited = false;
    world.Pass();

    const bool has_failed = phase == std::string_view("Failed");
    EXPECT_EQ(world.TrialOf(1)->reason, has_failed ? TrialReason::kOutOfMemory : TrialReason::kWindowEnded);
  }
}

TEST(PlanTrials, APreciseEpochEndsNoTrialWhoseSamplesAreNotKnownYet) {
  TrialWorld world(TestTrialJob({1, 2}));
  world.Pass();
  world.now = 10;
  world.run(world.Active().front()).speed = Seen(100, 10);
  world.Pass();
  world.Pass();
  ASSERT_EQ(world.status().throughput_unit, api::ThroughputUnit::kSamplesPerSecond);
  ASSERT_EQ(world.Active().size(), 1u);
  const std::string second = world.Active().front();
  SpeedObservation seen = Seen(200, 10);
  seen.throughput->steady.half_width_seconds = std::numeric_limits<double>::infinity();
  world.now = 20;
  world.run(second).speed = seen;
  world.Pass();

  seen.epoch = Seen(1, 10).throughput;
  seen.epoch->measure = Measure::kEpoch;
  world.run(second).speed = seen;
  world.Pass();

  EXPECT_EQ(world.TrialOf(2)->phase, TrialPhase::kWarming);
}

TEST(PlanTrials, WhatIsWrongWithTheSpecIsSaidBeforeAnyTrialStarts) {
  struct Case {
    std::function<void(TrialWorld&)> happens;
    const char* reason;
  };
  const Case cases[] = {
      {[](TrialWorld& world) { world.view().pattern_error = "missing )"; }, "InvalidPattern"},
      {[](TrialWorld& world) { world.view().workload.reset(); }, "JobNotFound"},
      {[](TrialWorld& world) { world.view().workload->gpus_per_worker = 3; }, "InvalidSpace"},
      {[](TrialWorld& world) { world.view().source_error = "no answer"; }, "SourceUnreachable"},
  };
  for (const Case& c : cases) {
    TrialWorld world;
    c.happens(world);
    EXPECT_THAT(world.Pass().start, IsEmpty()) << c.reason;
    EXPECT_EQ(world.ReadyReason(), c.reason);
    EXPECT_TRUE(kube::IsConditionTrue(world.status().conditions, "Stalled")) << c.reason;
  }
}

TEST(PlanTrials, ABudgetOfZeroRunsNothingAndSaysSo) {
  for (const bool of_gpus : {true, false}) {
    api::TrialJob job = TestTrialJob();
    (of_gpus ? job.spec.budget.gpu_seconds : job.spec.budget.wall_seconds) = 0;
    TrialWorld world(job);
    EXPECT_THAT(world.Pass().start, IsEmpty());
    EXPECT_EQ(world.ReadyReason(), "BudgetSpent");
    EXPECT_EQ(world.status().phase, TrialJobPhase::kFailed);
    EXPECT_EQ(world.status().progress, "0/0");
  }
}

TEST(PlanTrials, ATrialKeepsItsNodesUntilItIsTriedAgain) {
  TrialWorld world(TestTrialJob({4}));
  world.Pass();
  const std::string name = world.Active().at(0);
  world.run(name).pods.nodes = {"n1", "n2"};
  world.Pass();
  EXPECT_EQ(world.status().trials[0].config.nodes, 2);
  world.run(name).pods.nodes = {"n1"};  // As they go.
  world.Pass();
  EXPECT_EQ(world.status().trials[0].config.nodes, 2);
  EXPECT_EQ(world.status().trials.size(), 1U);

  world.job().spec.suspend = true;
  world.Pass();
  EXPECT_EQ(world.status().trials[0].config.nodes, 0);
}

TEST(PlanTrials, WithABudgetOfZeroWhatIsKnownIsTheResult) {
  api::TrialJob job = TestTrialJob({1, 2});
  job.spec.budget.gpu_seconds = 0;
  TrialWorld world(job);
  api::Measurement measured;
  measured.throughput = "100";
  world.view().known = {{{"", 1, 0, 0}, measured, api::ThroughputUnit::kSamplesPerSecond, 60}};

  world.Pass();

  EXPECT_EQ(world.status().phase, TrialJobPhase::kSucceeded);
  EXPECT_EQ(world.TrialOf(1)->reason, TrialReason::kFromCache);
  EXPECT_EQ(world.status().saved_by_cache.trials, 1);
  EXPECT_EQ(world.status().spent.gpu_seconds, 0);
}

TEST(PlanTrials, SaysWhenItCountedAndThatAloneChangesNothing) {
  TrialWorld world(TestTrialJob({1}));
  world.Pass();
  EXPECT_EQ(world.status().spent.time, testing::At(0));
  world.now = 5;
  world.Pass();
  EXPECT_EQ(world.status().spent.gpu_seconds, 5);
  EXPECT_EQ(world.status().spent.time, testing::At(5));

  world.run(world.Active().front()).held_for = std::chrono::seconds(5);
  world.now = 10;
  const api::TrialJobStatus before = world.status();
  EXPECT_EQ(world.Pass().status, before);
}

// What is spent, by the clock of the pods, with trials that never get measured.
TEST(PlanTrials, SpendsNoMoreThanTheBudgetAndOnePoll) {
  for (int seed = 0; seed < 200; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    api::TrialJob job = TestTrialJob({1, 2, 4, 8, 16});
    job.spec.strategy.parallelism = draw(1, 4);
    job.spec.budget.gpu_seconds = draw(0, 4000);
    job.spec.budget.per_trial_seconds = draw(1, 400);
    TrialWorld world(job);
    world.EndsAfter(kTrialGraceSeconds);
    int most_gpus = 0;
    for (int i = 0; i < 3000 && !world.status().completion_time; ++i) {
      const TrialPlan plan = world.Pass();
      int gpus = 0;
      for (const std::string& name : world.Active()) gpus += world.run(name).pods.holding;
      most_gpus = std::max(most_gpus, gpus);
      world.Wait(draw(1, static_cast<int>(kPoll.count())));
      if (draw(0, 9) == 0 && !world.Active().empty()) world.run(world.Active().front()).speed = Seen(100, 20);
    }
    EXPECT_TRUE(world.status().completion_time) << "seed " << seed;
    EXPECT_LE(world.status().spent.gpu_seconds, *job.spec.budget.gpu_seconds + most_gpus * kPoll.count())
        << "seed " << seed;
  }
}

TEST(PlanTrials, SuspendStopsAndResumeStartsTheSameTrialsAgain) {
  TrialWorld world(TestTrialJob({2}));
  world.Pass();
  world.now = 10;
  world.job().spec.suspend = true;
  const TrialPlan stopped = world.Pass();
  EXPECT_THAT(stopped.end, SizeIs(1));
  EXPECT_EQ(world.status().phase, TrialJobPhase::kSuspended);
  EXPECT_EQ(world.TrialOf(2)->phase, TrialPhase::kPending);
  EXPECT_EQ(world.TrialOf(2)->gpu_seconds, 20);
  world.now = 1000;
  world.job().spec.suspend = false;
  const TrialPlan resumed = world.Pass();
  ASSERT_THAT(resumed.start, SizeIs(1));
  EXPECT_EQ(resumed.start[0].spent_before, 20);
  world.now = 1005;
  world.Pass();
  EXPECT_EQ(world.TrialOf(2)->gpu_seconds, 30);
  EXPECT_LE(world.status().spent.wall_seconds, 16);  // Without the time between.
}

TEST(PlanTrials, IdleOnlyTrialsGoWhenOthersWaitAndComeBack) {
  api::TrialJob job = TestTrialJob({2});
  job.spec.idle_only = true;
  TrialWorld world(job);
  world.Pass();
  world.view().others_wait = true;
  EXPECT_THAT(world.Pass().end, SizeIs(1));
  EXPECT_EQ(world.TrialOf(2)->reason, TrialReason::kPreempted);
  EXPECT_EQ(world.ReadyReason(), "WaitingForIdle");
  EXPECT_EQ(world.status().phase, TrialJobPhase::kWaiting);
  world.view().others_wait = false;
  EXPECT_THAT(world.Pass().start, SizeIs(1));
}

TEST(PlanTrials, ATrialThatAnEarlierProcessBeganIsNotBegunTwice) {
  TrialWorld world(TestTrialJob({2}));
  world.StartsSlowly();
  const TrialPlan first = world.Pass();
  EXPECT_THAT(world.Pass().start, IsEmpty());
  // It died before it had made the job.
  world.run(first.start[0].name) = {};
  const TrialPlan again = world.Pass();
  ASSERT_THAT(again.start, SizeIs(1));
  EXPECT_EQ(again.start[0].name, first.start[0].name);
}

TEST(PlanTrials, AForeignJobOfThatNameIsLeftAlone) {
  TrialWorld world(TestTrialJob({2}));
  const TrialPlan first = world.Pass();
  world.run(first.start[0].name) = {};
  world.run(first.start[0].name).child = TrialChild{"other", false, false, false, "Running", "", "", {}, 1, 0};
  const TrialPlan plan = world.Pass();
  EXPECT_EQ(world.ReadyReason(), "NameTaken");
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_THAT(plan.start, IsEmpty());
}

TEST(PlanTrials, ApplySetsTheKneeOnce) {
  api::TrialJob job = TestTrialJob({1, 2, 4, 8});
  job.spec.workload.job_template.reset();
  job.spec.workload.job_ref = api::JobRef{"bert"};
  job.spec.apply = api::ApplyPolicy::kApply;
  TrialWorld world(job);
  int applied = 0;
  for (int i = 0; i < 100; ++i) {
    const TrialPlan plan = world.Pass();
    if (plan.apply_replicas) {
      ++applied;
      EXPECT_EQ(*plan.apply_replicas, 4);
    }
    world.now += 10;
    for (const std::string& name : world.Active()) {
      for (const api::Trial& trial : world.status().trials) {
        if (trial.name == name) world.run(name).speed = Seen(Scaling(trial.config), 20);
      }
    }
  }
  EXPECT_EQ(applied, 1);
}

TEST(PlanTrials, APassThatFindsNothingNewChangesNothing) {
  TrialWorld world(TestTrialJob({1, 2}));
  world.RunAll(Scaling);
  const api::TrialJobStatus ended = world.status();
  world.now += 1000;
  const TrialPlan plan = world.Pass();
  EXPECT_EQ(plan.status, ended);
  EXPECT_FALSE(plan.is_urgent);
  EXPECT_THAT(plan.events, IsEmpty());
}

TEST(PlanTrials, AnEndedOneStaysEndedWhenTheClusterGrowsAndOpensWithANewSpec) {
  TrialWorld world(TestTrialJob({1, 16}));
  world.view().nodes[""] = {8, 8};
  world.RunAll(Scaling);
  ASSERT_EQ(world.status().phase, TrialJobPhase::kSucceeded);
  const std::int64_t wall = world.status().spent.wall_seconds;
  world.view().nodes[""] = {16, 8};
  world.now += 1000;
  EXPECT_THAT(world.Pass().start, IsEmpty());

  world.job().metadata.generation = 2;
  EXPECT_THAT(world.Pass().start, SizeIs(1));
  EXPECT_EQ(world.status().spent.wall_seconds, wall);
  EXPECT_FALSE(world.status().completion_time);
  EXPECT_FALSE(kube::FindCondition(world.status().conditions, "Complete"));
  EXPECT_EQ(world.TrialOf(1)->phase, TrialPhase::kSucceeded);  // Not run again.
}

TEST(PlanTrials, OneThatWaitsForRoomSaysSoAndEndsWithTheWallBudget) {
  api::TrialJob job = TestTrialJob({2});
  job.spec.budget.wall_seconds = 100;
  TrialWorld world(job);
  world.StartsSlowly();
  const std::string name = world.Pass().start.at(0).name;
  world.run(name).child->phase = "Waiting";
  world.run(name).child->message = "waiting for room for 2 workers";
  world.now = 50;
  world.Pass();
  EXPECT_EQ(world.status().phase, TrialJobPhase::kWaiting);
  EXPECT_EQ(world.ReadyReason(), "WaitingForRoom");
  EXPECT_THAT(world.ReadyMessage(), HasSubstr("waiting for room for 2 workers"));
  world.now = 100;
  EXPECT_THAT(world.Pass().end, SizeIs(1));
  world.Pass();
  EXPECT_EQ(world.TrialOf(2)->reason, TrialReason::kBudgetSpent);
  EXPECT_EQ(world.ReadyReason(), "BudgetSpent");
}

TEST(PlanTrials, KeptJobsHoldNothing) {
  api::TrialJob job = TestTrialJob({1});
  job.spec.cleanup = api::TrialCleanup::kNever;
  TrialWorld world(job);
  world.Pass();
  const std::string name = world.Active().front();
  world.now = 20;
  world.run(name).speed = Seen(100, 20);
  const TrialPlan plan = world.Pass();
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_THAT(plan.suspend, ::testing::ElementsAre(name));
}

TEST(PlanTrials, ATrialJobOnItsWayOutIsLeftAlone) {
  TrialWorld world;
  world.job().metadata.deletion_timestamp = testing::At(0);
  EXPECT_TRUE(world.Pass().is_ignored);
}

TEST(SliceFor, IsWhatTheBudgetHasOrNothing) {
  api::TrialBudget budget;
  budget.per_trial_seconds = 600;
  struct Case {
    BudgetState left;
    int gpus;
    std::optional<std::int64_t> want;
  };
  for (const Case& c : {Case{{}, 8, 600}, Case{{800, {}}, 8, 97}, Case{{{}, 100}, 8, 100}, Case{{100, {}}, 8, {}},
                        Case{{0, {}}, 1, {}}, Case{{{}, 0}, 1, {}}, Case{{-5, {}}, 1, {}}}) {
    EXPECT_EQ(SliceFor(budget, c.left, c.gpus), c.want) << c.left.gpu_seconds.value_or(-1) << " for " << c.gpus;
  }
}

}  // namespace
}  // namespace grus
