// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_eta.h"

#include <gmock/gmock.h>

#include "controllers/trial/trial_plan.h"
#include "tests/controllers/trial/trial_world.h"

namespace grus {
namespace {

using api::TrialJobPhase;
using api::TrialPhase;
using testing::At;
using testing::Seen;
using testing::TestTrialJob;
using testing::TrialWorld;

double Scaling(const api::TrialConfig& config) { return 100.0 * config.gpus; }

// Trials that take 60 s of their 600.
class TrialEta : public ::testing::Test {
 protected:
  static api::TrialJob Job(std::int32_t parallelism = 1) {
    api::TrialJob job = TestTrialJob({1, 2, 4, 8});
    job.spec.strategy.parallelism = parallelism;
    job.spec.budget.per_trial_seconds = 600;
    return job;
  }
  // The seconds from the start until then; -1: not said.
  static std::int64_t SecondsOf(const std::optional<kube::Time>& time) {
    return time ? std::chrono::floor<std::chrono::seconds>(time->value - At(0).value).count() : -1;
  }
  static std::int64_t Eta(TrialWorld& world) { return SecondsOf(world.status().eta); }
  static std::int64_t Latest(TrialWorld& world) { return SecondsOf(world.status().eta_latest); }
  static void RunTrials(TrialWorld& world, int count) {
    for (int i = 0; i < count; ++i) {
      const auto names = world.Active();
      ASSERT_FALSE(names.empty());
      world.now += 60;
      for (const std::string& name : names) {
        for (const api::Trial& trial : world.status().trials) {
          if (trial.name == name) world.run(name).speed = Seen(Scaling(trial.config), 60);
        }
      }
      world.Pass();
      world.Pass();  // The next ones start.
    }
  }
};

TEST_F(TrialEta, BeforeAnyTrialHasEndedOnlyTheLatestEndIsSaid) {
  TrialWorld world(Job());
  world.Pass();
  EXPECT_EQ(Eta(world), -1);
  EXPECT_EQ(Latest(world), 4 * (600 + 2)) << "four slices, each with its hand-over";
  EXPECT_EQ(world.status().progress, "0/4");
}

TEST_F(TrialEta, TheOthersTakeAsLongAsThoseThatHaveEnded) {
  TrialWorld world(Job());
  world.Pass();
  RunTrials(world, 1);
  EXPECT_EQ(world.status().progress, "1/4");
  EXPECT_NEAR(static_cast<double>(Eta(world)), 60 + 3 * 62, 5);
  EXPECT_NEAR(static_cast<double>(Latest(world)), 60 + 3 * 602, 5);
  RunTrials(world, 2);
  EXPECT_NEAR(static_cast<double>(Eta(world)), 180 + 62, 35);
  EXPECT_GE(Latest(world), Eta(world));
}

TEST_F(TrialEta, TrialsSideBySideShareTheTime) {
  TrialWorld one(Job(1)), two(Job(2)), four(Job(4));
  for (TrialWorld* world : {&one, &two, &four}) world->Pass();
  EXPECT_EQ(Latest(one), 4 * 602);
  EXPECT_EQ(Latest(two), 2 * 602);
  EXPECT_EQ(Latest(four), 602);
}

TEST_F(TrialEta, ALaneThatIsFreeIsUsed) {
  TrialWorld world(Job(4));
  world.Pass();
  for (api::Trial& trial : world.status().trials) {
    if (trial.name != world.Active().front()) trial.phase = TrialPhase::kPending;
  }
  const TrialView view = world.view();
  EXPECT_EQ(SecondsOf(EndOfTrials(view, world.status()).latest), 2 + 600 + 2) << "three start once GPUs are free";
}

TEST_F(TrialEta, NeverBeyondTheBudget) {
  api::TrialJob by_wall = Job(), by_gpus = Job();
  by_wall.spec.budget.wall_seconds = 900;
  by_gpus.spec.budget.gpu_seconds = 1200;
  TrialWorld wall(by_wall), gpus(by_gpus);
  wall.Pass();
  gpus.Pass();
  EXPECT_EQ(Latest(wall), 902);
  EXPECT_EQ(Latest(gpus), 1202) << "on one GPU";
}

TEST_F(TrialEta, ATrialThatTakesLongerMovesTheEnd) {
  TrialWorld world(Job());
  world.Pass();
  RunTrials(world, 1);
  const std::int64_t before = Eta(world);
  const std::string second = world.Active().front();
  world.now += 200;  // 140 more than the first one took.
  world.Pass();
  ASSERT_THAT(world.Active(), ::testing::ElementsAre(second));
  const std::int64_t after = Eta(world);
  world.now += 5;
  world.Pass();
  EXPECT_EQ(Eta(world), after) << "nobody would notice five seconds";
  world.now += 25;
  world.Pass();
  EXPECT_EQ(Eta(world), after + 30);
  EXPECT_NEAR(static_cast<double>(after - before), 140, 10);
}

TEST_F(TrialEta, OneTrialThatWaitedLongDoesNotSpoilTheEnd) {
  TrialWorld world(Job());
  world.Pass();
  RunTrials(world, 3);
  for (api::Trial& trial : world.status().trials) {
    if (trial.phase == TrialPhase::kSucceeded && trial.config.gpus == 1) trial.start_time = At(-100'000);
  }
  world.now += 1;
  world.Pass();
  EXPECT_LT(Eta(world), world.now + 120);
}

TEST_F(TrialEta, FailedTrialsSayNothingOfHowLongOthersTake) {
  TrialWorld failed(Job()), mixed(Job());
  for (TrialWorld* world : {&failed, &mixed}) world->Pass();
  RunTrials(failed, 1);
  RunTrials(mixed, 2);
  for (TrialWorld* world : {&failed, &mixed}) {  // The first one ran out of memory after 8 s.
    const auto first = std::ranges::find(world->status().trials, TrialPhase::kSucceeded, &api::Trial::phase);
    ASSERT_NE(first, world->status().trials.end());
    first->phase = TrialPhase::kFailed;
    first->end_time = kube::Time{first->start_time->value + std::chrono::seconds(8)};
  }
  EXPECT_EQ(SecondsOf(EndOfTrials(failed.view(), failed.status()).expected), -1) << "nobody knows yet";
  EXPECT_NEAR(static_cast<double>(SecondsOf(EndOfTrials(mixed.view(), mixed.status()).expected)), 120 + 2 * 62, 5);
}

TEST_F(TrialEta, ThereIsNoneWhileNothingRuns) {
  struct Case {
    const char* why;
    void (*stop)(TrialWorld&);
  };
  for (const Case& c : {
           Case{"suspended", [](TrialWorld& world) { world.job().spec.suspend = true; }},
           Case{"its workload is gone", [](TrialWorld& world) { world.view().workload.reset(); }},
           Case{"it waits for room",
                [](TrialWorld& world) {
                  TrialRun& run = world.run(world.Active().front());
                  run.pods = {};
                  run.child->phase = "Waiting";
                  run.child->message = "no room";
                }},
       }) {
    TrialWorld world(Job());
    world.Pass();
    RunTrials(world, 1);
    ASSERT_GE(Eta(world), 0) << c.why;
    c.stop(world);
    world.Pass();
    ASSERT_NE(world.status().phase, TrialJobPhase::kRunning) << c.why;
    EXPECT_EQ(Eta(world), -1) << c.why;
    EXPECT_EQ(Latest(world), -1) << c.why;
  }
}

TEST_F(TrialEta, ThereIsNoneOnceItIsDone) {
  TrialWorld world(Job());
  world.RunAll(Scaling);
  EXPECT_EQ(world.status().phase, TrialJobPhase::kSucceeded);
  EXPECT_EQ(Eta(world), -1);
  EXPECT_EQ(Latest(world), -1);
}

TEST_F(TrialEta, TrialsOfTheCacheTookNoTime) {
  TrialWorld world(Job());
  for (const std::int32_t gpus : {1, 2}) {
    world.view().known.push_back({{"", gpus, 1, 0}, {}, api::ThroughputUnit::kSamplesPerSecond, 60});
    world.view().known.back().measured.throughput = "100";
    world.view().known.back().measured.step_milliseconds = "100";
  }
  world.Pass();
  ASSERT_EQ(world.status().progress, "2/4");
  EXPECT_EQ(Eta(world), -1);
  EXPECT_EQ(Latest(world), 2 * 602);
}

// A pass each five seconds over a TrialJob whose trials print nothing new most of the time.
TEST_F(TrialEta, NoStatusIsWrittenForItAlone) {
  TrialWorld world(Job());
  int changes = 0, of_eta = 0;
  for (int i = 0; i < 200 && !world.status().completion_time; ++i) {
    const api::TrialJobStatus before = world.status();
    world.Pass();
    api::TrialJobStatus without = world.status();
    without.eta = before.eta;
    without.eta_latest = before.eta_latest;
    changes += before == world.status() ? 0 : 1;
    of_eta += before == world.status() || !(before == without) ? 0 : 1;
    world.now += 5;
    if (i % 13 != 12) continue;
    for (const std::string& name : world.Active()) {
      for (const api::Trial& trial : world.status().trials) {
        if (trial.name == name) world.run(name).speed = Seen(Scaling(trial.config), 60);
      }
    }
  }
  EXPECT_TRUE(world.status().completion_time);
  EXPECT_GT(changes, 4);
  EXPECT_EQ(of_eta, 0);
}

TEST_F(TrialEta, ATrialThatHasNotStartedYetWritesNothing) {
  TrialWorld world(Job());
  world.StartsSlowly();
  world.Pass();
  world.now += 1;
  world.Pass();
  const api::TrialJobStatus before = world.status();
  ASSERT_EQ(before.phase, TrialJobPhase::kRunning);
  for (int i = 0; i < 4; ++i) {
    world.now += 5;
    world.Pass();
  }
  ASSERT_EQ(world.status().phase, TrialJobPhase::kRunning);
  world.now += 60;
  world.Pass();
  EXPECT_EQ(world.status(), before) << "its latest end is a minute later";
}

}  // namespace
}  // namespace grus
