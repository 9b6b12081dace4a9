// SPDX-License-Identifier: Apache-2.0
// Progress that trainings push by annotations.
#include "tests/controllers/profiler/progress_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kJobs;

using ProgressPushTest = testing::ProgressFixture;

TEST_F(ProgressPushTest, SaysHowFarATrainingIsAndWhenItIsDoneWithoutItsLog) {
  AddJob("train");
  StartCaches();
  PassNow("train");
  for (int step = 10; step <= 100; step += 10) {
    Push("train", {{"step", std::to_string(step)}, {"total-steps", "400"}, {"epoch", "1"}, {"total-epochs", "3"}});
    clock_.Advance(60s);
  }
  const api::Progress progress = Of("train");
  EXPECT_EQ(progress.summary, "25%");
  EXPECT_EQ(progress.step, 100);
  EXPECT_EQ(progress.total_steps, 400);
  EXPECT_EQ(progress.epoch, 1);
  EXPECT_EQ(progress.total_epochs, 3);
  ASSERT_TRUE(progress.eta && progress.eta_earliest && progress.eta_latest && progress.time);
  EXPECT_NEAR(std::chrono::duration<double>(progress.eta->value - progress.time->value).count(), 1800, 60);
  EXPECT_EQ(wire_.logs, 0);
  EXPECT_THAT(watch_.Steps(), ElementsAre(::testing::Pair(kube::ObjectKey{"team-a", "train"}, 100)));
}

TEST_F(ProgressPushTest, GoesBeforeWhatTheLogSays) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 20, 400, 10);
  EXPECT_EQ(Of("train").summary, "5%");
  const int logs = wire_.logs;
  Push("train", {{"step", "200"}, {"total-steps", "400"}});
  EXPECT_EQ(Of("train").summary, "50%");
  for (int minute = 0; minute < 9; ++minute) {
    clock_.Advance(60s);
    Print("train", "step 30/400 loss 2.3");
    EXPECT_EQ(PassNow("train"), ProgressWatch::kEvery);
  }
  EXPECT_EQ(Of("train").summary, "50%");
  EXPECT_EQ(wire_.logs, logs) << "no log is read while pushes come";
}

TEST_F(ProgressPushTest, WhenPushesStayOutTheLogCountsAgainIfItGoesOn) {
  for (const char* job : {"speaks", "silent"}) {
    AddJob(job);
    Print(job, "step 10/400 loss 2.3");
  }
  StartCaches();
  for (const char* job : {"speaks", "silent"}) {
    PassNow(job);
    Push(job, {{"step", "200"}, {"total-steps", "400"}});
  }
  clock_.Advance(10min);
  Print("speaks", "step 280/400 loss 2.3");
  for (const char* job : {"speaks", "silent"}) Pass(job);
  EXPECT_EQ(wire_.logs, 2);
  EXPECT_EQ(Of("speaks").summary, "70%");
  EXPECT_EQ(Of("silent").summary, "50%") << "its log has said nothing since";
  Push("speaks", {{"step", "300"}});
  EXPECT_EQ(Of("speaks").summary, "75%") << "and a push counts at once again";
}

TEST_F(ProgressPushTest, MayStandOnTheLaunchersPod) {
  AddJob("train");
  StartCaches();
  PassNow("train");
  Annotate("pods", "train-launcher", {{"epoch", "3"}, {"total-epochs", "10"}});
  PassNow("train");
  EXPECT_EQ(Of("train").summary, "30%");
  EXPECT_EQ(Of("train").epoch, 3);
  EXPECT_FALSE(Of("train").step);
}

TEST_F(ProgressPushTest, WhatCannotBeTrueIsRefusedWithOneEvent) {
  AddJob("train");
  StartCaches();
  PassNow("train");
  Push("train", {{"step", "100"}, {"total-steps", "400"}});
  const api::Progress before = Of("train");
  for (const char* step : {"-1", "NaN", "soon", "-1"}) {
    clock_.Advance(60s);
    Push("train", {{"step", step}});
    EXPECT_EQ(Of("train"), before) << step;
  }
  EXPECT_THAT(Events(), ElementsAre("ProgressRefused: annotation ai.centauruscloud.io/step is \"-1\", which is no "
                                    "count: write a number from 0, without a unit; the progress stays as it was"));
}

