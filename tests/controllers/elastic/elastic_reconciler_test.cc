// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_reconciler.h"

#include <gmock/gmock.h>

#include <functional>

#include "controllers/elastic/job_children.h"
#include "controllers/policy/workload_fingerprint.h"
#include "controllers/policy/yield_words.h"
#include "tests/controllers/elastic/elastic_fixture.h"
#include "tests/kit/conditions.h"
#include "tests/kit/moment.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::HasSubstr;
using ::testing::Not;

using ElasticReconcilerTest = ElasticFixture;

TEST_F(ElasticReconcilerTest, AJobWhoseWorkersAreAllBoundKeepsNoPlaces) {
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1;
    job.spec.workers.target_replicas = 1;
  });
  Start();
  ASSERT_TRUE(Pass());
  ASSERT_EQ(account_.PlacesOf("team-a/bert").size(), 1U);
  BindWorker();
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  ASSERT_TRUE(account_.PlacesOf("team-a/bert").empty()) << "the bind ends the place";
  // As a pass does that looked at the pods before the last of them was bound.
  account_.KeepPlaces("team-a/bert", GpuShape(1), 1);

  ASSERT_TRUE(Pass());

  EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty());
}

TEST_F(ElasticReconcilerTest, AJobThatHasNotBegunHasNoWorkersAndNoEmptyColumns) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.run_policy.suspend = true; });
  Start();
  Settle();
  const auto job = server_.Get(kJobResource, {"team-a", "bert"});
  for (const char* count : {"ready", "granted"}) {
    const Json* found = job->At({"status", "replicas", count});
    ASSERT_TRUE(found) << count;
    EXPECT_EQ(*found, Json(0)) << count;
  }
}

TEST_F(ElasticReconcilerTest, AResizeCountsOnceWhenTheStatusSaysIt) {
  AddRunningJob();
  const auto resize = [&](int workers) {
    Edit(kJobResource, {"team-a", "bert"}, [&](Json& job) {
      job["spec"]["workersSpec"]["maxReplicas"] = 3;
      job["spec"]["workersSpec"]["targetReplicas"] = workers;
    });
    Settle();
    clock_.Advance(30s);  // A shrink waits until its workers have drained.
    Settle();
    ASSERT_EQ(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.replicas.granted, workers);
  };
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("grus_elastic_resizes_total"))) << "a start is no resize";
  resize(3);
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(grus_elastic_resizes_total{queue="default",direction="grow"} 1)"));
  resize(2);
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(grus_elastic_resizes_total{queue="default",direction="shrink"} 1)"));
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(grus_elastic_resizes_total{queue="default",direction="grow"} 1)"));
}

TEST_F(ElasticReconcilerTest, AServiceThatSomebodyChangedIsRepaired) {
  const kube::ObjectKey key{"team-a", "bert-workers"};
  AddRunningJob();
  ASSERT_TRUE(server_.Get("services", key));
  const Json ours = *server_.Get("services", key);
  const std::function<void(Json&)> damages[] = {
      [](Json& service) { service["metadata"]["labels"][kManagedByLabel] = "somebody"; },
      [](Json& service) {
        service["spec"]["selector"] = Json::MakeObject({{"app", "other"}});
      }};
  for (const auto& damage : damages) {
    Edit("services", key, damage);
    Settle();
    const auto service = server_.Get("services", key);
    EXPECT_EQ(*service->At({"metadata", "labels"}), *ours.At({"metadata", "labels"}));
    EXPECT_EQ(*service->At({"spec", "selector"}), *ours.At({"spec", "selector"}));
  }
}

TEST_F(ElasticReconcilerTest, APodOfOthersThatHasAWorkersNameIsLeftAlone) {
  AddForeignPod("bert-workers-0");
  AddForeignPod("bert-workers-1", R"([{"apiVersion":"ai.centauruscloud.io/v1alpha1",
      "kind":"ElasticHorovodJob","name":"bert","uid":"of-the-one-before","controller":true}])");
  AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 2; });
  Start();

  ASSERT_TRUE(Pass());

  for (const int taken : {0, 1}) {
    EXPECT_EQ(server_.Get("pods", {"team-a", PodName(taken)})->At({"spec", "hostname"}), nullptr) << taken;
  }
  for (const int made : {2, 3}) EXPECT_NE(server_.Get("pods", {"team-a", PodName(made)}), nullptr) << made;
}

