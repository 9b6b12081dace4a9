// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/progress_watch.h"

#include "tests/controllers/profiler/progress_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using testing::kJobs;

using ProgressWatchTest = testing::ProgressFixture;

TEST_F(ProgressWatchTest, SaysHowFarATrainingIsAndWhenItIsDone) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 100, 400, 10);
  const api::Progress progress = Of("train");
  EXPECT_EQ(progress.summary, "25%");
  EXPECT_EQ(progress.percent, 25);
  EXPECT_EQ(progress.step, 100);
  EXPECT_EQ(progress.total_steps, 400);
  ASSERT_TRUE(progress.eta && progress.eta_earliest && progress.eta_latest && progress.time);
  EXPECT_NEAR(std::chrono::duration<double>(progress.eta->value - progress.time->value).count(), 1800, 120);
  EXPECT_LT(progress.eta_earliest->value, progress.eta->value);
  EXPECT_GT(progress.eta_latest->value, progress.eta->value);
}

TEST_F(ProgressWatchTest, KnowsTheStepOfEachLookForThreeMinutes) {
  AddJob("train");
  StartCaches();
  for (const char* step : {"10", "11"}) {
    Print("train", std::string("step ") + step + "/100000 loss 2.3");
    Pass("train");
    clock_.Advance(60s);
  }
  EXPECT_THAT(watch_.Steps(), ::testing::ElementsAre(::testing::Pair(kube::ObjectKey{"team-a", "train"}, 11)));
  clock_.Advance(121s);
  EXPECT_THAT(watch_.Steps(), ::testing::IsEmpty()) << "nobody knows whether it goes on";
}

TEST_F(ProgressWatchTest, AStepThatStandsStillStaysSoThatAHangIsSeen) {
  AddJob("train");
  StartCaches();
  Print("train", "step 10/100000 loss 2.3");
  for (int minute = 0; minute < 10; ++minute) {
    Pass("train");
    clock_.Advance(60s);
  }
  EXPECT_THAT(watch_.Steps(), ::testing::ElementsAre(::testing::Pair(kube::ObjectKey{"team-a", "train"}, 10)));
}

TEST_F(ProgressWatchTest, WritesOnlyWhatAReaderWouldNotice) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 50, 400, 10);
  const int writes = wire_.writes;
  for (int i = 0; i < 10; ++i) {
    Pass("train");
    clock_.Advance(60s);
  }
  EXPECT_EQ(wire_.writes, writes) << "it prints nothing";
  EXPECT_EQ(wire_.logs, 15);
}

TEST_F(ProgressWatchTest, AnEndThatIsNotKnownIsNotSaid) {
  AddJob("train");
  StartCaches();
  for (int step = 1; step <= 10; ++step) {
    Print("train", "step " + std::to_string(step) + " loss 2.3 1.2 s/step");
    Pass("train");
    clock_.Advance(60s);
  }
  EXPECT_EQ(Of("train").summary, "step 9") << "told again when it is a fifth higher";
  EXPECT_FALSE(Of("train").percent);
  EXPECT_FALSE(Of("train").eta);
}

TEST_F(ProgressWatchTest, TheCommandMaySayHowManyEpochsThereAre) {
  AddJob("train", R"(["python","train.py","--epochs","4"])");
  StartCaches();
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int step = 20; step <= 100; step += 20) {
      Print("train", "Epoch: [" + std::to_string(epoch) + "][" + std::to_string(step) + "/100] Time 0.1");
      Pass("train");
      clock_.Advance(60s);
    }
  }
  EXPECT_EQ(Of("train").percent, 50);
  EXPECT_TRUE(Of("train").eta);
}

