// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_reconciler.h"

#include "tests/controllers/trial/trial_reconciler_fixture.h"
#include "tests/controllers/trial/trial_world.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using api::TrialJobPhase;
using api::TrialPhase;
using kube::Json;
using ::testing::HasSubstr;
using testing::kJobs;
using testing::kTrialJobs;

constexpr char kAsks[] = R"({"measure":{"source":"Prometheus",
    "prometheus":{"url":"http://p:9090","queries":[{"query":"s{job=\"$JOB\"}","kind":"SamplesPerSecond"}]}}})";

class TrialReconcilerTest : public testing::TrialReconcilerFixture {
 protected:
  void Push(const std::string& trial, const std::string& annotation, const std::string& value) {
    Edit(kJobs, {"team-a", trial}, [&](Json& job) { job["metadata"]["annotations"][annotation] = value; });
  }
  // At most 30 times, a second after each other; the trial's pods run.
  void PushUntilMeasured(const std::string& trial) {
    PassUntilMeasured(30, 1s, [&](int i) { Push(trial, kPushedSamplesAnnotation, i % 2 == 0 ? "512.4" : "513.1"); });
  }
  // Which answers so; no trial starts.
  void AskPrometheus(kube::Result<kube::HttpResponse> answer) {
    AddTrialJob(kAsks);
    network_.Handle("GET", "/", [=](const kube::HttpRequest&, const std::stop_token&) { return answer; });
    Start();
    for (int i = 0; i < 5; ++i) {
      Pass();
      clock_.Advance(1s);
    }
    EXPECT_TRUE(server_.List(kJobs, "team-a").empty());
  }
  // As far as the first trial, whose pods run.
  void StartTraining() {
    Start();
    Pass();
    RunPod(TheTrial(), "worker");
    RunPod(TheTrial(), "launcher");
    Pass();
  }
};

TEST_F(TrialReconcilerTest, ATrialIsInTheStatusBeforeItsJobIsMade) {
  AddTrialJob("{}");
  Start();
  changes_.clear();

  Pass();

  EXPECT_EQ(changes_, (std::vector<std::string>{std::string("change ") + kTrialJobs, std::string("create ") + kJobs}));
  const auto child = server_.Get(kJobs, {"team-a", TheTrial()});
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(*child->At({"metadata", "labels", kTrialJobLabel})->AsString(), "tune");
  EXPECT_EQ(*child->At({"spec", "workersSpec", "minReplicas"})->AsInt(), 1);
  EXPECT_EQ(*child->At({"spec", "profile"})->AsString(), "Off");
}

TEST_F(TrialReconcilerTest, ItsEndIsInTheStatusBeforeItsJobIsDeleted) {
  AddTrialJob("{}");
  Start();
  Pass();
  RunPod(TheTrial(), "worker");
  Pass();
  Edit(kTrialJobs, {"team-a", "tune"}, [](Json& job) { job["spec"]["suspend"] = true; });
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  changes_.clear();

  Pass();

  EXPECT_EQ(changes_, (std::vector<std::string>{std::string("change ") + kTrialJobs, std::string("delete ") + kJobs}));
}

TEST_F(TrialReconcilerTest, ProgressIsWrittenEveryFewSecondsAtMost) {
  AddTrialJob("{}");
  Start();
  Pass();
  RunPod(TheTrial(), "worker");
  Pass();
  changes_.clear();

  for (int i = 0; i < 50; ++i) {
    clock_.Advance(200ms);
    Pass();
  }

  EXPECT_LE(changes_.size(), 3U);
  EXPECT_GE(Tune()->status.spent.gpu_seconds, 4);
}

TEST_F(TrialReconcilerTest, TheSameWorkloadAgainCostsNothing) {
  const std::string spec = R"({"measure":{"source":"Push"}})";
  AddTrialJob(spec);
  StartTraining();
  PushUntilMeasured(TheTrial());
  const auto first = Tune();
  ASSERT_EQ(first->status.trials[0].phase, TrialPhase::kSucceeded);
  const auto profile = server_.Get("workloadprofiles.ai.centauruscloud.io", {"", first->status.fingerprint});
  ASSERT_NE(profile, nullptr) << "named " << first->status.fingerprint;
  EXPECT_EQ(*profile->At({"spec", "points"})->AsArray()->at(0).At({"measuredBy"})->AsString(), "team-a/tune");
  EndPods();
  ReplaceTrialJob(spec);
  changes_.clear();

  for (int i = 0; i < 3; ++i) Pass();

  const auto second = Tune();
  EXPECT_EQ(second->status.phase, TrialJobPhase::kSucceeded);
  ASSERT_EQ(second->status.trials.size(), 1U);
  EXPECT_EQ(second->status.trials[0].reason, api::TrialReason::kFromCache);
  EXPECT_EQ(second->status.trials[0].measured->throughput, first->status.trials[0].measured->throughput);
  EXPECT_EQ(second->status.spent.gpu_seconds, 0);
  EXPECT_EQ(second->status.saved_by_cache.gpu_seconds, first->status.trials[0].gpu_seconds);
  EXPECT_EQ(std::count(changes_.begin(), changes_.end(), std::string("create ") + kJobs), 0);
}