// Or Horovod would wait for a host that is gone for as long as no worker can be made.
TEST_F(ElasticReconcilerTest, ALostWorkerLeavesTheHostListAlsoWhenNoOtherCanBeMade) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 2; });
  Start();
  ASSERT_TRUE(Pass());
  for (const int ordinal : {0, 1}) {
    const kube::ObjectKey worker{"team-a", PodName(ordinal)};
    ASSERT_TRUE(server_.Bind(worker, "n1"));
    SetStatus("pods", worker, R"({"phase":"Running","podIP":"10.0.0.)" + std::to_string(ordinal + 1) + R"(",
        "conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]})");
  }
  Settle();
  const auto hosts = [&] {
    return *server_.Get("configmaps", {"team-a", "bert-hosts"})->At({"data", "hosts"})->AsString();
  };
  ASSERT_THAT(hosts(), HasSubstr("10.0.0.2"));
  Edit(kJobResource, {"team-a", "bert"}, [](Json& job) {
    job["spec"]["workersSpec"]["template"] = *kube::ParseJson(R"({"metadata":{"labels":{"a":"no label!"}}})");
  });
  ASSERT_TRUE(server_.Delete("pods", {"team-a", PodName(1)}, Json::MakeObject({{"gracePeriodSeconds", 0}})));
  clock_.Advance(1min);

  for (int pass = 0; pass < 3; ++pass) (void)Pass();

  EXPECT_THAT(hosts(), Not(HasSubstr("10.0.0.2")));
  EXPECT_EQ(kit::ReasonIn(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.conditions), "TemplateRefused");
}

TEST_F(ElasticReconcilerTest, AWorkerThatEndsIsReplacedBeforeItIsGone) {
  StartJobOfOne();
  BindWorker();
  clock_.Advance(1min);
  Edit("pods", {"team-a", PodName(0)},
       [](Json& pod) { pod["metadata"]["finalizers"] = Json::MakeArray({"example.com/held"}); });
  SetStatus("pods", {"team-a", PodName(0)}, R"({"phase":"Failed"})");

  Settle();

  EXPECT_TRUE(server_.Get("pods", {"team-a", PodName(0)})->At({"metadata", "deletionTimestamp"}));
  EXPECT_NE(server_.Get("pods", {"team-a", PodName(1)}), nullptr);
  EXPECT_EQ(server_.Get("pods", {"team-a", PodName(2)}), nullptr);
}

TEST_F(ElasticReconcilerTest, SaysWhichProfileItHasAsSoonAsThereIsOne) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.run_policy.suspend = true; });
  Start();
  Settle();
  const auto profile = [&] {
    const Json* found = server_.Get(kJobResource, {"team-a", "bert"})->At({"status", "profile"});
    return found ? ToText(*found) : "";
  };
  EXPECT_EQ(profile(), "");
  const auto adds_before = queue_.counts().adds;

  const std::string name = *ProfileNameOf(TestJob(), ProfileTrust::kNamespace);
  Json made = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", name);
  made["spec"]["fingerprint"] = name;
  Create("workloadprofiles.ai.centauruscloud.io", std::move(made));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(queue_.counts().adds, adds_before + 1);  // The job is looked at again.
  Settle();

  EXPECT_EQ(profile(), R"({"name":")" + name + R"("})");
}

TEST_F(ElasticReconcilerTest, AProfileThatAJobNamesCountsBeforeTheCacheHasSeenIt) {
  kube::Informer has_seen_none(client_, kube::KindOf<api::WorkloadProfile>(), {}, clock_, log_);
  ElasticReconciler elastic(
      client_, {jobs_, services_, maps_, launchers_, pods_, nodes_, classes_, quotas_, groups_, &has_seen_none},
      account_, events_, clock_, log_);
  Json ours = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", "ours");
  ours["spec"]["fingerprint"] = "ours";
  Create("workloadprofiles.ai.centauruscloud.io", std::move(ours));
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.run_policy.suspend = true;
    job.spec.profile = "ours";
  });
  Start();
  for (int pass = 0; pass < 3; ++pass) {
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    ASSERT_TRUE(elastic.Reconcile({"team-a", "bert"}, {}));
    const auto profile = Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.profile;
    EXPECT_EQ(profile ? profile->name : "none", "ours");
  }
}

