// SPDX-License-Identifier: Apache-2.0
// Trials that are pods, against the fake API server: the test plays the scheduler, the kubelet and the garbage
// collector.
#include "controllers/frame/retry_times.h"
#include "controllers/trial/trial_status.h"
#include "tests/controllers/trial/trial_reconciler_fixture.h"
#include "tests/controllers/trial/trial_world.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using api::TrialJobPhase;
using api::TrialPhase;
using kube::Json;
using ::testing::HasSubstr;
using testing::kGroups;
using testing::kJobs;

constexpr char kPush[] = R"({"measure":{"source":"Push"},"workload":{"podTemplate":{"spec":{"containers":[
    {"name":"side","image":"s"},{"name":"train","image":"a","args":["x"],
     "resources":{"limits":{"nvidia.com/gpu":1}}}]}}}})";

class TrialPodReconcilerTest : public testing::TrialReconcilerFixture {
 protected:
  kube::ObjectKey Key() { return {"team-a", TheTrial()}; }
  std::string Uid() { return *server_.Get("pods", Key())->At({"metadata", "uid"})->AsString(); }
  void Run() {
    Edit("pods", Key(), [](Json& pod) { pod["spec"].Erase("schedulingGates"); });
    ASSERT_TRUE(server_.Bind(Key(), "n1"));
    SayRunning(TheTrial(), "train");
  }
  void Say(const char* rate) {
    Edit("pods", Key(), [&](Json& pod) { pod["metadata"]["annotations"][kPushedSamplesAnnotation] = rate; });
  }
  void Measure() {
    PassUntilMeasured(30, 1s, [&](int i) { Say(i % 2 == 0 ? "512.4" : "513.1"); });
    ASSERT_EQ(Tune()->status.trials[0].phase, TrialPhase::kSucceeded);
  }
  void Collect() {
    EndPods();
    for (const auto& group : server_.List(kGroups, "team-a")) {
      ASSERT_TRUE(
          server_.Delete(kGroups, {"team-a", *group->At({"metadata", "name"})->AsString()}, Json::MakeObject()));
    }
  }
};

TEST_F(TrialPodReconcilerTest, ThePodIsAGangOfOneAndNoJobIsMade) {
  AddTrialJob(kPush);
  Start();

  Pass();
  Pass();

  const auto pod = server_.Get("pods", Key());
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(*pod->At({"metadata", "labels", kTrialJobLabel})->AsString(), "tune");
  const auto group = server_.Get(kGroups, Key());
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(*group->At({"metadata", "ownerReferences"})->AsArray()->at(0).Find("uid")->AsString(), Uid());
  EXPECT_TRUE(server_.List(kJobs, "team-a").empty());
}

TEST_F(TrialPodReconcilerTest, IsMeasuredByItsOwnPodAndThenDeleted) {
  AddTrialJob(kPush);
  Start();
  Pass();
  Run();
  Pass();

  Measure();

  EXPECT_NEAR(std::stod(Tune()->status.trials[0].measured->throughput), 512.7, 1);
  Collect();
  Pass();
  EXPECT_EQ(server_.Get("pods", Key()), nullptr);
  EXPECT_EQ(Tune()->status.phase, TrialJobPhase::kSucceeded);
}

