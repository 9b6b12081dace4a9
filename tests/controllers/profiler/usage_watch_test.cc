// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/usage_watch.h"

#include <gmock/gmock.h>

#include "tests/controllers/profiler/usage_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::HasSubstr;
using testing::kJobs;

using UsageWatchTest = testing::UsageFixture;

TEST_F(UsageWatchTest, RecordsWhatAJobUsesInTheProfileOfItsWorkload) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  AddPod("train-1", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 40}, {"train-1", 60}, {"a-stranger", 99}};
  Sweep();
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].job, "PyTorchJob/team-a/train");
  EXPECT_EQ(runs[0].gpus, 4);
  EXPECT_EQ(runs[0].gpu_seconds, 240);
  EXPECT_EQ(runs[0].gpu_type, "A100");
  EXPECT_EQ(runs[0].usage.gpu_utilization_percent, 50);
  EXPECT_EQ(runs[0].usage.max_gpu_memory_bytes, 6000LL << 20);
  EXPECT_FALSE(runs[0].end);
  EXPECT_LE(queries_, 12);
  const auto profiles = profiles_.List<api::WorkloadProfile>();
  EXPECT_EQ(profiles[0]->spec.workload.image, "train:1");
  EXPECT_EQ(profiles[0]->spec.workload.ns, "team-a");
  ASSERT_EQ(profiles[0]->spec.features.size(), 1U);
  EXPECT_EQ(profiles[0]->spec.features[0].usage.gpu_utilization_percent, 50);
}

TEST_F(UsageWatchTest, KnowsWhatJobsThatRunDidInTheLastMinute) {
  Edit("nodes", {"", "n1"}, [](Json& node) { node["metadata"]["labels"]["nvidia.com/gpu.memory"] = "81920"; });
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 80}};
  Sweep();
  utilization_ = {{"train-0", 20}};
  Sweep();
  const auto jobs = watch_.RunningJobs();
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].ref.ToString(), "PyTorchJob/team-a/train");
  EXPECT_EQ(jobs[0].use.gpus, 2);
  EXPECT_DOUBLE_EQ(jobs[0].use.utilization.value_or(0), 0.2);
  EXPECT_EQ(jobs[0].use.max_memory, 2000.0 * (1 << 20));
  EXPECT_EQ(jobs[0].use.memory, 81920.0 * (1 << 20));
  utilization_.clear();
  Sweep();
  EXPECT_FALSE(watch_.RunningJobs()[0].use.utilization) << "what no source tells is missing";
  Bury("train-0");
  Sweep();
  EXPECT_THAT(watch_.RunningJobs(), ::testing::IsEmpty());
}

TEST_F(UsageWatchTest, APodHasNoMoreGpusThanItsNode) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1", 100'000);
  Resolve("u1");
  utilization_ = {{"train-0", 80}};
  Sweep();
  EXPECT_EQ(Runs()[0].gpus, 8);
}

TEST_F(UsageWatchTest, WhatDoesNotChangeIsNotWrittenAgain) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 40}};
  Sweep();
  const std::string version = profiles_.List<api::WorkloadProfile>()[0]->metadata.resource_version;
  for (int i = 0; i < 3; ++i) Sweep();
  EXPECT_EQ(profiles_.List<api::WorkloadProfile>()[0]->metadata.resource_version, version);
  utilization_ = {{"train-0", 90}};
  Sweep();
  EXPECT_NE(profiles_.List<api::WorkloadProfile>()[0]->metadata.resource_version, version) << "the memory rose";
}

TEST_F(UsageWatchTest, ARunIsRecordedWhenItsPodsVanishBeforeTheSweep) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 40}};
  clock_.Advance(30s);
  Bury("train-0");
  Sweep();
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].outcome, api::RunOutcome::kDeleted);
  ASSERT_TRUE(runs[0].end);
  EXPECT_EQ(runs[0].gpu_seconds, 60);
}

