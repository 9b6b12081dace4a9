// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/gpu_neighbours.h"

#include <gtest/gtest.h>

#include "controllers/cluster/owners.h"
#include "crds/types/sharing_names.h"
#include "crds/types/workload_profile.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;
using Workloads = std::map<std::string, std::string>;

GpuNeighbours With(Workloads workloads) { return {.workloads = std::move(workloads)}; }

TEST(GpuNeighbours, HaveAPartnerIfAllRunTheSame) {
  EXPECT_EQ(With({{"u1", "vgg"}}).Partner(), "vgg");
  EXPECT_EQ(With({{"u1", "vgg"}, {"u2", "vgg"}}).Partner(), "vgg");
  EXPECT_EQ(With({{"u1", "vgg"}, {"u2", "gpt"}}).Partner(), "");
  EXPECT_EQ(With({{"u1", "vgg"}, {"u2", ""}}).Partner(), "");
  EXPECT_EQ(With({{"u1", ""}}).Partner(), "");
  EXPECT_EQ(With({}).Partner(), "");
  EXPECT_EQ(With({{"u1", "VGG 16"}}).Partner(), "") << "no WorkloadProfile can have this name";
  GpuNeighbours crowded = With({{"u1", "vgg"}});
  crowded.are_pairs = false;
  EXPECT_EQ(crowded.Partner(), "");
}

TEST(GpuNeighbours, AreNoneOnlyWhereTheGpusAreKnown) {
  EXPECT_TRUE(GpuNeighbours().AreNone());
  EXPECT_FALSE(With({{"u1", ""}}).AreNone());
  GpuNeighbours unknown;
  unknown.are_known = false;
  EXPECT_FALSE(unknown.AreNone());
  EXPECT_EQ(unknown.Partner(), "");
}

class NeighbourSearchTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    StartCaches();
    Settle();
    job_.metadata.ns = "team-a";
    job_.metadata.name = "bert";
  }
  void AddPod(const std::string& name, const std::string& job, const std::string& gpus) {
    Json labels;
    if (!job.empty()) labels = Json::MakeObject({{kJobNameLabel, job}, {kRoleLabel, "worker"}});
    Json pod = kit::MakePod(name, kit::PodSpec(300, R"({"nodeName":"n1"})", api::kGpuMilliResource), labels, "team-a");
    if (!gpus.empty()) pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = gpus;
    pod["metadata"]["annotations"][kWorkloadAnnotation] = "of-" + name;
    Create("pods", std::move(pod));
    SetStatus("pods", {"team-a", name}, R"({"phase":"Running"})");
    Settle();
  }
  void AddProfile(const std::string& name, const std::string& ns) {
    Json profile = Named("ai.centauruscloud.io/v1alpha1", "WorkloadProfile", name);
    profile["spec"]["fingerprint"] = name;
    profile["spec"]["workload"]["namespace"] = ns;
    Create("workloadprofiles.ai.centauruscloud.io", std::move(profile));
    Settle();
  }
  GpuNeighbours Found() {
    std::vector<std::shared_ptr<const kube::Pod>> own;
    for (const auto& pod : pods_.List<kube::Pod>()) {
      if (JobOf(pod->metadata) == job_.metadata.Key()) own.push_back(pod);
    }
    return search_.Of(job_, own);
  }
  void AskForParts(const std::string& milli) {
    job_.spec.workers.pod_template = *kube::ParseJson(
        R"({"spec":{"containers":[{"name":"worker","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":)" + milli +
        "}}}]}}");
  }

  kube::Informer &pods_ = Cache<kube::Pod>(), &jobs_ = Cache<api::ElasticHorovodJob>(),
                 &profiles_ = Cache<api::WorkloadProfile>();
  NeighbourSearch search_{pods_, jobs_, profiles_};
  api::ElasticHorovodJob job_;
};

TEST_F(NeighbourSearchTest, FindsThePodsOfOthersOnTheGpusOfTheWorkers) {
  AddPod("w0", "bert", "GPU-0");
  AddPod("w1", "bert", "GPU-1");
  AddPod("a", "", "GPU-1");
  AddPod("b", "", "GPU-2");
  AddProfile("of-a", "team-a");
  const GpuNeighbours found = Found();
  ASSERT_EQ(found.workloads.size(), 1u);
  EXPECT_EQ(found.workloads.begin()->second, "of-a");
  EXPECT_EQ(found.Partner(), "of-a");
}

// S4: a pod may say anything of itself.
TEST_F(NeighbourSearchTest, AProfileOfAnotherNamespaceIsNoPartner) {
  AddPod("w0", "bert", "GPU-0");
  AddPod("a", "", "GPU-0");
  EXPECT_EQ(Found().Partner(), "of-a") << "nobody has measured it";
  AddProfile("of-a", "team-b");
  EXPECT_EQ(Found().Partner(), "") << "it is another team's";
  ASSERT_TRUE(server_.Delete("workloadprofiles.ai.centauruscloud.io", {"", "of-a"}));
  AddProfile("of-a", "");
  EXPECT_EQ(Found().Partner(), "of-a") << "everybody's";
}

TEST_F(NeighbourSearchTest, AGpuWithTwoOfOthersOrWithTwoWorkersIsNoPair) {
  AddPod("w0", "bert", "GPU-0");
  AddPod("w1", "bert", "GPU-0");
  EXPECT_FALSE(Found().AreNone()) << "two workers of one job slow each other down";
  AddPod("a", "", "GPU-0");
  EXPECT_FALSE(Found().are_pairs);
  EXPECT_FALSE(Found().AreNone());
}

TEST_F(NeighbourSearchTest, OfAPartWhoseGpuIsNotKnownNeitherAreItsNeighbours) {
  AddPod("w0", "bert", "");
  EXPECT_TRUE(Found().AreNone()) << "it has a GPU of its own";
  AskForParts("2000");
  EXPECT_TRUE(Found().AreNone()) << "whole ones, too";
  AskForParts("300");
  EXPECT_FALSE(Found().AreNone());
  EXPECT_EQ(Found().Partner(), "");
}

}  // namespace
}  // namespace grus