TEST_F(ElasticReconcilerTest, ProgressThatIsPushedWakesNobody) {
  AddRunningJob();
  const auto adds_before = queue_.counts().adds;
  for (const char* step : {"1", "2", "3"}) {
    Edit(kJobResource, {"team-a", "bert"},
         [&](Json& job) { job["metadata"]["annotations"]["ai.centauruscloud.io/step"] = step; });
  }
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(queue_.counts().adds, adds_before);
  Edit(kJobResource, {"team-a", "bert"}, [](Json& job) { job["metadata"]["annotations"]["example.com/a"] = "1"; });
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(queue_.counts().adds, adds_before + 1);
}

TEST_F(ElasticReconcilerTest, Q10AJobThatNothingHappensToIsLookedAtEveryHour) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.run_policy.suspend = true; });
  Start();

  EXPECT_EQ(Settle(), 1h);

  const auto version = [&] {
    return *server_.Get(kJobResource, {"team-a", "bert"})->At({"metadata", "resourceVersion"});
  };
  const Json before = version();
  clock_.Advance(1h);
  EXPECT_EQ(*Pass()->delay(), 1h);
  EXPECT_EQ(version(), before);  // No write that would bring the next pass.
}

TEST_F(ElasticReconcilerTest, JobsAreLookedAtWhenANodeIsGone) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.run_policy.suspend = true; });
  Start();
  ASSERT_EQ(Settle(), 1h);
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  ASSERT_TRUE(server_.Delete("nodes", {"", "n1"}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));

  EXPECT_EQ(queue_.counts().depth, 1U) << "nobody else tells it that its workers are lost";
}

TEST_F(ElasticReconcilerTest, AJobIsLookedAtWhenAWorkerLosesItsLabel) {
  AddRunningJob();
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  Edit("pods", {"team-a", "bert-workers-0"}, [](Json& pod) { pod["metadata"]["labels"].Erase(kJobNameLabel); });
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));

  EXPECT_EQ(queue_.counts().depth, 1U);
}

TEST_F(ElasticReconcilerTest, AWorkerThatWasBoundSinceItWasSeenIsNotDropped) {
  StartJobOfOne();
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  const ElasticCaches caches{jobs_,  services_, maps_,   launchers_, pods_,
                             nodes_, classes_,  quotas_, nullptr,    &profiles_};
  JobChildren children(client_, caches);
  View view;
  view.job = Live<api::ElasticHorovodJob>({"team-a", "bert"});
  const Children found = children.Find(*view.job);
  const auto pod = Live<kube::Pod>({"team-a", PodName(0)});
  Worker seen;
  seen.name = PodName(0);
  seen.uid = std::string(pod->metadata.uid);
  seen.resource_version = std::string(pod->metadata.resource_version);
  Plan plan;
  plan.workers = WorkersState{1};
  plan.drop = {&seen};
  kube::WriteTracker writes;
  ChildWriter writer = children.WriterFor(*view.job, writes, {});
  BindWorker();

  ASSERT_TRUE(children.DropWorkers({view, plan, found, writer, {}}));
  EXPECT_FALSE(Live<kube::Pod>({"team-a", PodName(0)})->metadata.is_being_deleted());

  plan.workers = WorkersState{};
  ASSERT_TRUE(children.DropWorkers({view, plan, found, writer, {}}));
  EXPECT_TRUE(Live<kube::Pod>({"team-a", PodName(0)})->metadata.is_being_deleted()) << "all are given back";
}

TEST_F(ElasticReconcilerTest, W5APodIsEndedByForceOnlyIfTheServerTooKnowsNothingOfItsNode) {
  StartJobOfOne();
  // From here on the cache of nodes is old.
  nodes_.Stop();
  nodes_.Join();
  --waiters_;
  AddNode("n2");
  BindWorker("n2");

  (void)Settle();
  EXPECT_NE(server_.Get("pods", {"team-a", PodName(0)}), nullptr);

  ASSERT_TRUE(server_.Delete("nodes", {"", "n2"}));
  (void)Pass();
  EXPECT_EQ(server_.Get("pods", {"team-a", PodName(0)}), nullptr);
}