TEST_F(TrialPodReconcilerTest, APodThatAdmissionRefusesIsToldInItsWordsAndMadeOnceItMayBe) {
  const auto enforce = [this](const char* level) {
    Edit("namespaces", {"", "team-a"},
         [&](Json& ns) { ns["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = level; });
  };
  enforce("baseline");
  Json spec = *kube::ParseJson(kPush);
  spec["workload"]["podTemplate"]["spec"]["hostPID"] = true;
  AddTrialJob(kube::ToText(spec));
  Start();
  Pass();
  Pass();

  EXPECT_EQ(ReadyReason(), "TemplateRefused") << "grus lacks no right";
  EXPECT_THAT(ReadyMessage(), HasSubstr("violates PodSecurity"));
  EXPECT_EQ(server_.Get("pods", Key()), nullptr);

  enforce("privileged");
  clock_.Advance(kRefusedRetry);
  Pass();
  EXPECT_NE(server_.Get("pods", Key()), nullptr);
}

TEST(TrialStatus, WhatGrusMayNotIsNotTheTemplatesFault) {
  const auto reason = [](const char* text) {
    return ReasonOfForbidden(kube::Error(kube::ErrorCode::kForbidden, text));
  };
  EXPECT_EQ(reason(R"(pods is forbidden: User "grus" cannot create resource "pods" in API group "")"),
            api::TrialJobReason::kNotPermitted);
  EXPECT_EQ(reason(R"(pods "a" is forbidden: exceeded quota: team)"), api::TrialJobReason::kTemplateRefused);
}

TEST_F(TrialPodReconcilerTest, AGroupOfSomebodyElseWithItsNameIsLeftAlone) {
  AddTrialJob(kPush);
  testing::TrialWorld world(testing::TestTrialJob({1}));
  const std::string name = world.Pass().start.at(0).name;
  Json group = Named("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, "team-a");
  group["spec"]["minMember"] = 2;
  Create(kGroups, group);
  Start();

  for (int i = 0; i < 3; ++i) Pass();

  EXPECT_EQ(ReadyReason(), "NameTaken");
  EXPECT_THAT(ReadyMessage(), HasSubstr("PodGroup \"" + name));
  EXPECT_TRUE(server_.List("pods", "team-a").empty());
}

TEST_F(TrialPodReconcilerTest, WhatIsKeptIsToldToEndAndStays) {
  Json spec = *kube::ParseJson(kPush);
  spec["cleanup"] = "Never";
  AddTrialJob(kube::ToText(spec));
  Start();
  Pass();
  Run();
  Pass();
  const std::string uid = Uid();

  Measure();

  EXPECT_EQ(Uid(), uid);
  EXPECT_EQ(*server_.Get("pods", Key())->At({"spec", "activeDeadlineSeconds"})->AsInt(), 1);
}

constexpr char kOnTwo[] = R"({"measure":{"source":"Push"},"workload":{"podTemplate":{"spec":{"containers":[
    {"name":"train","image":"a","command":["torchrun","x"]}]}}},"space":{"gpuCounts":[8],"nodeCounts":[2]}})";

class TrialOnTwoNodes : public TrialPodReconcilerTest {
 protected:
  kube::ObjectKey Peer() { return {"team-a", TheTrial() + "-1"}; }
  void RunBoth() {
    if (!server_.Get("pods", Key())->At({"spec", "nodeName"})) Run();
    Edit("pods", Peer(), [](Json& pod) { pod["spec"].Erase("schedulingGates"); });
    ASSERT_TRUE(server_.Bind(Peer(), "n2"));
    SayRunning(Peer().name, "train");
  }
  void Begin(const std::string& spec = kOnTwo) {
    AddNode("n2");
    AddTrialJob(spec);
    Start();
    Pass();
  }
};

TEST_F(TrialOnTwoNodes, ItsPodsAndTheServiceAreThereBeforeItsGroup) {
  Begin();

  ASSERT_NE(server_.Get("pods", Key()), nullptr);
  const auto peer = server_.Get("pods", Peer());
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(*peer->At({"metadata", "ownerReferences"})->AsArray()->at(0).Find("uid")->AsString(), Uid());
  EXPECT_NE(server_.Get("services", Key()), nullptr);
  EXPECT_EQ(server_.Get(kGroups, Key()), nullptr);

  Pass();

  const auto group = server_.Get(kGroups, Key());
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(*group->At({"spec", "minMember"})->AsInt(), 2);
}

TEST_F(TrialOnTwoNodes, IsMeasuredByItsFirstPodAndCostsTheGpusOfBoth) {
  Begin();
  Pass();
  RunBoth();
  Pass();

  Measure();

  const api::Trial trial = Tune()->status.trials[0];
  EXPECT_EQ(trial.config.nodes, 2);
  EXPECT_NEAR(std::stod(trial.measured->throughput), 512.7, 1);
  Collect();
  Pass();
  const std::int64_t spent = Tune()->status.spent.gpu_seconds;
  EXPECT_EQ(spent % 8, 0) << "8 GPUs for so many seconds";
  EXPECT_GT(spent, 0);
  EXPECT_EQ(Tune()->status.phase, TrialJobPhase::kSucceeded);
}

TEST_F(TrialOnTwoNodes, ItsNodesAreCountedOnceAllItsPodsHaveOne) {
  Begin();
  Pass();
  Run();
  Pass();
  EXPECT_EQ(Tune()->status.trials[0].config.nodes, 0);

  RunBoth();
  for (int i = 0; i < 2; ++i) {  // It is progress, and written with the next.
    clock_.Advance(kPoll);
    Pass();
  }

  EXPECT_EQ(Tune()->status.trials[0].config.nodes, 2);
}

TEST_F(TrialOnTwoNodes, APeerThatCrashesEndsIt) {
  Begin();
  Pass();
  RunBoth();
  Pass();

  SetStatus("pods", Peer(), R"({"phase":"Failed","containerStatuses":[{"name":"train","state":{"terminated":
      {"exitCode":3}}}]})");
  Pass();

  const api::Trial trial = Tune()->status.trials[0];
  EXPECT_EQ(trial.phase, TrialPhase::kFailed);
  EXPECT_EQ(trial.reason, api::TrialReason::kCrashed);
  EXPECT_THAT(trial.message, HasSubstr("ended with exit code 3"));
}

