// SPDX-License-Identifier: Apache-2.0
// One job and its reconciler against an API server in this process.
#pragma once

#include <functional>
#include <string>

#include "clientlib/model/scheduling_v1.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_reconciler.h"
#include "crds/types/pod_group.h"
#include "crds/types/workload_profile.h"
#include "tests/controllers/elastic/test_job.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {

inline constexpr char kJobResource[] = "elastichorovodjobs.ai.centauruscloud.io";

class ElasticFixture : public testing::ReconcilerFixture {
 protected:
  explicit ElasticFixture(bool makes_gangs = false) : groups_(makes_gangs ? &Cache<api::PodGroup>() : nullptr) {}

  void AddJob(const std::function<void(api::ElasticHorovodJob&)>& change) {
    api::ElasticHorovodJob job = TestJob();
    job.metadata.uid.clear();
    job.metadata.generation = 0;
    job.status = {};
    change(job);
    Create(kJobResource, *kube::ParseJson(kube::EncodeObject(kube::KindOf<api::ElasticHorovodJob>(), job)));
  }
  void AddClass(const std::string& name, int value) {
    kube::Json made = Named("scheduling.k8s.io/v1", "PriorityClass", name);
    made["value"] = value;
    Create("priorityclasses.scheduling.k8s.io", std::move(made));
  }
  // The first one, which is there.
  void BindWorker(const std::string& node = "n1") { ASSERT_TRUE(server_.Bind({"team-a", "bert-workers-0"}, node)); }
  // A job of one worker, of which nothing but a first pass was seen.
  void StartJobOfOne() {
    AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1; });
    Start();
    ASSERT_TRUE(Pass());
  }
  // A job whose one worker is ready, with all of its children.
  void AddRunningJob() {
    StartJobOfOne();
    BindWorker();
    SetStatus("pods", {"team-a", "bert-workers-0"}, R"({"phase":"Running","podIP":"10.0.0.1","conditions":[
        {"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]})");
    Settle();
  }
  // Objects of somebody else's that have the names of ours.
  void AddForeignPod(const std::string& name, const char* owners = "[]") {
    kube::Json pod = Named("v1", "Pod", name, "team-a");
    pod["metadata"]["ownerReferences"] = *kube::ParseJson(owners);
    pod["spec"] = *kube::ParseJson(R"({"containers":[{"name":"other","image":"a"}]})");
    Create("pods", std::move(pod));
  }
  // So many that a job of one worker gives up.
  void TakeNamesOfWorkers() {
    for (int ordinal = 0; ordinal < 20; ++ordinal) AddForeignPod(PodName(ordinal));
  }
  void Start() {
    elastic_.FeedQueue(queue_);
    StartCaches();
  }
  // A pass on caches that have seen everything.
  kube::Result<kube::Action> Pass() {
    EXPECT_TRUE(clock_.AwaitWaiters(waiters_));
    return elastic_.Reconcile({"team-a", "bert"}, {});
  }
  // Of passes until no more than time is waited for: the last one's delay.
  kube::Duration Settle() {
    kube::Duration delay{};
    for (int i = 0; i < 20 && delay <= std::chrono::seconds(5); ++i) {
      const kube::Result<kube::Action> action = Pass();
      EXPECT_TRUE(action) << action.error().message();
      if (!action || !action->delay()) return {};
      delay = *action->delay();
      if (delay <= std::chrono::seconds(5)) clock_.Advance(delay);
    }
    return delay;
  }

  // A launcher that asks for a GPU itself.
  static void LauncherOnGpu(api::ElasticHorovodJob& job) {
    job.spec.launcher.pod_template = *kube::ParseJson(
        R"({"spec":{"containers":[{"name":"launcher","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})");
  }
  std::string Message() {
    const auto job = Live<api::ElasticHorovodJob>({"team-a", "bert"});
    const kube::Condition* ready = kube::FindCondition(job->status.conditions, "Ready");
    return ready ? ready->message : "";
  }

  kube::Informer& jobs_ = Cache<api::ElasticHorovodJob>();
  kube::Informer& services_ = Cache<kube::Service>();
  kube::Informer& maps_ = Cache<kube::ConfigMap>();
  kube::Informer& launchers_ = Cache<kube::Job>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer& classes_ = Cache<kube::PriorityClass>();
  kube::Informer& profiles_ = Cache<api::WorkloadProfile>();
  kube::Informer* const groups_;
  Quotas quotas_{Cache<kube::ResourceQuota>()};
  kube::Registry metrics_;
  ClusterAccount account_{nodes_, pods_, clock_, Nominations::kAuto, nullptr, nullptr, &metrics_};
  ElasticReconciler elastic_{
      client_,  {jobs_, services_, maps_, launchers_, pods_, nodes_, classes_, quotas_, groups_, &profiles_},
      account_, events_,
      clock_,   log_};
};

}  // namespace grus
