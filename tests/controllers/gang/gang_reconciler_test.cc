// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_reconciler.h"

#include <gtest/gtest.h>

#include <array>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"
#include "crds/types/all_crds.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;

constexpr int kThreads = 4;  // Of three caches, and the recorder of events.

// Gangs on one node of 8 GPUs, beside an API server in this process; nothing else acts. Each pass is the test's own.
class GangReconcilerTest : public ::testing::Test {
 protected:
  GangReconcilerTest() {
    for (const kube::CrdInfo& info : api::AllCrds()) {
      Create("customresourcedefinitions.apiextensions.k8s.io", kube::MakeCrd(info));
    }
    Create("serviceaccounts", Text(R"({"apiVersion":"v1","kind":"ServiceAccount",
                                       "metadata":{"namespace":"default","name":"default"}})"));
    Create("nodes", Text(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":{
                             "allocatable":{"cpu":"64","memory":"1Ti","pods":"110","nvidia.com/gpu":"8"}}})"));
  }
  // No handler runs while what it tells is taken apart.
  ~GangReconcilerTest() override {
    for (kube::Informer* informer : Informers()) informer->Stop();
    for (kube::Informer* informer : Informers()) informer->Join();
  }
  static Json Text(std::string_view text) { return *kube::ParseJson(text); }
  void Create(const char* resource, Json object) {
    const auto made = server_.Create(resource, std::move(object), "test");
    ASSERT_TRUE(made) << made.error().message();
  }
  std::array<kube::Informer*, 3> Informers() { return {&groups_, &pods_, &nodes_}; }

  // All of whose members are gated, and nominated for that node if there is one.
  void AddGang(const std::string& name, int members, int gpus, const std::string& node = {}) {
    Json group = Text(R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup",
                          "metadata":{"namespace":"default"},"spec":{}})");
    group["metadata"]["name"] = name;
    group["spec"]["minMember"] = members;
    Create("podgroups.scheduling.x-k8s.io", std::move(group));
    for (int i = 0; i < members; ++i) {
      Json pod = Text(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"default"},
                          "spec":{"containers":[{"name":"c","image":"i"}],
                                  "schedulingGates":[{"name":"scheduling.x-k8s.io/gang"}]}})");
      const std::string pod_name = name + "-" + std::to_string(i);
      pod["metadata"]["name"] = pod_name;
      pod["metadata"]["labels"][api::kPodGroupLabel] = name;
      (*pod["spec"]["containers"].AsArray())[0]["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
      Create("pods", std::move(pod));
      if (!node.empty()) Nominate(pod_name, node);
    }
  }
  void Nominate(const std::string& pod, const std::string& node) {
    kube::WriteOptions options;
    options.subresource = "status";
    Json patch = Json::MakeObject();
    patch["status"]["nominatedNodeName"] = node;
    ASSERT_TRUE(client_.Patch(KindOf<kube::Pod>(), {"default", pod}, kube::PatchType::kMerge, patch, options));
  }
  void StartCaches() {
    gangs_.FeedQueue(queue_);
    for (kube::Informer* informer : Informers()) informer->Start();
    for (kube::Informer* informer : Informers()) ASSERT_TRUE(informer->WaitForSync(clock_.Now() + 1h));
  }

  kube::testing::FakeClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  kube::Log log_{kube::LogLevel::kOff};
  kube::Client client_{server_, nullptr, clock_};
  kube::WorkQueue queue_{clock_};
  kube::EventRecorder events_{client_, clock_, log_, {"example.com/test", "test"}};
  kube::Informer groups_{client_, KindOf<api::PodGroup>(), {}, clock_, log_};
  kube::Informer pods_{client_, KindOf<kube::Pod>(), {}, clock_, log_};
  kube::Informer nodes_{client_, KindOf<kube::Node>(), {}, clock_, log_};
  ClusterRoom room_{nodes_, pods_, clock_};
  GangReconciler gangs_{client_, KindOf<api::PodGroup>(), groups_, pods_, room_, {}, events_, clock_, log_};
};

TEST_F(GangReconcilerTest, WhatAnEarlierProcessHeldIsHeldBeforeAnythingElseIsPlanned) {
  AddGang("held", 4, 2, "n1");
  AddGang("other", 4, 2);
  StartCaches();

  ASSERT_TRUE(gangs_.Reconcile({"default", "other"}, {}));

  EXPECT_EQ(room_.PlacesOf("default/held").size(), 4U);
  EXPECT_TRUE(room_.PlacesOf("default/other").empty());
}

TEST_F(GangReconcilerTest, AGroupIsLookedAtWhenAPodLeavesItByItsLabel) {
  AddGang("left", 1, 1);
  StartCaches();
  ASSERT_TRUE(clock_.AwaitWaiters(kThreads));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  const Json unlabel = Text(R"({"metadata":{"labels":{"scheduling.x-k8s.io/pod-group":null}}})");
  ASSERT_TRUE(client_.Patch(KindOf<kube::Pod>(), {"default", "left-0"}, kube::PatchType::kMerge, unlabel, {}));
  ASSERT_TRUE(clock_.AwaitWaiters(kThreads));

  ASSERT_EQ(queue_.counts().depth, 1U);
  EXPECT_EQ(queue_.Get()->key.name, "left");
}

}  // namespace
}  // namespace grus