TEST_F(UsageWatchTest, AnElasticHorovodJobSaysItselfHowItEnded) {
  Start();
  Json job = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", "train", "team-a");
  job["spec"] = *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":["x"]},"workersSpec":{"image":"a"}})");
  Create(kJobs, std::move(job));
  const std::string uid = Live<api::ElasticHorovodJob>({"team-a", "train"})->metadata.uid;
  AddPod("train-workers-0", "ElasticHorovodJob", "train", uid);
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  Resolve(uid);
  utilization_ = {{"train-workers-0", 40}};
  Edit(
      kJobs, {"team-a", "train"}, [](Json& object) { object["status"]["phase"] = "Succeeded"; }, "status");
  Bury("train-workers-0");
  Sweep();
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].outcome, api::RunOutcome::kSucceeded);
  const auto live = Live<api::ElasticHorovodJob>({"team-a", "train"});
  EXPECT_EQ(profiles_.List<api::WorkloadProfile>()[0]->metadata.name,
            IdentityOf(live->spec, live->metadata, ProfileTrust::kNamespace).fingerprint)
      << "trials of this job use the same profile";
}

TEST_F(UsageWatchTest, PodsOfAReplicaSetAreTheDeployments) {
  Start();
  Json set = Named("apps/v1", "ReplicaSet", "web-5d4f", "team-a");
  set["metadata"]["ownerReferences"] =
      *kube::ParseJson(R"([{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"d1","controller":true}])");
  set["spec"] = *kube::ParseJson(R"({"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},)"
                                 R"("spec":{"containers":[{"name":"c","image":"a"}]}}})");
  const auto created = server_.Create("replicasets.apps", std::move(set));
  if (!created) GTEST_FAIL() << created.error().message();
  const std::string uid = *(*created)->At({"metadata", "uid"})->AsString();
  api_version_ = "apps/v1";
  AddPod("web-5d4f-x", "ReplicaSet", "web-5d4f", uid);
  Resolve(uid);
  utilization_ = {{"web-5d4f-x", 10}};
  Sweep();
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].job, "Deployment/team-a/web");
  EXPECT_EQ(runs[0].uid, "d1");
}

TEST_F(UsageWatchTest, PodsOfAListedKindAreTheJobOfWhatControlsIt) {
  UsageSource source = source_;
  source.owner_kinds = {{"ray.io", "rayclusters"}};
  UsageWatch listing(client_, {jobs_, pods_, nodes_, profiles_}, store_, prometheus_, source, clock_, log_);
  listing.FeedQueue(queue_);
  Start();
  ASSERT_TRUE(listing.Reconcile(UsageWatch::Sweep(), {}));
  Create("customresourcedefinitions.apiextensions.k8s.io", *kube::ParseJson(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "rayclusters.ray.io"},
    "spec": {"group": "ray.io", "scope": "Namespaced", "names": {"plural": "rayclusters", "kind": "RayCluster"},
      "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
        {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})"));
  Json cluster = Named("ray.io/v1", "RayCluster", "tune-x", "team-a");
  cluster["metadata"]["ownerReferences"] =
      *kube::ParseJson(R"([{"apiVersion":"ray.io/v1","kind":"RayJob","name":"tune","uid":"r1","controller":true}])");
  const auto created = server_.Create("rayclusters.ray.io", std::move(cluster));
  ASSERT_TRUE(created) << created.error().message();
  const std::string uid = *(*created)->At({"metadata", "uid"})->AsString();
  api_version_ = "ray.io/v1";
  AddPod("tune-x-0", "RayCluster", "tune-x", uid);
  Resolve(uid);
  ASSERT_TRUE(listing.Reconcile({"team-a", "team-a/" + uid}, {}));
  utilization_ = {{"tune-x-0", 10}};
  Sweep();
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  ASSERT_EQ(Runs().size(), 1U);
  EXPECT_EQ(Runs()[0].job, "RayCluster/team-a/tune-x") << "where the kind is not listed";
  ASSERT_TRUE(listing.Reconcile(UsageWatch::Sweep(), {}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  std::vector<std::string> jobs;
  for (const api::WorkloadRun& run : Runs()) jobs.push_back(run.job + " " + run.uid);
  EXPECT_THAT(jobs, ::testing::Contains("RayJob/team-a/tune r1"));
}

TEST_F(UsageWatchTest, AnotherGroupsKindOfTheSameNameIsNotRead) {
  Start();
  Create("jobs.batch", *kube::ParseJson(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":)"
                                        R"("team-a"},"spec":{"template":{"spec":{"restartPolicy":"Never",)"
                                        R"("containers":[{"name":"c","image":"a"}]}}}})"));
  api_version_ = "batch.volcano.sh/v1alpha1";
  AddPod("a-0", "Job", "a", "v1");
  Resolve("v1");
  utilization_ = {{"a-0", 10}};
  Sweep();
  ASSERT_EQ(Runs().size(), 1U);
  EXPECT_EQ(Runs()[0].uid, "v1");
  EXPECT_EQ(tap_.Count("GET", "/apis/"), 0);
}

TEST_F(UsageWatchTest, ASlowSweepIsToldEachTimeAndForgottenOnceTheyAreFastAgain) {
  const kube::Log log(kube::LogLevel::kWarn);
  UsageQuestions questions(prometheus_, source_, clock_, log);
  for (int round = 1; round <= 2; ++round) {
    slowness_ = 15s;
    ::testing::internal::CaptureStderr();
    questions.Ask(nullptr, {});
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("of=\"the rest\"")) << round;
    ::testing::internal::CaptureStderr();
    questions.Ask(nullptr, {});
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::IsEmpty()) << "once, while it lasts";
    EXPECT_TRUE(questions.is_failing());
    slowness_ = 0s;
    questions.Ask(nullptr, {});
    EXPECT_FALSE(questions.is_failing()) << "runs that ended without numbers need not wait for them any more";
  }
}

TEST_F(UsageWatchTest, APrometheusThatIsDownLeavesNumbersOutAndIsToldOnce) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  is_down_ = true;
  for (int i = 0; i < 3; ++i) Sweep();
  EXPECT_TRUE(Runs().empty()) << "nothing is known, and nothing is said";
  is_down_ = false;
  utilization_ = {{"train-0", 70}};
  Sweep();
  ASSERT_EQ(Runs().size(), 1U);
  EXPECT_EQ(Runs()[0].usage.gpu_utilization_percent, 70);
  EXPECT_EQ(Runs()[0].gpu_seconds, 480);
}