// Or it would come again at once, and again, for as long as its children are refused.
TEST_F(ElasticReconcilerTest, AStartThatFailsDoesNotWakeItself) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1; });
  TakeNamesOfWorkers();
  Start();
  ASSERT_TRUE(Pass());  // It says so: what it writes may bring the next one.
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  ASSERT_TRUE(Pass());

  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  EXPECT_EQ(kit::ReasonIn(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.conditions), "NameTaken");
  EXPECT_EQ(queue_.counts().depth, 0U);
}

// Whoever deletes a Job without saying more leaves its pods behind.
TEST_F(ElasticReconcilerTest, ALauncherIsNotMadeAgainWhileAPodOfItRunsThatTheCacheDoesNotKnow) {
  AddRunningJob();
  ASSERT_NE(server_.Get("jobs.batch", {"team-a", "bert-launcher"}), nullptr);
  pods_.Stop();
  pods_.Join();
  --waiters_;
  Json pod = Named("v1", "Pod", "bert-launcher-x", "team-a");
  pod["metadata"]["labels"] =
      Json::MakeObject({{kJobNameLabel, "bert"}, {kRoleLabel, "launcher"}, {kManagedByLabel, kManagedBy}});
  pod["spec"] = *kube::ParseJson(R"({"nodeName":"n1","containers":[{"name":"launcher","image":"a"}]})");
  Create("pods", std::move(pod));
  ASSERT_TRUE(server_.Delete("jobs.batch", {"team-a", "bert-launcher"},
                             Json::MakeObject({{"propagationPolicy", "Background"}})));

  const auto first = Pass();

  EXPECT_FALSE(first);
  EXPECT_EQ(server_.Get("jobs.batch", {"team-a", "bert-launcher"}), nullptr);
  const auto stray = server_.Get("pods", {"team-a", "bert-launcher-x"});
  ASSERT_NE(stray, nullptr);
  EXPECT_TRUE(stray->At({"metadata", "deletionTimestamp"}));

  ASSERT_TRUE(server_.Delete("pods", {"team-a", "bert-launcher-x"}, Json::MakeObject({{"gracePeriodSeconds", 0}})));
  EXPECT_TRUE(Pass());
  EXPECT_NE(server_.Get("jobs.batch", {"team-a", "bert-launcher"}), nullptr);
}

TEST_F(ElasticReconcilerTest, AJobThatCannotBeCarriedOutHoldsNoRoom) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1; });
  TakeNamesOfWorkers();
  Start();

  ASSERT_TRUE(Pass());

  EXPECT_EQ(kit::ReasonIn(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.conditions), "NameTaken");
  EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty());
  EXPECT_TRUE(account_.PlacesOf("team-a/bert/launcher").empty());
}

TEST_F(ElasticReconcilerTest, WorkersLeaveRoomForTheLauncher) {
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = 2;
    job.spec.workers.max_replicas = 8;
    LauncherOnGpu(job);
  });
  Start();

  ASSERT_TRUE(Pass());

  EXPECT_EQ(account_.PlacesOf("team-a/bert").size(), 7U);
  EXPECT_EQ(account_.PlacesOf("team-a/bert/launcher").size(), 1U);
}

TEST_F(ElasticReconcilerTest, AWorkerPrefersTheNodeThatKeepsAPlaceForIt) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 2; });
  Start();

  ASSERT_TRUE(Pass());

  for (const char* name : {"bert-workers-0", "bert-workers-1"}) {
    const auto pod = server_.Get("pods", {"team-a", name});
    ASSERT_TRUE(pod) << name;
    const kube::Json* affinity = pod->At({"spec", "affinity", "nodeAffinity"});
    ASSERT_NE(affinity, nullptr) << name;
    EXPECT_NE(kube::ToText(*affinity).find(R"("values":["n1"])"), std::string::npos) << kube::ToText(*affinity);
  }
}

TEST_F(ElasticReconcilerTest, AJobThatWaitsKeepsNothingForALauncherThatIsLost) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 8; });
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  kube::Pod lost;
  lost.spec.containers.resize(1);
  lost.spec.containers[0].resources.requests = {{"nvidia.com/gpu", kube::Quantity(1)}};
  account_.AddPlace("team-a/bert/launcher", {"n1", account_.ShapeOf(lost)});

  Settle();
  EXPECT_EQ(account_.PlacesOf("team-a/bert").size(), 8U);
}

