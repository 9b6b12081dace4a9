// SPDX-License-Identifier: Apache-2.0
// Jobs that run, against an API server in this process; the test plays all other controllers and the kubelet.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/model/json_writer.h"
#include "controllers/cluster/owners.h"
#include "controllers/profile/running_jobs.h"
#include "tests/controllers/profile/profile_builders.h"
#include "tests/kit/log_wire.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus::testing {

using namespace std::chrono_literals;
using kube::Json;

inline constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";
inline constexpr char kProfiles[] = "workloadprofiles.ai.centauruscloud.io";
inline constexpr char kProfile[] = "0123456789abcdef0123456789abcdef";

class RunningJobsFixture : public ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    Edit("nodes", {"", "n1"}, [](Json& node) { node["metadata"]["labels"]["nvidia.com/gpu.product"] = "A100"; });
  }

  void AddPod(const std::string& job, const std::string& role, const std::string& suffix) {
    Json pod = Named("v1", "Pod", job + "-" + suffix, "team-a");
    pod["metadata"]["labels"] = Json::MakeObject({{kJobNameLabel, job}, {kRoleLabel, role}});
    const std::string parts = role == "worker" ? R"({"ai.centauruscloud.io/gpu-milli":"300"})" : "{}";
    pod["spec"] =
        *kube::ParseJson(R"({"nodeName":"n1","containers":[{"name":")" + role +
                         R"(","image":"a","resources":{"requests":)" + parts + R"(,"limits":)" + parts + "}}]}");
    Create("pods", std::move(pod));
    SetStatus("pods", {"team-a", job + "-" + suffix},
              R"({"phase":"Running","containerStatuses":[{"name":")" + role + R"(","state":{"running":{}}}]})");
  }
  void SetWorkers(const std::string& job, int workers) {
    const std::string n = std::to_string(workers);
    SetStatus(kJobs, {"team-a", job},
              R"({"phase":"Running","profile":{"name":")" + std::string(kProfile) + R"("},"replicas":{"granted":)" + n +
                  R"(,"ready":)" + n + "}}");
  }
  static Json JobNamed(const std::string& name) {
    Json job = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", name, "team-a");
    job["spec"] =
        *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":["p"]},"workersSpec":{"image":"a"}})");
    return job;
  }
  void AddJob(const std::string& name, int workers = 4) {
    Create(kJobs, JobNamed(name));
    for (int i = 0; i < workers; ++i) AddPod(name, "worker", "workers-" + std::to_string(i));
    AddPod(name, "launcher", "launcher");
    SetWorkers(name, workers);
  }
  // 800 samples a second on 4 GPUs.
  void AddProfile(std::vector<api::ProfilePoint> points = {MakePoint({"A100", 4, 0, 0}, 160)}) {
    for (api::ProfilePoint& point : points) {
      point.name = PointName(point.config);
      point.time = kube::Time{clock_.WallNow()};
    }
    const auto job = kube::Decode<api::ElasticHorovodJob>(kube::ToText(JobNamed("any")));
    ASSERT_TRUE(job);
    const api::WorkloadProfileSpec spec{fingerprint_.empty() ? *ProfileNameOf(**job, store_.trust()) : fingerprint_,
                                        {},
                                        api::ThroughputUnit::kSamplesPerSecond,
                                        std::move(points)};
    Json profile = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", kProfile);
    profile["spec"] = kube::ToJson(spec);
    Create(kProfiles, std::move(profile));
  }
  void Start() {
    running_.FeedQueue(queue_);
    restarted_.FeedQueue(other_queue_);
    StartCaches();
  }

  // Jobs of the profile, which the caches know.
  void StartJobs(std::initializer_list<const char*> jobs) {
    AddProfile();
    for (const char* job : jobs) AddJob(job);
    Start();
  }
  kube::Duration Pass(RunningJobs& running, const std::string& job) {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    const auto action = running.Reconcile({"team-a", job}, {});
    EXPECT_TRUE(action) << action.error().message();
    return action && action->delay() ? *action->delay() : 0s;
  }
  kube::Duration Pass(const std::string& job) { return Pass(running_, job); }

  // Until its log is followed.
  void Begin(RunningJobs& running, const std::string& job) {
    for (int i = 0; i < 3; ++i) {
      const kube::Duration delay = Pass(running, job);
      if (delay == kLookEvery) break;
      clock_.Advance(delay);
    }
    ++waiters_;  // The follower.
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  // Ten lines a second, a little up and down.
  void Print(const std::string& job, double speed, std::chrono::seconds seconds = 40s) {
    for (int i = 0; i < 10 * seconds.count(); ++i) {
      char line[80];
      std::snprintf(line, sizeof line, "step %d loss 2.3 total speed %.2f samples/s\n", i,
                    speed * (1 + 0.01 * (i % 3 - 1)));
      server_.AppendPodLog({"team-a", job + "-launcher"}, "launcher", clock_.WallNow() + i * 100ms, line);
    }
    clock_.Advance(seconds);
  }
  kube::Duration End(RunningJobs& running, const std::string& job) {
    const kube::Duration delay = Pass(running, job);
    --waiters_;
    return delay;
  }
  // One sample of a job that trains at that speed.
  void Sample(RunningJobs& running, const std::string& job, double speed) {
    Begin(running, job);
    Print(job, speed);
    EXPECT_EQ(End(running, job), kSampleEvery);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  void Sample(const std::string& job, double speed) { Sample(running_, job, speed); }

  std::shared_ptr<const api::WorkloadProfile> Profile() {
    return server_.Get(kProfiles, {"", kProfile}) ? Live<api::WorkloadProfile>({"", kProfile}) : nullptr;
  }
  std::string fingerprint_;  // Of the profile; empty: that of the jobs.
  kit::LogWire wire_{server_, kube::Error(kube::ErrorCode::kForbidden, "pods/log is forbidden")};
  kube::Client wired_{wire_, nullptr, clock_};
  kube::WorkQueue other_queue_{clock_};
  kube::Informer& jobs_ = Cache<api::ElasticHorovodJob>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer& profiles_ = Cache<api::WorkloadProfile>();
  ProfileStore store_{wired_, profiles_, clock_};
  RunningJobs running_{wired_, {jobs_, pods_, nodes_, profiles_}, store_, events_, clock_, log_};
  // Another process.
  RunningJobs restarted_{wired_, {jobs_, pods_, nodes_, profiles_}, store_, events_, clock_, log_};
};

}  // namespace grus::testing