TEST_F(TrialReconcilerTest, TheNodesOfATrialAreThoseOfItsWorkersAndAreKnownFromBeforeToo) {
  const std::string spec = R"({"measure":{"source":"Push"},"space":{"gpuCounts":[2]}})";
  AddNode("n2");
  AddTrialJob(spec);
  Start();
  Pass();
  RunPod(TheTrial(), "worker");
  RunPod(TheTrial(), "worker", "n2");
  RunPod(TheTrial(), "launcher");
  Pass();
  PushUntilMeasured(TheTrial());
  EXPECT_EQ(Tune()->status.trials[0].config.nodes, 2);
  const auto profile = server_.Get("workloadprofiles.ai.centauruscloud.io", {"", Tune()->status.fingerprint});
  ASSERT_NE(profile, nullptr);
  EXPECT_EQ(*profile->At({"spec", "points"})->AsArray()->at(0).At({"config", "nodes"})->AsInt(), 2);

  EndPods();
  ReplaceTrialJob(spec);
  for (int i = 0; i < 3; ++i) Pass();

  ASSERT_EQ(Tune()->status.trials.size(), 1U);
  EXPECT_EQ(Tune()->status.trials[0].reason, api::TrialReason::kFromCache);
  EXPECT_EQ(Tune()->status.trials[0].config.nodes, 2);
}

TEST_F(TrialReconcilerTest, WhatIsPushedAndIsNoSpeedIsNone) {
  AddTrialJob(R"({"measure":{"source":"Push"},"budget":{"perTrialSeconds":60}})");
  StartTraining();
  const std::string trial = TheTrial();
  const std::vector<std::string> values = {"NaN", "0", "-5", "inf", "1e999", "fast", std::string(5000, '9'), "\n\n"};
  for (std::size_t i = 0; i < 70 && Tune()->status.trials[0].phase != TrialPhase::kFailed; ++i) {
    clock_.Advance(1s);
    Push(trial, kPushedSamplesAnnotation, values[i % values.size()]);
    Pass();
  }

  EXPECT_EQ(Tune()->status.trials[0].phase, TrialPhase::kFailed);
  EXPECT_FALSE(Tune()->status.trials[0].measured);
  EXPECT_TRUE(Tune()->status.curve.empty());
}

TEST_F(TrialReconcilerTest, TheLogOfTheLauncherIsItsSpeed) {
  AddTrialJob("{}");
  Start();
  Pass();
  const std::string trial = TheTrial();
  RunPod(trial, "worker");
  RunPod(trial, "launcher");
  for (int i = 0; i < 100; ++i) {
    server_.AppendPodLog(
        {"team-a", trial + "-launcher"}, "launcher", clock_.WallNow() + i * 100ms,
        "step " + std::to_string(i) + " loss 2.3 total speed " + std::to_string(300 + i % 3) + " samples/s\n");
  }
  clock_.Advance(10s);
  Pass();
  ++waiters_;  // The follower.
  for (int i = 0; i < 5 && Tune()->status.trials[0].phase != TrialPhase::kSucceeded; ++i) Pass();

  ASSERT_EQ(Tune()->status.trials[0].phase, TrialPhase::kSucceeded);
  EXPECT_NEAR(std::stod(Tune()->status.trials[0].measured->throughput), 301, 2);
}

TEST_F(TrialReconcilerTest, WhyATrialFailedStandsInItsLogAlsoForAProcessThatHasJustBegun) {
  AddTrialJob("{}");
  Start();
  Pass();
  const std::string trial = TheTrial();
  RunPod(trial, "worker");
  RunPod(trial, "launcher");
  server_.AppendPodLog({"team-a", trial + "-launcher"}, "launcher", clock_.WallNow(),
                       "CUDA out of memory. Tried to allocate 2 GiB\n");
  Edit(
      kJobs, {"team-a", trial}, [](Json& job) { job["status"]["phase"] = "Failed"; }, "status");

  Pass();
  EXPECT_NE(Tune()->status.trials[0].phase, TrialPhase::kFailed);
  ++waiters_;  // The follower.
  EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
  clock_.Advance(31s);  // No end of it was seen.
  Pass();

  EXPECT_EQ(Tune()->status.trials[0].reason, api::TrialReason::kOutOfMemory);
}

TEST_F(TrialReconcilerTest, AJobOfSomebodyElseWithItsNameIsLeftAlone) {
  AddTrialJob("{}");
  const std::string name = [] {
    api::TrialJob job = testing::TestTrialJob({1});
    testing::TrialWorld world(job);
    return world.Pass().start.at(0).name;
  }();
  Json foreign = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", name, "team-a");
  foreign["spec"] =
      *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":["p"]},"workersSpec":{"image":"a"}})");
  Create(kJobs, foreign);
  const auto before = *server_.Get(kJobs, {"team-a", name});
  Start();

  for (int i = 0; i < 3; ++i) Pass();

  EXPECT_EQ(ReadyReason(), "NameTaken");
  EXPECT_EQ(*server_.Get(kJobs, {"team-a", name}), before);
}

