// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_quotas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <utility>

#include "clientlib/model/scheduling_v1.h"
#include "controllers/elastic/elastic_status.h"
#include "tests/controllers/elastic/elastic_fixture.h"
#include "tests/controllers/elastic/view_builder.h"
#include "tests/kit/conditions.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Jobs of two to four workers with a GPU each, in a namespace with a quota; nobody counts but the test.
class JobQuotasTest : public testing::ReconcilerFixture {
 protected:
  void SetQuota(const std::string& resource, const std::string& hard, const std::string& used = "0") {
    PutQuota(resource, hard, used);
    if (cache_.HasList()) {
      ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    }
  }
  void Start() {
    job_quotas_.OnMore([this](const kube::ObjectKey& job) {
      std::lock_guard lock(mutex_);
      told_.push_back(job.name);
    });
    StartCaches();
  }
  static ViewBuilder Job(const std::string& name = "bert") {
    return ViewBuilder().MinMax(2, 4).Job([&](auto& job) { job.metadata.name = name; });
  }
  // How many workers it may have, and -1 for all; as in a pass that then plans that many.
  int Plan(const ViewBuilder& builder, std::optional<int> granted = {}) {
    const View view = builder.Build();
    pods_.Ask(*view.job, {});
    limit_ = job_quotas_.LimitOf(view, 4);
    const int workers = limit_ ? limit_->workers : 4;
    grus::Plan plan;
    const int planned = granted.value_or(workers >= 2 ? workers : 0);
    if (planned > 0) plan.workers = WorkersState{planned};
    job_quotas_.Note(view, plan);
    return limit_ ? workers : -1;
  }
  std::vector<std::string> Told() {
    std::lock_guard lock(mutex_);
    return std::exchange(told_, {});
  }

  kube::Informer& cache_ = Cache<kube::ResourceQuota>();
  kube::Informer& classes_ = Cache<kube::PriorityClass>();
  Quotas quotas_{cache_};
  JobPods pods_{client_, clock_};
  JobQuotas job_quotas_{pods_, quotas_, classes_};
  std::optional<QuotaLimit> limit_;
  std::mutex mutex_;
  std::vector<std::string> told_;
};

TEST_F(JobQuotasTest, ANamespaceWithoutQuotasLimitsNobody) {
  Start();
  EXPECT_EQ(Plan(Job()), -1);
}

TEST_F(JobQuotasTest, AStartHasWhatIsLeft) {
  SetQuota("requests.nvidia.com/gpu", "8", "5");
  Start();

  EXPECT_EQ(Plan(Job()), 3);
  EXPECT_EQ(limit_->why, "requests.nvidia.com/gpu: 5 of 8 used");
  SetQuota("requests.nvidia.com/gpu", "8", "4");
  EXPECT_EQ(Plan(Job()), -1);
}

TEST_F(JobQuotasTest, TheLauncherGoesFirstWhileItIsNotThere) {
  SetQuota("pods", "4", "0");
  Start();

  EXPECT_EQ(Plan(Job()), 3);
  EXPECT_EQ(Plan(Job().Granted(2).Ready({0, 1}).LauncherRuns()), -1);
  SetQuota("pods", "4", "3");
  EXPECT_EQ(Plan(Job().Granted(2).Ready({0, 1}).LauncherRuns()), 3);
  SetQuota("pods", "4", "4");
  EXPECT_EQ(Plan(Job()), 0);
  EXPECT_TRUE(limit_->is_of_launcher);
}

TEST_F(JobQuotasTest, WorkersThatExistNeedNoMore) {
  SetQuota("requests.nvidia.com/gpu", "3", "2");
  Start();

  EXPECT_EQ(Plan(Job().Granted(2).Ready({0, 1})), 3);
  EXPECT_EQ(Plan(Job().Granted(3).Ready({0, 1}).Waiting({2})), -1);
}

TEST_F(JobQuotasTest, TwoJobsDoNotStartOnTheSameRest) {
  SetQuota("requests.nvidia.com/gpu", "3", "0");
  Start();

  EXPECT_EQ(Plan(Job("first")), 3);
  EXPECT_EQ(Plan(Job("second")), 0);
  EXPECT_EQ(limit_->why, "requests.nvidia.com/gpu: 0 of 3 used, 3 for other pods on their way");
  EXPECT_THAT(Told(), IsEmpty());

  // Two pods are made, the third is not needed any more.
  SetQuota("requests.nvidia.com/gpu", "3", "2");
  EXPECT_EQ(Plan(Job("first").Granted(2).Ready({0, 1}).LauncherRuns(), 2), 3);
  EXPECT_THAT(Told(), ElementsAre("first", "second"));
  EXPECT_EQ(Plan(Job("second")), 1);
}

