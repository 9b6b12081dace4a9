// SPDX-License-Identifier: Apache-2.0
// How a job starts, waits and gives back.
#include <gmock/gmock.h>

#include "clientlib/testing/api_server/json_access.h"
#include "tests/integration/elastic_job.h"
#include "tests/kit/tree_file.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

// `pod` as the API server sends it.
bool HasMount(const kube::Json& pod, std::string_view volume, std::string_view path) {
  const auto& mounts =
      kube::testing::ItemsAt(kube::testing::ItemsAt(pod, {"spec", "containers"}).at(0), {"volumeMounts"});
  return std::any_of(mounts.begin(), mounts.end(), [&](const kube::Json& mount) {
    return *mount.Find("name")->AsString() == volume && *mount.Find("mountPath")->AsString() == path;
  });
}

// In the form of the original's samples: containers without name and image, a command whose last word holds blanks, no
// template, nothing of grus' own.
TEST_F(ElasticJob, RunsAManifestOfTheOriginalUnchanged) {
  AddNode(8);

  world().Create(kube::KindOf<api::ElasticHorovodJob>(), ns(),
                 FromText(kit::ReadTreeFile("tests/integration/original_manifest.json")));

  ASSERT_TRUE(AwaitTrains(5, "sample"));
  for (const PodPtr& pod : {Workers("sample").front(), LauncherPod("sample")}) {
    const auto answer = world().Send("GET", "/api/v1/namespaces/" + ns() + "/pods/" + pod->metadata.name);
    EXPECT_TRUE(HasMount(FromText(answer.body), "shared-data", "/data")) << pod->metadata.name;
  }
  const JobPtr job = TheJob("sample");
  EXPECT_EQ(job->status.launcher, "job.batch/sample-launcher");
  EXPECT_EQ(job->status.workers, "pods -l ai.centauruscloud.io/job-name=sample,ai.centauruscloud.io/role=worker");
  EXPECT_EQ(job->status.available_replicas, 5);
  SetOutcome(LauncherPod("sample")->metadata.name, "succeed");
  EXPECT_TRUE(Await("it succeeds", [&] { return Phase("sample") == "Succeeded"; }));
}

TEST_F(ElasticJob, WaitsWithoutAnyGpuUntilTheMinimumFits) {
  AddNode(2);

  Create(R"({"workersSpec":{"minReplicas":4,"maxReplicas":6}})");

  ASSERT_TRUE(Await("it waits", [&] { return Phase() == "Waiting"; }));
  EXPECT_EQ(ReasonOf("Ready"), "CannotFit");
  EXPECT_THAT(MessageOf("Ready"), HasSubstr("cannot fit: 4 workers (4 GPUs)"));
  // The manager may hear of the node after the job.
  EXPECT_TRUE(Await("it says what room there is",
                    [&] { return Says("Ready", "needs 4 nvidia.com/gpu; the nodes it may use have 2 in all"); }));
  EXPECT_TRUE(IsTrue("Stalled"));
  EXPECT_TRUE(Stays(
      "it holds nothing", [&] { return HoldsNothing(); }, std::chrono::seconds(1)));

  AddNode(3);

  EXPECT_TRUE(AwaitTrains(5));
}

}  // namespace
}  // namespace grus::testing