TEST_F(ProgressWatchTest, AJobThatSucceededIsWholeAndOneThatStandsStillHasNoEnd) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 100, 400, 10);
  SetPhase("train", "Waiting");
  Pass("train");
  EXPECT_EQ(Of("train").summary, "25%");
  EXPECT_FALSE(Of("train").eta);
  EXPECT_FALSE(Of("train").eta_latest);
  SetPhase("train", "Succeeded");
  Pass("train");
  EXPECT_EQ(Of("train").summary, "100%");
  EXPECT_EQ(Of("train").percent, 100);
}

TEST_F(ProgressWatchTest, ANewLauncherCountsAnew) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 100, 400, 10);
  ASSERT_TRUE(server_.Delete("pods", {"team-a", "train-launcher"}));
  AddLauncher("train", "again");
  Print("train", "step 20/400 loss 2.3", "again");
  Pass("train");
  EXPECT_EQ(Of("train").summary, "5%");
  EXPECT_FALSE(Of("train").eta);
}

TEST_F(ProgressWatchTest, ALogThatCannotBeReadChangesNothing) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 100, 400, 10);
  const api::Progress before = Of("train");
  wire_.are_logs_refused = true;
  Train("train", 110, 200, 400, 10);
  EXPECT_EQ(Of("train"), before);
  wire_.are_logs_refused = false;
  Train("train", 210, 220, 400, 10);
  EXPECT_EQ(Of("train").summary, "55%");
}

double SecondsBetween(const std::optional<kube::Time>& from, const std::optional<kube::Time>& to) {
  return std::chrono::duration<double>(to.value().value - from.value().value).count();
}

TEST_F(ProgressWatchTest, AChangeOfSizeChangesTheEndWithoutALookAtTheLog) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 200, 400, 10);
  Print("train", "step 210/400 loss 2.3");
  Pass("train");
  const api::Progress before = Of("train");
  const int logs = wire_.logs, writes = wire_.writes;
  clock_.Advance(1s);
  Run("train", 4);
  const kube::Duration next = PassNow("train");
  const api::Progress after = Of("train");
  ASSERT_TRUE(before.eta && after.eta);
  EXPECT_EQ(wire_.logs, logs);
  EXPECT_EQ(wire_.writes, writes + 1);
  EXPECT_EQ(next, ProgressWatch::kEvery - 1s) << "the log is looked at when it was due";
  EXPECT_LT(after.eta->value, before.eta->value - 3min) << "it may be twice as fast now";
  EXPECT_LT(after.eta_earliest->value, before.eta_earliest->value - 5min);
  EXPECT_GE(after.eta_latest->value, before.eta_latest->value - 1s) << "or not";
  PassNow("train");
  EXPECT_EQ(wire_.writes, writes + 1) << "it is said once";
}

TEST_F(ProgressWatchTest, AChangeOfSizeIsToldEvenIfTheFirstWriteFails) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 210, 400, 10);
  Pass("train");
  const api::Progress before = Of("train");
  Run("train", 4);
  Settle();
  std::stop_source stopped;
  stopped.request_stop();
  (void)watch_.Reconcile({"team-a", "train"}, stopped.get_token());
  ASSERT_EQ(Of("train").eta, before.eta);
  PassNow("train");
  EXPECT_LT(Of("train").eta->value, before.eta->value - 3min);
}

// 2 GPUs make 190 samples a second, 4 make 342: 1.8 times as many.
TEST_F(ProgressWatchTest, WithACurveTheEndMovesByIt) {
  for (const char* job : {"known", "unknown"}) AddJob(job);
  AddProfile("known", {{1, 100}, {2, 190}, {4, 342}, {8, 560}});
  StartCaches();
  std::map<std::string, api::Progress> before, after, back;
  for (const std::string job : {"known", "unknown"}) {
    Train(job, 10, 210, 400, 10);
    Pass(job);
    before[job] = Of(job);
    Run(job, 4);
    PassNow(job);
    after[job] = Of(job);
    Run(job, 2);
    PassNow(job);
    back[job] = Of(job);
  }
  const auto left = [](const api::Progress& progress) { return SecondsBetween(progress.time, progress.eta); };
  const auto width = [](const api::Progress& progress) {
    return SecondsBetween(progress.eta_earliest, progress.eta_latest);
  };
  EXPECT_NEAR(left(before["known"]) / left(after["known"]), 1.8, 0.05);
  EXPECT_NEAR(left(before["unknown"]) / left(after["unknown"]), std::sqrt(2), 0.02) << "between nothing and all";
  EXPECT_LT(width(after["known"]), 0.8 * width(after["unknown"]));
  EXPECT_NEAR(left(back["known"]), left(before["known"]), 1) << "back where its speed was seen";
}