TEST_F(JobQuotasTest, WhatAJobThatIsGonePlannedIsFree) {
  SetQuota("requests.nvidia.com/gpu", "3", "0");
  Start();
  EXPECT_EQ(Plan(Job("first")), 3);
  EXPECT_EQ(Plan(Job("second")), 0);

  job_quotas_.Forget({"team-a", "first"});

  EXPECT_THAT(Told(), ElementsAre("second"));
  EXPECT_EQ(Plan(Job("second")), 3);
}

TEST_F(JobQuotasTest, WakesWhomAQuotaLimitedAndNobodyElse) {
  SetQuota("requests.nvidia.com/gpu", "5", "4");
  Start();
  EXPECT_EQ(Plan(Job("limited")), 1);
  EXPECT_FALSE(limit_->is_unstated);
  EXPECT_EQ(Plan(Job("full").Granted(4).Ready({0, 1, 2, 3})), -1);

  SetQuota("requests.nvidia.com/gpu", "5", "5");
  EXPECT_THAT(Told(), IsEmpty());
  SetQuota("requests.nvidia.com/gpu", "9", "5");
  EXPECT_THAT(Told(), ElementsAre("limited"));
}

TEST_F(JobQuotasTest, WhatPodsDoNotStateTheServerIsAskedFor) {
  SetQuota("limits.cpu", "8");
  Start();
  const ViewBuilder job = Job().Job([](auto& j) {
    j.spec.launcher.pod_template =
        *kube::ParseJson(R"({"spec":{"containers":[{"name":"launcher","resources":{"limits":{"cpu":"1"}}}]}})");
  });

  EXPECT_EQ(Plan(job), 0);
  EXPECT_THAT(limit_->why, HasSubstr("failed quota: team: must specify limits.cpu for: worker"));
  EXPECT_TRUE(limit_->is_unstated);
  EXPECT_EQ(limit_->look_again, 5s);
  clock_.Advance(2s);
  EXPECT_EQ(Plan(job), 0);
  EXPECT_EQ(limit_->look_again, 3s) << "not asked with every pass";
}

TEST_F(JobQuotasTest, WhatTheServerDoesNotSayLimitsNobody) {
  SetQuota("limits.cpu", "8");
  Start();
  // As a webhook that cannot be asked: no pod at all can be made in this namespace.
  Edit("namespaces", {"", "team-a"},
       [](Json& ns) { ns["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"; });

  EXPECT_EQ(Plan(Job().Job([](auto& job) {
              job.spec.workers.pod_template = job.spec.launcher.pod_template =
                  *kube::ParseJson(R"({"spec":{"hostPID":true}})");
            })),
            -1);
}

TEST_F(JobQuotasTest, PodsAreOfTheDefaultPriorityClass) {
  Json made = Named("scheduling.k8s.io/v1", "PriorityClass", "usual");
  made["value"] = 10;
  made["globalDefault"] = true;
  Create("priorityclasses.scheduling.k8s.io", std::move(made));
  SetQuota("requests.nvidia.com/gpu", "1");
  Edit("resourcequotas", {"team-a", "team"}, [](Json& quota) {
    quota["spec"]["scopeSelector"] =
        *kube::ParseJson(R"({"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["usual"]}]})");
  });
  Start();

  EXPECT_EQ(Plan(Job()), 1);
}

using ElasticQuotasTest = ElasticFixture;

TEST_F(ElasticQuotasTest, AStartThatIsNotAdmittedWaitsAndGetsNoPlaces) {
  PutQuota("requests.nvidia.com/gpu", "8", "7");
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = 2;
    job.spec.workers.max_replicas = 4;
  });
  Start();

  ASSERT_TRUE(Pass());

  EXPECT_EQ(kit::ReasonIn(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.conditions), "WaitingForQuota");
  EXPECT_EQ(Message(),
            "waiting: quota \"team\" of namespace team-a leaves room for 1 more worker of the 2 needed "
            "(requests.nvidia.com/gpu: 7 of 8 used)");
  EXPECT_THAT(account_.PlacesOf("team-a/bert"), IsEmpty());
  EXPECT_EQ(account_.AnyWaiting(), "");
  EXPECT_FALSE(server_.Get("pods", {"team-a", "bert-workers-0"}));

  const auto adds = queue_.counts().adds;
  PutQuota("requests.nvidia.com/gpu", "8", "5");
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(queue_.counts().adds, adds + 1);
  ASSERT_TRUE(Pass());

  EXPECT_EQ(account_.PlacesOf("team-a/bert").size(), 3U);
  EXPECT_TRUE(server_.Get("pods", {"team-a", "bert-workers-0"}));
}

}  // namespace
}  // namespace grus
