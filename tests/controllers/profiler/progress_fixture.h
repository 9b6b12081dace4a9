// SPDX-License-Identifier: Apache-2.0
// Jobs that run, against an API server in this process; the test plays all other controllers and the kubelet.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "clientlib/model/json_writer.h"
#include "controllers/cluster/owners.h"
#include "controllers/profiler/progress_watch.h"
#include "tests/controllers/profile/profile_builders.h"
#include "tests/kit/log_wire.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus::testing {

using namespace std::chrono_literals;
using kube::Json;

inline constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";

class ProgressFixture : public ReconcilerFixture {
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
  // One pass, now. Returns when the next one is due.
  kube::Duration PassNow(const std::string& job) {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    const auto action = watch_.Reconcile({"team-a", job}, {});
    EXPECT_TRUE(action) << action.error().message();
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    return action && action->delay() ? *action->delay() : 0s;
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
  // As `kubectl annotate` does; an empty value takes it off.
  void Annotate(std::string_view resource, const std::string& name,
                const std::vector<std::pair<std::string, std::string>>& values) {
    Edit(resource, {"team-a", name}, [&](Json& object) {
      for (const auto& [key, value] : values) {
        object["metadata"]["annotations"]["ai.centauruscloud.io/" + key] = value;
      }
    });
  }
  void Push(const std::string& job, const std::vector<std::pair<std::string, std::string>>& values) {
    Annotate(kJobs, job, values);
    PassNow(job);
  }
  // The speed of its workload, in samples a second by GPUs.
  void AddProfile(const std::string& job, const std::vector<std::pair<int, double>>& speeds) {
    api::WorkloadProfileSpec spec{"bert", {}, api::ThroughputUnit::kSamplesPerSecond, {}};
    for (const auto& [gpus, speed] : speeds) {
      spec.points.push_back(MakePoint({"A100", gpus, 1, 32}, 32.0 * gpus / speed * 1000));
      spec.points.back().name = "a100-" + std::to_string(gpus);
    }
    Json profile = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", "bert");
    profile["spec"] = kube::ToJson(spec);
    Create("workloadprofiles.ai.centauruscloud.io", std::move(profile));
    Edit(
        kJobs, {"team-a", job}, [](Json& object) { object["status"]["profile"]["name"] = "bert"; }, "status");
  }
  // "ProgressRefused: annotation ..."
  std::vector<std::string> Events() {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    std::vector<std::string> events;
    for (const auto& event : server_.List("events.events.k8s.io")) {
      events.push_back(*event->At({"reason"})->AsString() + ": " + *event->At({"note"})->AsString());
    }
    return events;
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
  kube::Informer& jobs_ = Cache<api::ElasticHorovodJob>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer& profiles_ = Cache<api::WorkloadProfile>();
  ClusterAccount account_{nodes_, pods_, clock_};
  ProgressWatch watch_{wired_, {jobs_, pods_, &profiles_}, account_, events_, clock_, log_};
};

}  // namespace grus::testing
