// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/worker_adoption.h"

#include <gmock/gmock.h>

#include "tests/controllers/elastic/elastic_fixture.h"

namespace grus {
namespace {

using kube::Json;

using WorkerAdoptionTest = ElasticFixture;

TEST_F(WorkerAdoptionTest, AWorkerThatLostWhatMakesItOursGetsItBack) {
  StartJobOfOne();
  const kube::ObjectKey worker{"team-a", PodName(0)};
  const Json ours = *server_.Get("pods", worker)->Find("metadata");
  const std::function<void(Json&)> losses[] = {[](Json& metadata) { metadata["labels"].Erase(kJobNameLabel); },
                                               [](Json& metadata) { metadata["labels"].Erase(kRoleLabel); },
                                               [](Json& metadata) { metadata["labels"].Erase(kManagedByLabel); },
                                               [](Json& metadata) { metadata.Erase("ownerReferences"); }};
  for (const auto& lose : losses) {
    Edit("pods", worker, [&](Json& pod) { lose(pod["metadata"]); });
    Settle();
    for (const char* field : {"uid", "labels", "ownerReferences"}) {
      EXPECT_EQ(*server_.Get("pods", worker)->At({"metadata", field}), *ours.Find(field));
    }
    EXPECT_EQ(server_.Get("pods", {"team-a", PodName(1)}), nullptr) << "it is no second one";
  }
}

// The garbage collector sees to it.
TEST_F(WorkerAdoptionTest, AWorkerOfAnotherControllerIsLeftAlone) {
  Json pod = Named("v1", "Pod", "bert-workers-7", "team-a");
  pod["metadata"]["labels"] =
      Json::MakeObject({{kJobNameLabel, "bert"}, {kRoleLabel, "worker"}, {kManagedByLabel, kManagedBy}});
  pod["metadata"]["ownerReferences"] = *kube::ParseJson(
      R"([{"apiVersion":"apps/v1","kind":"StatefulSet","name":"bert-workers","uid":"other","controller":true}])");
  pod["spec"] = *kube::ParseJson(R"({"containers":[{"name":"other","image":"a"}]})");
  Create("pods", std::move(pod));

  StartJobOfOne();

  EXPECT_NE(server_.Get("pods", {"team-a", PodName(0)}), nullptr);
  const auto other = server_.Get("pods", {"team-a", "bert-workers-7"});
  EXPECT_EQ(other->At({"metadata", "deletionTimestamp"}), nullptr);
  EXPECT_EQ(*other->At({"metadata", "ownerReferences"})->AsArray()->front().Find("uid"), Json("other"));
}

// It has the key of the job before, and may still train for that one's launcher.
TEST_F(WorkerAdoptionTest, APodThatAnEarlierJobLeftBehindIsNotTaken) {
  Json pod = Named("v1", "Pod", "bert-workers-7", "team-a");
  pod["metadata"]["labels"] =
      Json::MakeObject({{kJobNameLabel, "bert"}, {kRoleLabel, "worker"}, {kManagedByLabel, kManagedBy}});
  pod["spec"] = *kube::ParseJson(R"({"containers":[{"name":"other","image":"a"}]})");
  Create("pods", std::move(pod));
  clock_.Advance(std::chrono::minutes(1));

  StartJobOfOne();

  EXPECT_EQ(server_.Get("pods", {"team-a", "bert-workers-7"})->At({"metadata", "ownerReferences"}), nullptr);
  EXPECT_NE(server_.Get("pods", {"team-a", PodName(0)}), nullptr);
}

// Then the job is from ahead, and its pods look older than it is.
TEST_F(WorkerAdoptionTest, AWorkerIsTakenBackThoughTheClockWasSetBack) {
  StartJobOfOne();
  const kube::ObjectKey worker{"team-a", PodName(0)};
  Edit(kJobResource, {"team-a", "bert"}, [&](Json& job) {
    job["metadata"]["creationTimestamp"] = kube::ToText(kube::Time{clock_.WallNow() + std::chrono::hours(1)});
  });
  Edit("pods", worker, [](Json& pod) { pod["metadata"].Erase("ownerReferences"); });
  Settle();
  EXPECT_NE(server_.Get("pods", worker)->At({"metadata", "ownerReferences"}), nullptr);
}

// Its author may have read the job's UID, and must not be able to stop the job's passes.
TEST_F(WorkerAdoptionTest, APodOfAnotherNamespaceThatNamesTheJobAsItsOwnerIsLeftAlone) {
  Create("namespaces", Named("v1", "Namespace", "team-b", ""));
  StartJobOfOne();
  const std::string uid = *server_.Get("pods", {"team-a", PodName(0)})
                               ->At({"metadata", "ownerReferences"})
                               ->AsArray()
                               ->front()
                               .Find("uid")
                               ->AsString();
  for (const int ordinal : {0, 900}) {
    Json pod = Named("v1", "Pod", PodName(ordinal), "team-b");
    pod["metadata"]["ownerReferences"] =
        Json::MakeArray({Json::MakeObject({{"apiVersion", "ai.centauruscloud.io/v1alpha1"},
                                           {"kind", "ElasticHorovodJob"},
                                           {"name", "bert"},
                                           {"uid", uid},
                                           {"controller", true}})});
    pod["spec"] = *kube::ParseJson(R"({"containers":[{"name":"other","image":"a"}]})");
    Create("pods", std::move(pod));
  }
  Settle();

  Edit(kJobResource, {"team-a", "bert"}, [](Json& job) { job["spec"]["runPolicy"]["suspend"] = true; });
  Settle();

  const auto worker = server_.Get("pods", {"team-a", PodName(0)});
  EXPECT_TRUE(!worker || worker->At({"metadata", "deletionTimestamp"})) << "the job is suspended all the same";
  for (const int ordinal : {0, 900}) {
    const auto pod = server_.Get("pods", {"team-b", PodName(ordinal)});
    ASSERT_NE(pod, nullptr);
    EXPECT_EQ(pod->At({"metadata", "labels"}), nullptr);
  }
}

}  // namespace
}  // namespace grus