TEST_F(ProgressPushTest, AStepBeyondTheTotalIsRefusedUntilTheTotalGrows) {
  AddJob("train");
  StartCaches();
  PassNow("train");
  Push("train", {{"step", "390"}, {"total-steps", "400"}});
  Push("train", {{"step", "410"}});
  EXPECT_EQ(Of("train").summary, "97%");
  EXPECT_EQ(Of("train").step, 390);
  EXPECT_THAT(Events(), ElementsAre(HasSubstr("step is \"410\", above ai.centauruscloud.io/total-steps, \"400\"")));
  Push("train", {{"total-steps", "820"}});
  EXPECT_EQ(Of("train").summary, "50%");
  EXPECT_EQ(Of("train").step, 410);
}

TEST_F(ProgressPushTest, ATotalThatShrinksIsTheNewTotal) {
  AddJob("train");
  StartCaches();
  PassNow("train");
  for (int step = 10; step <= 100; step += 10) {
    clock_.Advance(60s);
    Push("train", {{"step", std::to_string(step)}, {"total-steps", "400"}});
  }
  Push("train", {{"total-steps", "200"}});
  EXPECT_EQ(Of("train").summary, "50%");
  EXPECT_EQ(Of("train").total_steps, 200);
  const api::Progress progress = Of("train");
  EXPECT_NEAR(std::chrono::duration<double>(progress.eta->value - progress.time->value).count(), 600, 30);
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(ProgressPushTest, AnEndInYearsIsNotSaid) {
  AddJob("train");
  StartCaches();
  PassNow("train");
  for (int step = 1; step <= 10; ++step) {
    clock_.Advance(60s);
    Push("train", {{"step", std::to_string(step)}, {"total-steps", "999999999999999"}});
  }
  EXPECT_EQ(Of("train").summary, "0%");
  EXPECT_FALSE(Of("train").eta || Of("train").eta_earliest || Of("train").eta_latest);
}

TEST_F(ProgressPushTest, AChangeOfSizeChangesTheEndAtOnce) {
  AddJob("train");
  AddProfile("train", {{1, 100}, {2, 190}, {4, 342}, {8, 560}});
  StartCaches();
  PassNow("train");
  for (int step = 10; step <= 200; step += 10) {
    clock_.Advance(60s);
    Push("train", {{"step", std::to_string(step)}, {"total-steps", "400"}});
  }
  const auto left = [&] {
    return std::chrono::duration<double>(Of("train").eta->value - Of("train").time->value).count();
  };
  const double before = left();
  Run("train", 4);
  PassNow("train");
  EXPECT_NEAR(before / left(), 1.8, 0.1);
}

TEST_F(ProgressPushTest, WritesOnlyWhatAReaderWouldNotice) {
  AddJob("train");
  StartCaches();
  PassNow("train");
  for (int second = 0; second < 600; ++second) {  // A push each second, a percent in ten minutes.
    clock_.Advance(1s);
    Push("train", {{"step", std::to_string(second)}, {"total-steps", "60000"}});
  }
  EXPECT_LE(wire_.writes, 12);
  EXPECT_GE(wire_.writes, 2);
}

TEST_F(ProgressPushTest, AChangeOfThemWakesTheJobAtOnceAndNothingElseOfThePodDoes) {
  AddJob("train");
  watch_.FeedQueue(queue_);
  StartCaches();
  Settle();
  const auto before = queue_.counts().adds;
  Annotate("pods", "train-launcher", {{"step", "3"}});
  Settle();
  EXPECT_EQ(queue_.counts().adds, before + 1);
  Annotate("pods", "train-launcher", {{"note", "3"}});
  Settle();
  EXPECT_EQ(queue_.counts().adds, before + 1);
  const auto key = queue_.Get();
  ASSERT_TRUE(key);
  queue_.Done(key->key);
  Annotate(kJobs, "train", {{"step", "4"}});
  Settle();
  EXPECT_EQ(queue_.counts().adds, before + 2);
}

}  // namespace
}  // namespace grus