TEST_F(TrialOnTwoNodes, AStopBetweenItsCreatesStartsItAnew) {
  Begin();
  ASSERT_TRUE(server_.Delete("pods", Peer(), *kube::ParseJson(R"({"gracePeriodSeconds":0})")));
  const std::string uid = Uid();

  Pass();
  EXPECT_EQ(server_.Get("pods", Key()), nullptr) << "it never held a GPU";
  ASSERT_TRUE(server_.Delete("services", Key(), Json::MakeObject()));
  Pass();

  ASSERT_NE(server_.Get("pods", Key()), nullptr);
  EXPECT_NE(Uid(), uid);
  EXPECT_NE(server_.Get("pods", Peer()), nullptr);
  EXPECT_EQ(server_.Get(kGroups, Key()), nullptr);
}

// What is taken does not make it create and delete its pods for ever.
TEST_F(TrialOnTwoNodes, AServiceOfSomebodyElseHoldsItBack) {
  AddNode("n2");
  AddTrialJob(kOnTwo);
  testing::TrialWorld world(testing::TestTrialJob({8}));
  world.job().spec.space.node_counts = {2};
  TypeNodes nodes;
  nodes.gpus = {8, 8};
  nodes.gpus_per_node = 8;
  nodes.most_gpus = 16;
  world.view().nodes[""] = nodes;
  const std::string name = world.Pass().start.at(0).name;
  Json taken = Named("v1", "Service", name, "team-a");
  taken["spec"] = *kube::ParseJson(R"({"clusterIP":"None","ports":[{"port":80}]})");
  Create("services", std::move(taken));
  Start();
  std::set<std::string> made;
  for (int i = 0; i < 10; ++i) {
    Pass();
    if (server_.Get("pods", Key()) != nullptr) made.insert(Uid());
  }
  EXPECT_EQ(made.size(), 1U);
  EXPECT_EQ(server_.Get("pods", Key()), nullptr);
  EXPECT_EQ(ReadyReason(), "NameTaken");
  EXPECT_THAT(ReadyMessage(), HasSubstr("Service \"" + name));

  ASSERT_TRUE(server_.Delete("services", Key(), Json::MakeObject()));
  clock_.Advance(kRefusedRetry);
  Pass();
  EXPECT_NE(server_.Get("pods", Peer()), nullptr);
}

TEST_F(TrialOnTwoNodes, IsOverOnceTheLastOfItsPodsIsGone) {
  Begin();
  Pass();
  RunBoth();
  Pass();
  Measure();

  ASSERT_TRUE(server_.Delete("pods", Key(), *kube::ParseJson(R"({"gracePeriodSeconds":0})")));
  Pass();
  EXPECT_EQ(Tune()->status.phase, TrialJobPhase::kRunning) << "4 GPUs are still held";
  Collect();
  Pass();

  EXPECT_EQ(Tune()->status.phase, TrialJobPhase::kSucceeded);
}

TEST_F(TrialOnTwoNodes, WhatIsKeptHoldsNoGpusOnAnyNode) {
  Json spec = *kube::ParseJson(kOnTwo);
  spec["cleanup"] = "Never";
  Begin(kube::ToText(spec));
  Pass();
  RunBoth();
  Pass();

  Measure();

  for (const kube::ObjectKey& key : {Key(), Peer()}) {
    EXPECT_EQ(*server_.Get("pods", key)->At({"spec", "activeDeadlineSeconds"})->AsInt(), 1) << key.name;
  }
}

TEST_F(TrialPodReconcilerTest, OthersThatWaitStopAnIdleOneAndItsOwnGangDoesNot) {
  Json spec = *kube::ParseJson(kPush);
  spec["idleOnly"] = true;
  AddTrialJob(kube::ToText(spec));
  Start();
  Pass();
  GangDemand demand;
  demand.needed = 1;
  demand.members = {GpuShape(16)};  // More than there is: it waits.

  demand.key = "team-a/" + TheTrial();
  account_.Ask(demand);
  Pass();
  EXPECT_NE(server_.Get("pods", Key()), nullptr);
  demand.key = "team-a/other";
  account_.Ask(demand);
  Pass();

  EXPECT_EQ(ReadyReason(), "WaitingForIdle");
  EXPECT_EQ(server_.Get("pods", Key()), nullptr);
}

}  // namespace
}  // namespace grus