TEST_F(ElasticReconcilerTest, TheJobOfAnotherControllerGetsNoPlacesAndIsLeftAlone) {
  int freed = 0;
  account_.OnFreed([&] { ++freed; });
  AddJob([](api::ElasticHorovodJob& job) { job.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue"; });
  Start();
  const int before = freed;

  const kube::Result<kube::Action> action = Pass();

  ASSERT_TRUE(action);
  EXPECT_FALSE(action->delay());
  EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty());
  EXPECT_EQ(account_.AnyWaiting(), "");
  EXPECT_EQ(freed, before) << "or it would wake itself";
}

TEST_F(ElasticReconcilerTest, AJobWhoseLauncherFindsNoRoomWaitsAndSaysSo) {
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = job.spec.workers.max_replicas = 8;
    LauncherOnGpu(job);
  });
  Start();

  ASSERT_TRUE(Pass());
  ASSERT_TRUE(Pass());

  EXPECT_EQ(Message(),
            "cannot fit: 8 workers (8 GPUs) and the launcher: the workers fit, but the launcher does not fit "
            "beside them; needs 9 "
            "nvidia.com/gpu; the nodes it may use have 8 in all: lower minReplicas or add nodes");
  EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty());
  EXPECT_EQ(server_.Get("pods", {"team-a", PodName(0)}), nullptr);

  AddNode("n2");
  ASSERT_TRUE(Pass());
  EXPECT_EQ(account_.PlacesOf("team-a/bert").size(), 8U);
}

TEST_F(ElasticReconcilerTest, ALauncherThatNoNodeCanHoldIsSaid) {
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1;
    job.spec.launcher.pod_template = *kube::ParseJson(R"({"spec":{"nodeSelector":{"pool":"none"}}})");
  });
  Start();

  ASSERT_TRUE(Pass());
  ASSERT_TRUE(Pass());

  EXPECT_EQ(Message(), "cannot fit: no node can hold the launcher; check its resources, node selector and tolerations");
}

// What a LimitRange adds to a template that states nothing.
TEST_F(ElasticReconcilerTest, AJobIsPlannedWithThePodsThatTheServerWillMake) {
  Json range = Named("v1", "LimitRange", "range", "team-a");
  range["spec"] = *kube::ParseJson(R"({"limits":[{"type":"Container","defaultRequest":{"cpu":"45"}}]})");
  Create("limitranges", std::move(range));
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.workers.min_replicas = 2;
    job.spec.workers.max_replicas = 8;
  });
  Start();

  ASSERT_TRUE(Pass());
  ASSERT_TRUE(Pass());

  EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty()) << "two workers and the launcher need 135 of 96 processors";
  EXPECT_EQ(kit::ReasonIn(Live<api::ElasticHorovodJob>({"team-a", "bert"})->status.conditions), "CannotFit");

  ASSERT_TRUE(server_.Delete("limitranges", {"team-a", "range"}));
  const kube::Result<kube::Action> later = Pass();
  ASSERT_TRUE(later && later->delay());
  EXPECT_LE(*later->delay(), 5min) << "no event tells that the pods will be others now";
  clock_.Advance(5min);
  ASSERT_TRUE(Pass());
  EXPECT_EQ(account_.PlacesOf("team-a/bert").size(), 8U);
}

TEST_F(ElasticReconcilerTest, AJobWhoseNamespaceEndsHoldsNoRoom) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.workers.min_replicas = job.spec.workers.max_replicas = 1; });
  Start();
  ASSERT_TRUE(server_.Delete("namespaces", {"", "team-a"}));

  (void)Pass();

  EXPECT_EQ(server_.Get("pods", {"team-a", PodName(0)}), nullptr);
  EXPECT_TRUE(account_.PlacesOf("team-a/bert").empty());
}