TEST_F(ProgressWatchTest, TheProfileOfAnotherNamespaceIsNoCurve) {
  AddJob("train");
  AddProfile("train", {{1, 100}, {2, 190}, {4, 342}, {8, 560}});
  Edit("workloadprofiles.ai.centauruscloud.io", {"", "bert"},
       [](Json& profile) { profile["spec"]["workload"]["namespace"] = "team-b"; });
  StartCaches();
  Train("train", 10, 210, 400, 10);
  Pass("train");
  const api::Progress before = Of("train");
  Run("train", 4);
  PassNow("train");
  EXPECT_NEAR(SecondsBetween(before.time, before.eta) / SecondsBetween(before.time, Of("train").eta), std::sqrt(2),
              0.02);
}

TEST_F(ProgressWatchTest, AnEndInYearsIsNotSaid) {
  AddJob("train");
  StartCaches();
  Train("train", 1, 10, 10'000'000, 1);
  EXPECT_EQ(Of("train").summary, "0%");
  EXPECT_EQ(Of("train").total_steps, 10'000'000);
  EXPECT_FALSE(Of("train").eta || Of("train").eta_earliest || Of("train").eta_latest) << "19 years";
}

TEST_F(ProgressWatchTest, ATotalThatShrinksIsTheNewTotal) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 100, 1000, 10);
  ASSERT_EQ(Of("train").summary, "10%");
  for (int step = 101; step <= 200; ++step) {
    clock_.Advance(6s);
    Print("train", "step " + std::to_string(step) + "/400 loss 2.3");
    if (step % 10 == 0) Pass("train");
  }
  EXPECT_EQ(Of("train").summary, "50%");
  ASSERT_TRUE(Of("train").eta);
  EXPECT_NEAR(SecondsBetween(Of("train").time, Of("train").eta), 1200, 200) << "ten steps a minute, 200 to go";
}

TEST_F(ProgressWatchTest, WhatOthersWriteStays) {
  AddJob("train");
  Edit(
      kJobs, {"team-a", "train"}, [](Json& job) { job["status"]["progress"]["metric"] = "accuracy 0.9"; }, "status");
  StartCaches();
  Train("train", 10, 20, 400, 10);
  EXPECT_EQ(Of("train").metric, "accuracy 0.9");
  EXPECT_EQ(Of("train").summary, "5%");
  EXPECT_EQ(Live<api::ElasticHorovodJob>({"team-a", "train"})->status.replicas.ready, 2);
}

TEST_F(ProgressWatchTest, LogsOfManyJobsAreReadInTurns) {
  for (int i = 0; i < 20; ++i) AddJob("train-" + std::to_string(i));
  StartCaches();
  for (int i = 0; i < 20; ++i) (void)watch_.Reconcile({"team-a", "train-" + std::to_string(i)}, {});
  clock_.Advance(ProgressWatch::kEvery);
  std::vector<kube::Duration> waits;
  for (int i = 0; i < 20; ++i) {
    const auto action = watch_.Reconcile({"team-a", "train-" + std::to_string(i)}, {});
    ASSERT_TRUE(action && action->delay());
    waits.push_back(*action->delay());
  }
  EXPECT_EQ(wire_.logs, 1);
  EXPECT_EQ(waits.back(), 1900ms) << "ten a second, each at a time of its own";
}

}  // namespace
}  // namespace grus
