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

// Its pods run with its key, and its launcher reads a script out of the ConfigMap.
TEST_F(WorkerAdoptionTest, AJobThatAnOlderGrusStartedGoesOn) {
  AddRunningJob();
  const kube::ObjectKey set_key{"team-a", "bert-workers"}, worker{"team-a", PodName(0)};
  const Json job = *server_.Get(kJobResource, {"team-a", "bert"}), ours = *server_.Get("pods", worker);
  const std::string uid = *job.At({"metadata", "uid"})->AsString();
  Json set = Named("apps/v1", "StatefulSet", set_key.name, set_key.ns);
  set["metadata"]["ownerReferences"] = *ours.At({"metadata", "ownerReferences"});
  set["spec"] = *kube::ParseJson(R"({"replicas":1,"serviceName":"x","selector":{"matchLabels":{"a":"b"}},"template":{
      "metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"worker","image":"a"}]}}})");
  Create("statefulsets.apps", std::move(set));
  Json owner = Json::MakeObject(
      {{"apiVersion", "apps/v1"}, {"kind", "StatefulSet"}, {"name", set_key.name}, {"controller", true}});
  owner["uid"] = *server_.Get("statefulsets.apps", set_key)->At({"metadata", "uid"});
  Edit("pods", worker, [&](Json& pod) {
    pod["metadata"]["ownerReferences"] = Json::MakeArray({owner});
    pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] = worker.name;
  });
  Json old_secret = Named("v1", "Secret", "bert-ssh-" + uid, "team-a");
  old_secret["data"] = Json::MakeObject({{"id_ed25519", "b2xk"}, {"authorized_keys", "b2xkLnB1Ygo="}});
  Create("secrets", std::move(old_secret));
  ASSERT_TRUE(server_.Delete("secrets", {"team-a", "bert-files-" + uid}));
  Edit("configmaps", {"team-a", "bert-hosts"}, [](Json& map) { map["data"]["discover_hosts.sh"] = "echo old"; });
  const Json ours_launcher = *server_.Get("jobs.batch", {"team-a", "bert-launcher"});
  ASSERT_TRUE(server_.Delete("jobs.batch", {"team-a", "bert-launcher"},
                             Json::MakeObject({{"propagationPolicy", "Background"}})));
  Json launcher = Named("batch/v1", "Job", "bert-launcher", "team-a");
  for (const char* field : {"labels", "ownerReferences"}) {
    launcher["metadata"][field] = *ours_launcher.At({"metadata", field});
  }
  launcher["spec"]["template"]["spec"] =
      *kube::ParseJson(R"({"restartPolicy":"Never","containers":[{"name":"launcher","image":"a"}]})");
  Create("jobs.batch", std::move(launcher));

  ASSERT_TRUE(Pass());

  const auto secret = server_.Get("secrets", {"team-a", "bert-files-" + uid});
  ASSERT_TRUE(secret);
  EXPECT_EQ(*secret->At({"data", "id_ed25519"}), Json("b2xk"));
  EXPECT_TRUE(secret->At({"data", "worker.sh"}));
  const auto ending = server_.Get("statefulsets.apps", set_key);
  ASSERT_TRUE(ending);
  EXPECT_EQ(*ending->At({"metadata", "finalizers"}), *kube::ParseJson(R"(["orphan"])"));
  EXPECT_EQ(server_.Get("pods", {"team-a", PodName(1)}), nullptr);

  // What the garbage collector does.
  Edit("pods", worker, [](Json& pod) { pod["metadata"].Erase("ownerReferences"); });
  Edit("statefulsets.apps", set_key, [](Json& object) { object["metadata"].Erase("finalizers"); });
  Settle();

  const auto adopted = server_.Get("pods", worker);
  EXPECT_EQ(*adopted->At({"metadata", "uid"}), *ours.At({"metadata", "uid"}));
  EXPECT_EQ(*adopted->At({"metadata", "ownerReferences"}), *ours.At({"metadata", "ownerReferences"}));
  EXPECT_EQ(server_.Get("pods", {"team-a", PodName(1)}), nullptr);
  Edit("configmaps", {"team-a", "bert-hosts"}, [](Json& map) { map["data"]["hosts"] = "nobody:1\n"; });
  Settle();
  const auto hosts = server_.Get("configmaps", {"team-a", "bert-hosts"});
  EXPECT_EQ(*hosts->At({"data", "discover_hosts.sh"}), Json("echo old"));
  EXPECT_THAT(*hosts->At({"data", "hosts"})->AsString(), ::testing::HasSubstr("10.0.0.1"));
}

TEST_F(WorkerAdoptionTest, AStatefulSetOfOthersWithThatNameIsLeftAloneAndDoesNotHoldTheJobUp) {
  for (const bool is_there : {true, false}) {
    const std::string uid = "00000000-0000-0000-0000-00000000000" + std::to_string(is_there ? 1 : 2);
    Json pod = Named("v1", "Pod", is_there ? "bert-workers-7" : "bert-workers-8", "team-a");
    pod["metadata"]["labels"] =
        Json::MakeObject({{kJobNameLabel, "bert"}, {kRoleLabel, "worker"}, {kManagedByLabel, kManagedBy}});
    pod["metadata"]["ownerReferences"] = Json::MakeArray({Json::MakeObject({{"apiVersion", "apps/v1"},
                                                                            {"kind", "StatefulSet"},
                                                                            {"name", "bert-workers"},
                                                                            {"uid", uid},
                                                                            {"controller", true}})});
    pod["spec"] = *kube::ParseJson(R"({"containers":[{"name":"other","image":"a"}]})");
    Create("pods", std::move(pod));
  }
  StartJobOfOne();
  EXPECT_NE(server_.Get("pods", {"team-a", PodName(0)}), nullptr);
  EXPECT_EQ(server_.Get("pods", {"team-a", "bert-workers-7"})->At({"metadata", "deletionTimestamp"}), nullptr);
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

}  // namespace
}  // namespace grus