TEST_F(UsageWatchTest, AnotherProcessGoesOnWithTheRun) {
  UsageWatch second(client_, {jobs_, pods_, nodes_, profiles_}, store_, prometheus_, {"http://p:9090"}, clock_, log_);
  second.FeedQueue(queue_);
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 80}};
  for (int i = 0; i < 3; ++i) Sweep();
  ASSERT_EQ(Runs().size(), 1U);
  const api::WorkloadRun first = Runs()[0];
  utilization_ = {{"train-0", 20}};
  ASSERT_TRUE(second.Reconcile(UsageWatch::Sweep(), {}));
  ASSERT_TRUE(second.Reconcile({"team-a", "team-a/u1"}, {}));
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(60s);
    ASSERT_TRUE(second.Reconcile(UsageWatch::Sweep(), {}));
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  ASSERT_EQ(Runs().size(), 1U);
  EXPECT_EQ(Runs()[0].start, first.start);
  EXPECT_LT(Runs()[0].usage.gpu_utilization_percent, 80);
  EXPECT_GT(Runs()[0].usage.gpu_utilization_percent, 20);
  EXPECT_EQ(Runs()[0].usage.max_gpu_memory_bytes, 8000LL << 20);
}

TEST_F(UsageWatchTest, ARunWhoseJobWentWhileNobodyLookedEnds) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 80}};
  Sweep();
  UsageWatch second(client_, {jobs_, pods_, nodes_, profiles_}, store_, prometheus_, {"http://p:9090"}, clock_, log_);
  Bury("train-0");
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(second.Reconcile(UsageWatch::Sweep(), {}));
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    clock_.Advance(60s);
  }
  ASSERT_EQ(Runs().size(), 1U);
  ASSERT_TRUE(Runs()[0].end);
  EXPECT_EQ(Runs()[0].outcome, api::RunOutcome::kNotKnown);
}

