// SPDX-License-Identifier: Apache-2.0
// Workers that an older grus runs in a StatefulSet are taken over while they train.
#include <gmock/gmock.h>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/ssh_key.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::Json;
using kube::KindOf;
using ::testing::ElementsAre;

class OldWorkers : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }

  // As an older grus made it.
  static Json StatefulSetOf(const api::ElasticHorovodJob& job, int replicas) {
    Json pod = MakeWorker(job, 0, Gang::kUngated);
    Json set = Json::MakeObject({{"apiVersion", "apps/v1"}, {"kind", "StatefulSet"}});
    set["metadata"] = Json::MakeObject({{"name", WorkersName(job)},
                                        {"namespace", job.metadata.ns},
                                        {"labels", FromText(R"({"app.kubernetes.io/managed-by":"grus",
                                            "ai.centauruscloud.io/files":"1","ai.centauruscloud.io/role":"worker"})")},
                                        {"annotations", FromText(R"({"ai.centauruscloud.io/granted":"2"})")},
                                        {"ownerReferences", *pod.At({"metadata", "ownerReferences"})}});
    set["metadata"]["labels"][kJobNameLabel] = job.metadata.name;
    Json labels = *pod.At({"metadata", "labels"});
    labels.Erase("apps.kubernetes.io/pod-index");
    Json spec = *pod.Find("spec");
    spec.Erase("hostname");
    spec.Erase("subdomain");
    const Json selector = Json::MakeObject({{kJobNameLabel, job.metadata.name}, {kRoleLabel, "worker"}});
    set["spec"] = Json::MakeObject(
        {{"replicas", replicas},
         {"serviceName", ServiceName(job)},
         {"podManagementPolicy", "Parallel"},
         {"updateStrategy", Json::MakeObject({{"type", "OnDelete"}})},
         {"selector", Json::MakeObject({{"matchLabels", selector}})},
         {"template", Json::MakeObject({{"metadata", Json::MakeObject({{"labels", std::move(labels)}})},
                                        {"spec", std::move(spec)}})}});
    return set;
  }

  // All that a job of two workers has while it trains, with nobody there who made it.
  void CreateRunningJob() {
    Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
    ASSERT_TRUE(Await("the job is there", [&] { return TheJob() != nullptr; }));
    const JobPtr job = TheJob();
    world().Create(KindOf<kube::Secret>(), ns(), MakeSecret(*job, Must(MakeSshKey("train"))));
    world().Create(KindOf<api::PodGroup>(), ns(), MakeGroup(*job));
    world().Create(KindOf<kube::StatefulSet>(), ns(), StatefulSetOf(*job, 2));
    ASSERT_TRUE(Await("its workers run", [&] { return Where(Workers(), IsReady).size() == 2; }));
    HostList hosts;
    hosts.revision = 1;
    hosts.published = kube::Time{std::chrono::system_clock::now()};
    for (const PodPtr& pod : Workers()) hosts.hosts.push_back({pod->metadata.name, std::string(pod->status.pod_ip)});
    world().Create(KindOf<kube::Service>(), ns(), MakeService(*job));
    world().Create(KindOf<kube::ConfigMap>(), ns(), MakeHosts(*job, hosts));
    world().Create(KindOf<kube::Job>(), ns(), MakeLauncher(*job));
    ASSERT_TRUE(Await("its launcher runs", [&] { return LauncherPod() && IsReady(*LauncherPod()); }));
    Patch<api::ElasticHorovodJob>("train", R"({"status":{"phase":"Running","observedGeneration":1,
        "workers":"statefulset.apps/train-workers","replicas":{"min":2,"max":2,"wanted":2,"granted":2,"ready":2},
        "conditions":[{"type":"Ready","status":"True","reason":"Training","message":"2 of 2 workers ready",
                       "observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05Z"}]}})",
                                  "status");
  }
};

TEST_F(OldWorkers, OfAStatefulSetBecomePodsOfTheJobAndTrainOn) {
  AddNode(2);
  CreateRunningJob();
  const PodList workers = Workers();
  const std::string launcher = LauncherPod()->metadata.uid;
  for (const PodPtr& pod : workers) ASSERT_EQ(pod->metadata.Controller()->kind, "StatefulSet");

  StartManager();

  ASSERT_TRUE(Await("the StatefulSet is gone and the job controls its pods", [&] {
    const PodList now = Workers();
    return world().List<kube::StatefulSet>(ns()).empty() && std::ranges::all_of(now, [&](const PodPtr& pod) {
             const kube::OwnerReference* controller = pod->metadata.Controller();
             return controller && controller->uid == TheJob()->metadata.uid;
           });
  }));
  ASSERT_TRUE(AwaitTrains(2));
  EXPECT_TRUE(AllSurvive(workers, Workers()));
  EXPECT_EQ(LauncherPod()->metadata.uid, launcher);
  EXPECT_THAT(Hosts(), ElementsAre("train-workers-0", "train-workers-1"));
  EXPECT_TRUE(LauncherPod()->metadata.Annotation(kHostsAnnotation).empty()) << "the training was told of a change";
  EXPECT_TRUE(WritesNothing(std::chrono::seconds(3)));

  Delete<kube::Pod>("train-workers-1");
  ASSERT_TRUE(Await("another worker takes its place",
                    [&] { return Trains(2) && Workers().back()->metadata.uid != workers.back()->metadata.uid; }));
}

}  // namespace
}  // namespace grus::testing