// Its author may have read the TrialJob's UID.
TEST_F(TrialReconcilerTest, AJobOfAnotherNamespaceThatNamesItAsItsOwnerIsNoneOfItsTrials) {
  const auto trials = MakeJobTrials({trial_jobs_, jobs_, pods_, nodes_, &groups_});
  AddTrialJob("{}");
  Start();
  Pass();
  const std::string trial = TheTrial();
  Json forged = *server_.Get(kJobs, {"team-a", trial});
  forged["metadata"] = Json::MakeObject(
      {{"name", "forged"}, {"namespace", "team-b"}, {"ownerReferences", *forged.At({"metadata", "ownerReferences"})}});
  Create("namespaces", Named("v1", "Namespace", "team-b", ""));
  Create(kJobs, std::move(forged));
  Pass();

  EXPECT_THAT(trials->NamesOf(*Tune()), ::testing::ElementsAre(trial));
}

TEST_F(TrialReconcilerTest, WhatTheServerRefusesEndsItWithItsWords) {
  AddTrialJob(R"({"workload":{"template":{"spec":{"workersSpec":{"gpusPerWorker":1}}}}})");
  Start();
  // A schema that has become stricter since the TrialJob was made.
  Edit("customresourcedefinitions.apiextensions.k8s.io", {"", kJobs}, [](Json& crd) {
    Json& spec = (*crd["spec"]["versions"].AsArray())[0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["required"].Append("queueName");
  });

  for (int i = 0; i < 4; ++i) Pass();

  EXPECT_EQ(Tune()->status.phase, TrialJobPhase::kFailed);
  EXPECT_EQ(ReadyReason(), "TemplateRefused");
  EXPECT_THAT(Tune()->status.trials[0].message, HasSubstr("queueName"));
}

TEST_F(TrialReconcilerTest, MemoryAndUtilisationOfTheGpusAreThoseOfTheDcgmExporter) {
  AddTrialJob(kAsks);
  int asked = 0;
  network_.Handle("GET", "/api/v1/query", [&](const kube::HttpRequest& request, const std::stop_token&) {
    std::string value = ++asked % 2 == 0 ? "99.5" : "100.5";
    if (request.target.find("DCGM_FI_DEV_FB_USED") != std::string::npos) value = "30000";
    if (request.target.find("DCGM_FI_DEV_GPU_UTIL") != std::string::npos) value = "81.6";
    return kube::HttpResponse{
        200, {}, R"({"status":"success","data":{"resultType":"vector","result":[{"value":[1,")" + value + R"("]}]}})"};
  });
  StartTraining();
  for (int i = 0; i < 40 && Tune()->status.trials[0].phase != TrialPhase::kSucceeded; ++i) {
    clock_.Advance(2s);
    Pass();
    Pass();  // Without a question, as it is too soon for one.
  }

  ASSERT_EQ(Tune()->status.trials[0].phase, TrialPhase::kSucceeded);
  EXPECT_EQ(Tune()->status.trials[0].measured->peak_memory_bytes, 30000LL << 20);
  EXPECT_EQ(Tune()->status.trials[0].measured->utilization_percent, 82);
}

TEST_F(TrialReconcilerTest, ASpeedThatPrometheusRepeatsIsMeasuredToo) {
  AddTrialJob(kAsks);
  network_.Handle("GET", "/api/v1/query", [&](const kube::HttpRequest& request, const std::stop_token&) {
    const bool is_speed = request.target.find("DCGM") == std::string::npos;
    return kube::HttpResponse{200,
                              {},
                              std::string(R"({"status":"success","data":{"resultType":"vector","result":[)") +
                                  (is_speed ? R"({"value":[1,"250"]})" : "") + "]}}"};
  });
  StartTraining();
  PassUntilMeasured(120, 2s, [](int) {});

  ASSERT_EQ(Tune()->status.trials[0].phase, TrialPhase::kSucceeded);
  EXPECT_EQ(Tune()->status.trials[0].measured->throughput, "250");
  EXPECT_FALSE(Tune()->status.trials[0].measured->peak_memory_bytes);
}

TEST_F(TrialReconcilerTest, APrometheusThatIsNotThereIsSaidBeforeAnyTrialStarts) {
  AskPrometheus(kube::Error(kube::ErrorCode::kUnavailable, "connection refused"));
  EXPECT_EQ(ReadyReason(), "SourceUnreachable");
  EXPECT_THAT(ReadyMessage(), HasSubstr("http://p:9090: connection refused"));
}

TEST_F(TrialReconcilerTest, AQueryThatPrometheusCannotReadIsSaidBeforeAnyTrialStarts) {
  AskPrometheus(kube::HttpResponse{
      400, {}, R"({"status":"error","errorType":"bad_data","error":"parse error: unclosed left brace"})"});
  EXPECT_THAT(ReadyMessage(), HasSubstr("unclosed left brace"));
}

}  // namespace
}  // namespace grus
