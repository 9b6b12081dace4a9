// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of the TrialJob reconciler.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "clientlib/testing/fake_transport.h"
#include "controllers/cluster/owners.h"
#include "controllers/trial/trial_reconciler.h"
#include "crds/types/pod_group.h"
#include "tests/kit/conditions.h"
#include "tests/kit/moment.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus::testing {

using namespace std::chrono_literals;
using kube::Json;

inline constexpr char kTrialJobs[] = "trialjobs.ai.centauruscloud.io";
inline constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";
inline constexpr char kGroups[] = "podgroups.scheduling.x-k8s.io";

// One TrialJob against an API server in this process; the test plays all other controllers and the kubelet.
class TrialReconcilerFixture : public ReconcilerFixture {
 protected:
  TrialReconcilerFixture() {
    server_.AddObserver([this](const kube::testing::ServerChange& change) {
      if (change.resource == kTrialJobs || change.resource == kJobs || change.resource == kGroups) {
        changes_.push_back((change.after ? change.before ? "change " : "create " : "delete ") + change.resource);
      }
    });
  }

  void AddTrialJob(std::string_view spec) {
    Json job = Named("ai.centauruscloud.io/v1alpha1", "TrialJob", "tune", "team-a");
    job["spec"] =
        *kube::ParseJson(R"({"workload":{"template":{"spec":{"launcherSpec":{"image":"a","pythonCommand":["p"]},
        "workersSpec":{"image":"a"}}}},"space":{"gpuCounts":[1]}})");
    const Json overlay = *kube::ParseJson(spec);
    if (overlay.At({"workload", "podTemplate"}) != nullptr) job["spec"].Erase("workload");
    kube::MergePatch(job["spec"], overlay);
    Create(kTrialJobs, std::move(job));
  }
  // The TrialJob goes, and another of its name comes.
  void ReplaceTrialJob(std::string_view spec) {
    ASSERT_TRUE(server_.Delete(kTrialJobs, {"team-a", "tune"}, Json::MakeObject()));
    Pass();
    AddTrialJob(spec);
  }
  void Start() {
    trials_.FeedQueue(queue_);
    StartCaches();
  }

  kube::Duration Pass() {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    const auto action = trials_.Reconcile({"team-a", "tune"}, {});
    EXPECT_TRUE(action) << action.error().message();
    return action && action->delay() ? *action->delay() : 0s;
  }
  // Several passes, each as soon as a trial is looked at again, that find nothing new and write nothing.
  void ExpectIdlePasses() {
    const std::uint64_t revision = server_.revision();
    for (int i = 0; i < 5; ++i) {
      clock_.Advance(kPoll);
      Pass();
    }
    EXPECT_EQ(server_.revision(), revision);
  }
  // So many times at most, that long after each other; `before` is what happens before each pass.
  template <typename F>
  void PassUntilMeasured(int most, kube::Duration every, F before) {
    for (int i = 0; i < most && Tune()->status.trials[0].phase != api::TrialPhase::kSucceeded; ++i) {
      clock_.Advance(every);
      before(i);
      Pass();
    }
  }
  std::shared_ptr<const api::TrialJob> Tune() { return Live<api::TrialJob>({"team-a", "tune"}); }
  std::string ReadyReason() { return kit::ReasonIn(Tune()->status.conditions); }
  std::string ReadyMessage() { return kit::MessageIn(Tune()->status.conditions); }
  std::string TheTrial() { return Tune()->status.trials.at(0).name; }
  // A pod of the trial that is bound and runs.
  void RunPod(const std::string& trial, const std::string& role, const std::string& node = "n1") {
    const std::string name = trial + "-" + role + (node == "n1" ? "" : "-" + node);
    Json pod = Named("v1", "Pod", name, "team-a");
    pod["metadata"]["labels"] = Json::MakeObject({{kJobNameLabel, trial}, {kRoleLabel, role}});
    pod["spec"] =
        *kube::ParseJson(R"({"nodeName":")" + node + R"(","containers":[{"name":")" + role + R"(","image":"a"}]})");
    Create("pods", pod);
    SayRunning(name, role);
  }
  void SayRunning(const std::string& pod, const std::string& container) {
    const std::string now = kube::ToText(kube::Time{clock_.WallNow()});
    SetStatus("pods", {"team-a", pod},
              R"({"phase":"Running","startTime":")" + now +
                  R"(","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":")" + now +
                  R"("}],"containerStatuses":[{"name":")" + container + R"(","state":{"running":{"startedAt":")" + now +
                  R"("}}}]})");
  }
  void EndPods() {
    for (const auto& pod : server_.List("pods", "team-a")) {
      const std::string name = *pod->At({"metadata", "name"})->AsString();
      ASSERT_TRUE(server_.Delete("pods", {"team-a", name}, *kube::ParseJson(R"({"gracePeriodSeconds":0})")));
    }
  }

  std::vector<std::string> changes_;
  kube::Informer& trial_jobs_ = Cache<api::TrialJob>();
  kube::Informer& jobs_ = Cache<api::ElasticHorovodJob>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer& groups_ = Cache<api::PodGroup>();
  kube::Informer& profiles_ = Cache<api::WorkloadProfile>();
  ClusterAccount account_{nodes_, pods_, clock_};
  ProfileStore store_{client_, profiles_, clock_};
  kube::testing::FakeTransport network_{clock_};
  Prometheus prometheus_{[this](const std::string&) -> kube::Result<std::shared_ptr<kube::Transport>> {
                           return std::shared_ptr<kube::Transport>(&network_, [](kube::Transport*) {});
                         },
                         clock_,
                         {"http://p:9090"}};
  TrialReconciler trials_{
      client_, {trial_jobs_, jobs_, pods_, nodes_, &groups_}, account_, store_, prometheus_, events_, clock_, log_};
};

}  // namespace grus::testing