TEST_F(ElasticReconcilerTest, AJobWaitsInTheQueueWithThePriorityOfItsClass) {
  AddClass("high", 10);
  AddJob([](api::ElasticHorovodJob& job) {
    job.spec.priority_class_name = "high";
    job.spec.workers.min_replicas = job.spec.workers.max_replicas = 16;
    job.spec.workers.gpus_per_worker = 1;
  });
  Start();
  // An older one of less importance waits, too.
  GangDemand other;
  other.key = "team-a/other";
  other.priority = 5;
  other.waiting_since = 1;
  other.needed = 16;
  other.members.assign(16, GpuShape(1));
  ASSERT_FALSE(account_.Ask(other).is_placed);
  ASSERT_TRUE(Pass());

  AddNode("n2");
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));

  EXPECT_FALSE(account_.Ask(other).is_placed);
  EXPECT_EQ(account_.PlacesOf("team-a/bert").size(), 16U);
}

TEST_F(ElasticReconcilerTest, AJobOfAClassThatDoesNotExistSaysSoAndLooksAgainWhenItDoes) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.priority_class_name = "high"; });
  Start();
  (void)Settle();
  const auto job = Live<api::ElasticHorovodJob>({"team-a", "bert"});
  EXPECT_EQ(kit::ReasonIn(job->status.conditions), "TemplateRefused");
  EXPECT_EQ(server_.Get("pods", {"team-a", PodName(0)}), nullptr);
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  AddClass("high", 10);
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));

  EXPECT_EQ(queue_.counts().depth, 1U);
  (void)Settle();
  EXPECT_NE(server_.Get("pods", {"team-a", PodName(0)}), nullptr);
}

// Makes a gang that asks for all GPUs wait in a queue that all of them are guaranteed to.
void AskForAll(ClusterAccount& account) {
  const PoolQuota all{.pool = kDefaultPool, .guaranteed_milli = 8 * kOneGpu};
  account.SetQueues(
      {.pools = {}, .queues = {{.name = "guaranteed", .quotas = {all}}, {.name = "borrows"}}, .namespaces = {}});
  account.PutHolder("team-a/gpt", {.queue_name = "guaranteed", .comes_back = true});
  account.Ask(Gang("team-a/gpt", 8, 1));
}

TEST_F(ElasticReconcilerTest, AJobThatBorrowsGivesAllBackAtTheDeadlineOfItsNotice) {
  AddRunningJob();
  Edit(kJobResource, {"team-a", "bert"}, [](Json& job) { job["spec"]["queueName"] = "borrows"; });
  Settle();
  Json launcher =
      kit::MakePod("bert-launcher-x", kit::PodSpec(0), Json::MakeObject({{kJobNameLabel, "bert"}}), "team-a");
  launcher["metadata"]["ownerReferences"] =
      *kube::ParseJson(R"([{"apiVersion":"batch/v1","kind":"Job","name":"bert-launcher","controller":true}])");
  launcher["metadata"]["ownerReferences"].AsArray()->front()["uid"] =
      Live<kube::Job>({"team-a", "bert-launcher"})->metadata.uid;
  Create("pods", std::move(launcher));
  AskForAll(account_);
  const auto job = [&] { return Live<api::ElasticHorovodJob>({"team-a", "bert"}); };

  ASSERT_TRUE(Pass());
  EXPECT_EQ(job()->status.replicas.granted, 1);
  EXPECT_THAT(Message(), HasSubstr("gives 1 worker (1 GPU) to team-a/gpt"));
  const auto told = Live<kube::Pod>({"team-a", "bert-launcher-x"});
  EXPECT_EQ(told->metadata.Annotation(kPreemptionDeadlineAnnotation), kube::ToText(kube::Time{clock_.WallNow() + 30s}));
  clock_.Advance(30s);
  ASSERT_TRUE(Pass());

  EXPECT_EQ(job()->status.replicas.granted, 0);
  EXPECT_EQ(job()->status.last_scale->reason, "Preempted");
}

TEST_F(ElasticReconcilerTest, TheQueuesOfRunningJobsAreKnownBeforeAnythingIsPlanned) {
  AddJob([](api::ElasticHorovodJob& job) { job.spec.queue_name = "borrows"; });
  SetStatus(kJobResource, {"team-a", "bert"}, R"({"phase":"Running","replicas":{"granted":1}})");
  const Json labels = Json::MakeObject({{kJobNameLabel, "bert"}, {kRoleLabel, "worker"}});
  Create("pods", kit::MakePod(PodName(0), kit::PodSpec(1), labels, "team-a"));
  BindWorker();
  Start();

  AskForAll(account_);

  EXPECT_TRUE(account_.YieldOf("team-a/bert"));
}

}  // namespace
}  // namespace grus
