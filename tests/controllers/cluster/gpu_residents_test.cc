// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/gpu_residents.h"

#include <gtest/gtest.h>

#include <set>

#include "controllers/cluster/owners.h"
#include "controllers/policy/gpu_annotations.h"
#include "crds/types/elastic_horovod_job.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;

class GpuResidentsTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    StartCaches();
    Settle();
  }
  void AddPod(const std::string& name, const std::string& node, const char* key, const std::string& gpus,
              int milli = 300) {
    Json pod = kit::MakePod(name, kit::PodSpec(milli, "{}", api::kGpuMilliResource), Json(), "team-a");
    if (!gpus.empty()) pod["metadata"]["annotations"][key] = gpus;
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    Create("pods", std::move(pod));
    Settle();
  }
  std::set<std::string> On(const std::string& node, const std::string& gpu) {
    std::set<std::string> names;
    for (const auto& pod : residents_.On(node, gpu)) names.insert(pod->metadata.name);
    return names;
  }

  kube::Informer &pods_ = Cache<kube::Pod>(), &jobs_ = Cache<api::ElasticHorovodJob>();
  GpuResidents residents_{pods_};
};

using Names = std::set<std::string>;

TEST_F(GpuResidentsTest, AreThePodsThatHaveAPartOfTheGpu) {
  AddPod("a", "n1", api::kPlannedGpuAnnotation, "GPU-0");
  AddPod("b", "n1", api::kPlannedGpuAnnotation, "GPU-0");
  AddPod("two", "n1", api::kPlannedGpuAnnotation, "GPU-1,GPU-2", 2000);
  AddPod("says-more", "n1", api::kPlannedGpuAnnotation, "GPU-4,GPU-1,GPU-2");
  AddPod("asks-for-none", "n1", api::kPlannedGpuAnnotation, "GPU-1", 0);
  AddPod("elsewhere", "n2", api::kPlannedGpuAnnotation, "GPU-0");
  AddPod("planned", "", api::kPlannedGpuAnnotation, "GPU-0");
  AddPod("unknown", "n1", api::kPlannedGpuAnnotation, "");
  EXPECT_EQ(On("n1", "GPU-0"), (Names{"a", "b"}));
  EXPECT_EQ(On("n1", "GPU-1"), (Names{"two"}));
  EXPECT_EQ(On("n1", "GPU-2"), (Names{"two"}));
  EXPECT_EQ(On("n2", "GPU-0"), (Names{"elsewhere"}));
  EXPECT_EQ(On("n1", "GPU-3"), Names());
}

TEST_F(GpuResidentsTest, WhatTheAgentSaysGoesBeforeThePlanAndThoseThatHaveEndedAreGone) {
  AddPod("a", "n1", api::kPlannedGpuAnnotation, "GPU-0");
  Edit("pods", {"team-a", "a"}, [](Json& pod) {
    pod["metadata"]["annotations"][api::kHeldGpusAnnotation] = R"({"main":{"gpu":"GPU-1","milli":300}})";
  });
  Settle();
  const std::string gpus = GpusOf(*Live<kube::Pod>({"team-a", "a"}));
  ASSERT_EQ(gpus, "GPU-1");
  EXPECT_EQ(On("n1", "GPU-0"), Names());
  EXPECT_EQ(On("n1", "GPU-1"), (Names{"a"}));
  SetStatus("pods", {"team-a", "a"}, R"({"phase":"Succeeded"})");
  Settle();
  EXPECT_EQ(On("n1", "GPU-1"), Names());
}

TEST_F(GpuResidentsTest, TheirWorkloadIsThatOfTheirJobOrWhatTheExtenderWrote) {
  kube::Pod pod;
  pod.metadata.ns = "team-a";
  EXPECT_EQ(WorkloadOf(pod, &jobs_), "");
  pod.metadata.annotations = {{kWorkloadAnnotation, "abc"}};
  EXPECT_EQ(WorkloadOf(pod, &jobs_), "abc");
  EXPECT_EQ(WorkloadOf(pod, nullptr), "abc");

  constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";
  Json job = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", "bert", "team-a");
  job["spec"] = *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":["p"]},"workersSpec":{"image":"a"}})");
  Create(kJobs, std::move(job));
  SetStatus(kJobs, {"team-a", "bert"}, R"({"phase":"Running","profile":{"name":"of-bert"}})");
  Settle();
  pod.metadata.labels = {{kJobNameLabel, "bert"}, {kRoleLabel, "worker"}};
  EXPECT_EQ(WorkloadOf(pod, &jobs_), "of-bert") << "whatever an annotation says";
}

}  // namespace
}  // namespace grus
