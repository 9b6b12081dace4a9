// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/progress_watch.h"

#include <gmock/gmock.h>

#include "controllers/cluster/owners.h"
#include "tests/kit/log_wire.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;

constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";

// Jobs that run, against an API server in this process; the test plays all other controllers and the kubelet.
class ProgressWatchTest : public testing::ReconcilerFixture {
 protected:
  void AddJob(const std::string& name, const std::string& command = R"(["python","train.py"])") {
    Json job = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", name, "team-a");
    job["spec"] = *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":)" + command +
                                   R"(},"workersSpec":{"image":"a"}})");
    Create(kJobs, std::move(job));
    AddLauncher(name, "launcher");
    Run(name, 2);
  }
  void AddLauncher(const std::string& job, const std::string& suffix) {
    const std::string name = job + "-" + suffix;
    Json pod = Named("v1", "Pod", name, "team-a");
    pod["metadata"]["labels"] = Json::MakeObject({{kJobNameLabel, job}, {kRoleLabel, "launcher"}});
    pod["spec"] = *kube::ParseJson(R"({"nodeName":"n1","containers":[{"name":"launcher","image":"a"}]})");
    Create("pods", std::move(pod));
    SetStatus("pods", {"team-a", name},
              R"({"phase":"Running","containerStatuses":[{"name":"launcher","state":{"running":{}}}]})");
  }
  void Run(const std::string& job, int workers) {
    Edit(
        kJobs, {"team-a", job},
        [&](Json& object) {
          object["status"]["phase"] = "Running";
          object["status"]["observedGeneration"] = 1;
          object["status"]["replicas"]["ready"] = workers;
        },
        "status");
  }
  void SetPhase(const std::string& job, const std::string& phase) {
    Edit(
        kJobs, {"team-a", job}, [&](Json& object) { object["status"]["phase"] = phase; }, "status");
  }
  void Print(const std::string& job, const std::string& text, const std::string& suffix = "launcher") {
    server_.AppendPodLog({"team-a", job + "-" + suffix}, "launcher", clock_.WallNow(), text + "\n");
  }
  // One pass, when it is due.
  void Pass(const std::string& job) {
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
      const int logs = wire_.logs;
      const auto action = watch_.Reconcile({"team-a", job}, {});
      ASSERT_TRUE(action) << action.error().message();
      if (wire_.logs > logs || !action->delay()) break;
      clock_.Advance(*action->delay());
    }
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  // A training at so many steps of `total` a minute, looked at each minute.
  void Train(const std::string& job, int from, int to, int total, int each_minute) {
    for (int step = from; step <= to; step += each_minute) {
      Print(job, "step " + std::to_string(step) + "/" + std::to_string(total) + " loss 2.3");
      Pass(job);
      clock_.Advance(60s);
    }
  }
  api::Progress Of(const std::string& job) {
    const auto live = Live<api::ElasticHorovodJob>({"team-a", job});
    return live->status.progress ? *live->status.progress : api::Progress();
  }

  kit::LogWire wire_{server_, kube::Error(kube::ErrorCode::kUnavailable, "the kubelet does not answer")};
  kube::Client wired_{wire_, nullptr, clock_};
  kube::WorkQueue queue_{clock_};
  kube::Informer& jobs_ = Cache<api::ElasticHorovodJob>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  ProgressWatch watch_{wired_, {jobs_, pods_}, clock_, log_};
};

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

TEST_F(ProgressWatchTest, AChangeOfSizeChangesTheEndAtOnce) {
  AddJob("train");
  StartCaches();
  Train("train", 10, 200, 400, 10);
  const api::Progress before = Of("train");
  Run("train", 4);
  Train("train", 210, 210, 400, 10);
  const api::Progress after = Of("train");
  ASSERT_TRUE(before.eta && after.eta);
  EXPECT_LT(after.eta->value, before.eta->value - 3min) << "it may be twice as fast now";
  EXPECT_LT(after.eta_earliest->value, before.eta_earliest->value - 5min);
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
