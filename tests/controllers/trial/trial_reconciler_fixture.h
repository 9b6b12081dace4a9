// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of the TrialJob reconciler.
#pragma once

#include <gmock/gmock.h>

#include <array>

#include "clientlib/model/core_v1.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"
#include "controllers/cluster/owners.h"
#include "controllers/trial/trial_reconciler.h"
#include "crds/types/all_crds.h"
#include "crds/types/pod_group.h"
#include "tests/controllers/trial/trial_world.h"

namespace grus::testing {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;

inline constexpr char kTrialJobs[] = "trialjobs.ai.centauruscloud.io";
inline constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";
inline constexpr char kGroups[] = "podgroups.scheduling.x-k8s.io";

// One TrialJob against an API server in this process; the test plays all other controllers and the kubelet.
class TrialReconcilerFixture : public ::testing::Test {
 protected:
  TrialReconcilerFixture() {
    server_.AddObserver([this](const kube::testing::ServerChange& change) {
      if (change.resource == kTrialJobs || change.resource == kJobs || change.resource == kGroups) {
        changes_.push_back((change.after ? change.before ? "change " : "create " : "delete ") + change.resource);
      }
    });
    for (const kube::CrdInfo& crd : api::AllCrds()) {
      Create("customresourcedefinitions.apiextensions.k8s.io", kube::MakeCrd(crd));
    }
    Json node = Named("v1", "Node", "n1");
    node["status"]["allocatable"] = Json::MakeObject({{"cpu", "64"}, {"nvidia.com/gpu", "8"}});
    Create("nodes", std::move(node));
    Create("namespaces", Named("v1", "Namespace", "team-a"));
  }
  ~TrialReconcilerFixture() override {
    for (kube::Informer* informer : Informers()) informer->Stop();
    for (kube::Informer* informer : Informers()) informer->Join();
  }

  static Json Named(const char* api_version, const char* kind, const std::string& name) {
    return Json::MakeObject(
        {{"apiVersion", api_version}, {"kind", kind}, {"metadata", Json::MakeObject({{"name", name}})}});
  }
  void Create(std::string_view resource, Json object) {
    const auto created = server_.Create(resource, std::move(object), "test");
    ASSERT_TRUE(created) << created.error().message();
  }
  void AddTrialJob(std::string_view spec) {
    Json job = Named("ai.centauruscloud.io/v1alpha1", "TrialJob", "tune");
    job["metadata"]["namespace"] = "team-a";
    job["spec"] =
        *kube::ParseJson(R"({"workload":{"template":{"spec":{"launcherSpec":{"image":"a","pythonCommand":["p"]},
        "workersSpec":{"image":"a"}}}},"space":{"gpuCounts":[1]}})");
    const Json overlay = *kube::ParseJson(spec);
    if (overlay.At({"workload", "podTemplate"}) != nullptr) job["spec"].Erase("workload");
    kube::MergePatch(job["spec"], overlay);
    Create(kTrialJobs, std::move(job));
  }
  void Start() {
    trials_.FeedQueue(queue_);
    for (kube::Informer* informer : Informers()) informer->Start();
    for (kube::Informer* informer : Informers()) ASSERT_TRUE(informer->WaitForSync(clock_.Now() + 1h));
  }
  std::array<kube::Informer*, 6> Informers() { 
    return {&trial_jobs_, &jobs_, &pods_, &nodes_, &profiles_, &groups_};
  }

  kube::Duration Pass() {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    const auto action = trials_.Reconcile({"team-a", "tune"}, {});
    EXPECT_TRUE(action) << action.error().message();
    return action && action->delay() ? *action->delay() : 0s;
  }
  std::shared_ptr<api::TrialJob> Tune() {
    const auto read = kube::Decode<api::TrialJob>(ToText(*server_.Get(kTrialJobs, {"team-a", "tune"})));
    EXPECT_TRUE(read);
    return *read;
  }
  std::string ReadyReason() {
    const auto job = Tune();
    const auto* ready = kube::FindCondition(job->status.conditions, "Ready");
    return ready ? ready->reason : "";
  }
  std::string TheTrial() { return Tune()->status.trials.at(0).name; }
  // A pod of the trial that is bound and runs.
  void RunPod(const std::string& trial, const std::string& role, const std::string& node = "n1") {
    const std::string name = trial + "-" + role + (node == "n1" ? "" : "-" + node);
    Json pod = Named("v1", "Pod", name);
    pod["metadata"]["namespace"] = "team-a";
    pod["metadata"]["labels"] = Json::MakeObject({{kJobNameLabel, trial}, {kRoleLabel, role}});
    pod["spec"] =
        *kube::ParseJson(R"({"nodeName":")" + node + R"(","containers":[{"name":")" + role + R"(","image":"a"}]})");
    Create("pods", pod);
    SayRunning(name, role);
  }
  void SayRunning(const std::string& pod, const std::string& container) {
    const std::string now = kube::ToText(kube::Time{clock_.WallNow()});
    Json running = *server_.Get("pods", {"team-a", pod});
    running["status"] =
        *kube::ParseJson(R"({"phase":"Running","startTime":")" + now +
                         R"(","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":")" + now +
                         R"("}],"containerStatuses":[{"name":")" + container +
                         R"(","state":{"running":{"startedAt":")" + now + R"("}}}]})");
    const auto updated = server_.Update("pods", std::move(running), "test", "status");
    ASSERT_TRUE(updated) << updated.error().message();
  }
  void EndPods() {
    for (const auto& pod : server_.List("pods", "team-a")) {
      const std::string name = *pod->At({"metadata", "name"})->AsString();
      ASSERT_TRUE(server_.Delete("pods", {"team-a", name}, *kube::ParseJson(R"({"gracePeriodSeconds":0})")));
    }
  }

  std::vector<std::string> changes_;
  kube::testing::FakeClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  kube::Log log_{kube::LogLevel::kOff};
  kube::Client client_{server_, nullptr, clock_};
  kube::WorkQueue queue_{clock_};
  kube::EventRecorder events_{client_, clock_, log_, {"example.com/test", "test"}};
  kube::Informer trial_jobs_{client_, KindOf<api::TrialJob>(), {}, clock_, log_};
  kube::Informer jobs_{client_, KindOf<api::ElasticHorovodJob>(), {}, clock_, log_};
  kube::Informer pods_{client_, KindOf<kube::Pod>(), {}, clock_, log_};
  kube::Informer nodes_{client_, KindOf<kube::Node>(), {}, clock_, log_};
  kube::Informer groups_{client_, KindOf<api::PodGroup>(), {}, clock_, log_};
  kube::Informer profiles_{client_, KindOf<api::WorkloadProfile>(), {}, clock_, log_};
  ClusterRoom room_{nodes_, pods_, clock_};
  ProfileStore store_{client_, profiles_, clock_};
  kube::testing::FakeTransport network_{clock_};
  Prometheus prometheus_{[this](const std::string&) -> kube::Result<std::shared_ptr<kube::Transport>> {
    return std::shared_ptr<kube::Transport>(&network_, [](kube::Transport*) {});
  }};
  TrialReconciler trials_{
      client_, {trial_jobs_, jobs_, pods_, nodes_, &groups_}, room_, store_, prometheus_, events_, clock_, log_};
  int waiters_ = 6 + 1;  // And the recorder.
};

}  // namespace grus::testing