// A pod of two GPUs whose run is recorded ends `after` the last sweep, and stays; `away` later another process begins.
class UsageWatchAfterARestart : public testing::UsageFixture {
 protected:
  void EndWhileNobodyLooks(std::chrono::seconds after, std::chrono::seconds away) {
    Start();
    AddPod("train-0", "PyTorchJob", "train", "u1");
    Resolve("u1");
    utilization_ = {{"train-0", 80}};
    Sweep();
    clock_.Advance(after);
    end_ = {std::chrono::floor<std::chrono::seconds>(clock_.WallNow())};
    const std::string at = kube::ToText(end_);
    Edit(
        "pods", {"team-a", "train-0"},
        [&](Json& pod) {
          pod["status"]["phase"] = "Succeeded";
          pod["status"]["containerStatuses"] = *kube::ParseJson(
              R"([{"name":"c","image":"a","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{)"
              R"("exitCode":0,"finishedAt":")" +
              at + R"("}}}])");
        },
        "status");
    utilization_.clear();
    clock_.Advance(away);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  void SweepSecond(int times) {
    for (int i = 0; i < times; ++i) {
      clock_.Advance(60s);
      ASSERT_TRUE(second_.Reconcile(UsageWatch::Sweep(), {}));
      ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    }
  }
  void ResolveSecond() { ASSERT_TRUE(second_.Reconcile({"team-a", "team-a/u1"}, {})); }
  void ExpectTheTruth() {
    ASSERT_EQ(Runs().size(), 1U);
    EXPECT_EQ(Runs()[0].end, end_);
    EXPECT_EQ(Runs()[0].gpu_seconds, 720);
    EXPECT_EQ(Runs()[0].outcome, api::RunOutcome::kSucceeded);
    EXPECT_EQ(Runs()[0].usage.gpu_utilization_percent, 80);
  }

  kube::Time end_;
  UsageWatch second_{client_, {jobs_, pods_, nodes_, profiles_}, store_, prometheus_, source_, clock_, log_};
};

TEST_F(UsageWatchAfterARestart, APodThatEndedMeanwhileAndStaysSaysItselfWhenItsRunEnded) {
  EndWhileNobodyLooks(300s, 0s);
  ASSERT_TRUE(second_.Reconcile(UsageWatch::Sweep(), {}));
  ResolveSecond();
  SweepSecond(2);
  ExpectTheTruth();
}

TEST_F(UsageWatchAfterARestart, ItDoesNotMatterHowLongNobodyLooked) {
  EndWhileNobodyLooks(300s, 3600s);
  ASSERT_TRUE(second_.Reconcile(UsageWatch::Sweep(), {}));
  ResolveSecond();
  SweepSecond(4);  // In the third one runs are looked for whose jobs have no pods.
  ExpectTheTruth();
}

TEST_F(UsageWatchAfterARestart, AnOldEndIsNotGivenUpBeforeItsJobCanBeFound) {
  EndWhileNobodyLooks(300s, 3600s);
  ASSERT_TRUE(second_.Reconcile(UsageWatch::Sweep(), {}));
  SweepSecond(1);
  ResolveSecond();
  SweepSecond(3);
  ExpectTheTruth();
}

TEST_F(UsageWatchAfterARestart, AnEndIsKeptThoughItsJobIsFoundOnlyMuchLater) {
  EndWhileNobodyLooks(300s, 0s);
  ASSERT_TRUE(second_.Reconcile(UsageWatch::Sweep(), {}));
  SweepSecond(1);
  clock_.Advance(1200s);
  ResolveSecond();
  SweepSecond(2);
  ExpectTheTruth();
}

TEST_F(UsageWatchTest, AJobThatLivedWhileNobodyAnsweredIsRecordedOnceSomebodyDoes) {
  Start();
  Sweep();  // What is asked later is of the time since then.
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  is_down_ = true;
  Sweep();
  Bury("train-0");
  Sweep();
  EXPECT_TRUE(Runs().empty());
  is_down_ = false;
  utilization_ = {{"train-0", 70}};
  Sweep();
  ASSERT_EQ(Runs().size(), 1U);
  EXPECT_EQ(Runs()[0].usage.gpu_utilization_percent, 70);
  EXPECT_TRUE(Runs()[0].end);
}

TEST_F(UsageWatchTest, WhatARunWasKnownToBeStaysWhenItEndedWhileNobodyLooked) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 97}};
  for (int minute = 1; minute <= 6; ++minute) Sweep();
  ASSERT_TRUE(Runs()[0].character);
  UsageWatch second(client_, {jobs_, pods_, nodes_, profiles_}, store_, prometheus_, {"http://p:9090"}, clock_, log_);
  Bury("train-0");
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(second.Reconcile(UsageWatch::Sweep(), {}));
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    clock_.Advance(60s);
  }
  ASSERT_TRUE(Runs()[0].end);
  ASSERT_TRUE(Runs()[0].character);
  EXPECT_EQ(Runs()[0].character->kind, "Batch");
}

