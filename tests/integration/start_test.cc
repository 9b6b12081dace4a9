// SPDX-License-Identifier: Apache-2.0
// How a job starts, waits and gives back.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"
#include "tests/kit/tree_file.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

bool HasMount(const kube::Json& spec, std::string_view volume, std::string_view path) {
  const kube::Json* containers = spec.At({"template", "spec", "containers"});
  if (!containers) return false;
  const kube::Json* mounts = containers->AsArray()->at(0).Find("volumeMounts");
  if (!mounts) return false;
  return std::any_of(mounts->AsArray()->begin(), mounts->AsArray()->end(), [&](const kube::Json& mount) {
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
  EXPECT_TRUE(HasMount(Set("sample")->spec_json, "shared-data", "/data"));
  EXPECT_TRUE(HasMount(Launcher("sample")->spec_json, "shared-data", "/data"));
  const JobPtr job = TheJob("sample");
  EXPECT_EQ(job->status.launcher, "job.batch/sample-launcher");
  EXPECT_EQ(job->status.workers, "statefulset.apps/sample-workers");
  EXPECT_EQ(job->status.available_replicas, 5);
  SetOutcome(LauncherPod("sample")->metadata.name, "succeed");
  EXPECT_TRUE(Await("it succeeds", [&] { return Phase("sample") == "Succeeded"; }));
}

TEST_F(ElasticJob, WaitsWithoutAnyGpuUntilTheMinimumFits) {
  AddNode(2);

  Create(R"({"workersSpec":{"minReplicas":4,"maxReplicas":6}})");

  ASSERT_TRUE(Await("it waits", [&] { return Phase() == "Waiting"; }));
  EXPECT_EQ(ReasonOf("Ready"), "WaitingForRoom");
  EXPECT_THAT(MessageOf("Ready"), HasSubstr("waiting for room for 4 workers (4 GPUs)"));
  // The manager may hear of the node after the job.
  EXPECT_TRUE(Await("it says what room there is",
                    [&] { return Says("Ready", "needs 4 nvidia.com/gpu; the nodes it may use have 2 in all"); }));
  EXPECT_TRUE(IsTrue("Reconciling"));
  EXPECT_TRUE(Stays(
      "it holds nothing", [&] { return HoldsNothing(); }, std::chrono::seconds(1)));

  AddNode(3);

  EXPECT_TRUE(AwaitTrains(5));
}

}  // namespace
}  // namespace grus::testing