TEST_F(UsageWatchTest, AProfileSaysWhatRanButNotWhatOthersProgramsAreTold) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 80}};
  Sweep();
  EXPECT_THAT(profiles_.List<api::WorkloadProfile>()[0]->spec.workload.command, ::testing::IsEmpty());
}

TEST_F(UsageWatchTest, SaysWhatAJobIsOnceItHasRunForFiveMinutesAndAgainWhenItHasRunHalfAsLongAgain) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 97}};
  std::vector<int> looks;
  for (int minute = 1; minute <= 12; ++minute) {
    Sweep();
    looks.push_back(looks_);
    ASSERT_EQ(Runs().size(), 1U);
    EXPECT_EQ(Runs()[0].character.has_value(), minute >= 6) << minute;  // The sweep after the look writes it.
  }
  EXPECT_THAT(looks, ::testing::ElementsAre(0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3));
  EXPECT_EQ(Runs()[0].character->kind, "Batch");
  EXPECT_EQ(Runs()[0].character->bottleneck, "MemoryBandwidth");
  EXPECT_THAT(Runs()[0].character->message, HasSubstr("97 %"));
  Bury("train-0");
  Sweep();
  EXPECT_TRUE(Runs()[0].end);
  EXPECT_EQ(Runs()[0].character->kind, "Batch") << "it stays when the job is over";
}

TEST_F(UsageWatchTest, LooksAtThreeJobsASweepThoseWithMostGpusFirst) {
  Start();
  for (int i = 0; i < 7; ++i) {
    const std::string name = "p" + std::to_string(i);
    AddPod(name, "", "", "", i + 1);
    utilization_[name] = 50;
  }
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  for (const auto& pod : pods_.List<kube::Pod>()) Resolve(pod->metadata.uid);
  for (int minute = 1; minute <= 5; ++minute) Sweep();
  EXPECT_EQ(looks_, 3);
  Sweep();
  EXPECT_EQ(looks_, 6);
  int known = 0;
  for (const api::WorkloadRun& run : Runs()) known += run.character && run.gpus >= 5 ? 1 : 0;
  EXPECT_GE(known, 2) << "the third look is for the one that has waited longest";
  Sweep();
  EXPECT_EQ(looks_, 7);
}

TEST_F(UsageWatchTest, ALookThatFailsIsTriedAgainAfterFiveMinutes) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 97}};
  for (int minute = 1; minute <= 4; ++minute) Sweep();
  is_down_ = true;
  Sweep();
  is_down_ = false;
  EXPECT_EQ(looks_, 1);
  for (int minute = 6; minute <= 9; ++minute) Sweep();
  EXPECT_EQ(looks_, 1);
  EXPECT_FALSE(Runs()[0].character);
  for (int minute = 10; minute <= 11; ++minute) Sweep();
  EXPECT_EQ(looks_, 2);
  EXPECT_TRUE(Runs()[0].character);
}

TEST_F(UsageWatchTest, WhatNoSourceKnowsAnyMoreIsNotSaidAnyMore) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 97}};
  for (int minute = 1; minute <= 6; ++minute) Sweep();
  ASSERT_TRUE(Runs()[0].character);
  is_range_empty_ = true;
  for (int minute = 7; minute <= 9; ++minute) Sweep();
  EXPECT_EQ(looks_, 2);
  EXPECT_FALSE(Runs()[0].character);
}

TEST_F(UsageWatchTest, SeriesBeginWithTheNewestPod) {
  Start();
  AddPod("train-0", "PyTorchJob", "train", "u1");
  Resolve("u1");
  utilization_ = {{"train-0", 97}, {"train-1", 97}};
  for (int minute = 1; minute <= 4; ++minute) Sweep();
  AddPod("train-1", "PyTorchJob", "train", "u1");
  for (int minute = 5; minute <= 8; ++minute) Sweep();
  EXPECT_EQ(looks_, 0) << "the job has had these GPUs for four minutes";
  for (int minute = 9; minute <= 10; ++minute) Sweep();
  EXPECT_EQ(looks_, 1);
}

}  // namespace
}  // namespace grus
