// SPDX-License-Identifier: Apache-2.0
// Jobs and trials whose workers have parts of GPUs, on the real API server and scheduler; the nodes say what an agent
// would.
#include "controllers/policy/gpu_parts.h"

#include "controllers/trial/trial_peers.h"
#include "crds/types/sharing_names.h"
#include "tests/integration/trial_fixture.h"

namespace grus::testing {
namespace {

using api::TrialJobPhase;
using api::TrialPhase;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr seconds kLong{180};

class GpuParts : public TrialJobs {
 protected:
  // A node that shares so many GPUs in thousandths.
  void AddSharedNode(int gpus) {
    const std::string name = AddNode(0);
    kube::Json inventory = kube::Json::MakeArray();
    for (int i = 0; i < gpus; ++i) {
      kube::Json gpu = FromText(R"({"memoryMiB":81000,"milli":1000,"mode":"milli"})");
      gpu["uuid"] = "GPU-" + name + "-" + std::to_string(i);
      inventory.Append(std::move(gpu));
    }
    kube::Json noted = FromText("{}");
    noted["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(inventory);
    world().Patch(kube::KindOf<kube::Node>(), {"", name}, kube::PatchType::kMerge, noted);
    kube::Json offered = FromText("{}");
    for (const char* list : {"capacity", "allocatable"}) {
      offered["status"][list][api::kGpuMilliResource] = std::to_string(gpus * 1000);
    }
    world().Patch(kube::KindOf<kube::Node>(), {"", name}, kube::PatchType::kMerge, offered, "status");
  }
  // Of workers with so many thousandths; `more` stands in the spec of workers.
  static std::string WithParts(int milli, int replicas, const std::string& placement) {
    return R"({"workersSpec":{"minReplicas":1,"maxReplicas":8,"targetReplicas":)" + std::to_string(replicas) +
           R"(,"template":{"metadata":{"annotations":{"sharing.ai.centauruscloud.io/placement":")" + placement +
           R"("}},"spec":{"containers":[{"name":"worker","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":)" +
           std::to_string(milli) + "}}}]}}}}";
  }
  // Thousandths of each GPU that pods have, by what grus wrote down.
  std::map<std::string, std::int64_t> PlannedMilli() const {
    std::map<std::string, std::int64_t> milli;
    for (const PodPtr& pod : world().List<kube::Pod>(ns())) {
      for (const kube::Container& container : pod->spec.containers) {
        const auto* asked = kube::FindResource(container.resources.requests, api::kGpuMilliResource);
        if (asked) milli[std::string(pod->metadata.Annotation(api::kPlannedGpuAnnotation))] += asked->Value();
      }
    }
    return milli;
  }
  bool HasNoWholeGpus() const {
    const auto pods = world().List<kube::Pod>(ns());
    return std::ranges::none_of(pods, [](const PodPtr& pod) {
      return std::ranges::any_of(pod->spec.containers, [](const kube::Container& container) {
        return kube::FindResource(container.resources.limits, kGpuResource) != nullptr;
      });
    });
  }
};

TEST_F(GpuParts, AnElasticJobRunsOnPartsAndIsResized) {
  AddSharedNode(2);
  Create(WithParts(400, 3, "pack"));
  ASSERT_TRUE(AwaitTrains(3));
  const PodList before = Workers();

  Scale(4);
  ASSERT_TRUE(AwaitTrains(4)) << "two on each GPU";
  EXPECT_TRUE(AllSurvive(before, Workers()));
  Edit(R"({"spec":{"workersSpec":{"targetReplicas":8}}})");
  EXPECT_TRUE(Stays(
      "no fifth fits, though 400 are free in sum", [&] { return Workers().size() == 4; }, seconds(3)));

  Scale(1);
  ASSERT_TRUE(AwaitTrains(1));
}

// Two on each node; a third would need a part of both.
TEST_F(GpuParts, WorkersHaveWholeGpusOfOneNode) {
  AddSharedNode(2);
  AddSharedNode(3);
  Create(WithParts(2000, 2, "pack"));
  ASSERT_TRUE(AwaitTrains(2));
  const std::map<std::string, std::int64_t> planned = PlannedMilli();
  EXPECT_THAT(planned, SizeIs(2));
  for (const auto& [gpus, milli] : planned) {
    const auto comma = gpus.find(',');
    ASSERT_NE(comma, std::string::npos) << gpus;
    // "GPU-NODE-0" and "GPU-NODE-1"
    EXPECT_EQ(gpus.substr(0, gpus.rfind('-', comma)), gpus.substr(comma + 1, gpus.rfind('-') - comma - 1)) << gpus;
    EXPECT_EQ(milli, 2000);
  }

  Edit(R"({"spec":{"workersSpec":{"targetReplicas":3}}})");
  EXPECT_TRUE(Stays(
      "no third finds two, though one is free", [&] { return Workers().size() == 2; }, seconds(3)));
}

TEST_F(GpuParts, AFirstStartIsPackedOrSpreadAndSaysWhichGpu) {
  AddSharedNode(4);
  Create(WithParts(200, 3, "pack"), "packed");
  ASSERT_TRUE(AwaitTrains(3, "packed"));
  EXPECT_THAT(PlannedMilli(), ElementsAre(::testing::Pair(::testing::StartsWith("GPU-"), 600)));

  Create(WithParts(200, 3, "spread"), "spread");
  ASSERT_TRUE(AwaitTrains(3, "spread"));
  EXPECT_THAT(PlannedMilli(), SizeIs(4)) << "each on a GPU of its own";
}

TEST_F(GpuParts, WorkersArePlannedByTheMemoryThatTheirTemplateSays) {
  AddSharedNode(2);
  std::string spec = WithParts(200, 2, "pack");
  const std::string annotations = R"("annotations":{)";
  spec.insert(spec.find(annotations) + annotations.size(), R"("sharing.ai.centauruscloud.io/memory-mib":"60000",)");
  Create(spec);
  ASSERT_TRUE(AwaitTrains(2));
  EXPECT_THAT(PlannedMilli(), SizeIs(2)) << "no GPU has 120,000 MiB";

  Edit(R"({"spec":{"workersSpec":{"targetReplicas":4}}})");
  EXPECT_TRUE(Stays(
      "no third finds 60,000 MiB, though thousandths are free", [&] { return Workers().size() == 2; }, seconds(3)));
}

TEST_F(GpuParts, ATrialCountsWorkersWithAPartAsGpus) {
  AddSharedNode(2);
  Train(100, 8);
  kube::Json spec = FromText(R"({"workload":{"template":{}},"space":{"gpuCounts":[1,2,8]}})");
  spec["workload"]["template"]["spec"] = *Manifest(kTrialJob, WithParts(400, 1, "pack")).Find("spec");
  CreateTrialJob(kube::ToText(spec));

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong))
      << ReadyMessage();
  EXPECT_THAT(Trials(TrialPhase::kSucceeded), ElementsAre("1 GPUs PrecisionReached", "2 GPUs PrecisionReached"));
  EXPECT_NEAR(std::stod(Tune()->status.trials[1].measured->throughput), 200, 10);
  EXPECT_THAT(Trials(TrialPhase::kSkipped), SizeIs(1)) << "two GPUs have room for four";
}

TEST_F(GpuParts, APodTrialKeepsItsPart) {
  AddSharedNode(1);
  Train([](int, int number) { return "step " + std::to_string(number) + " total speed 100 samples/s"; });
  CreateTrialJob(R"({"workload":{"podTemplate":{"spec":{"nodeSelector":{"grus.test/pool":")" + pool() +
                 R"("},"containers":[{"name":"side","image":"registry.test/s:1"},{"name":"train",
                 "image":"registry.test/train:1","command":["python","train.py"],
                 "resources":{"limits":{"ai.centauruscloud.io/gpu-milli":300}}}]}}},"space":{}})");

  bool had_no_whole_ones = true, was_there = false;
  ASSERT_TRUE(Await(
      "it succeeds",
      [&] {
        had_no_whole_ones &= HasNoWholeGpus();
        was_there |= PlannedMilli().size() == 1 && PlannedMilli().begin()->second == 300;
        return HasPhase(TrialJobPhase::kSucceeded);
      },
      kLong))
      << ReadyMessage();
  EXPECT_TRUE(had_no_whole_ones);
  EXPECT_TRUE(was_there);
  EXPECT_THAT(Trials(TrialPhase::kSucceeded), ElementsAre("1 GPUs PrecisionReached"));
}

}  // namespace
}  // namespace grus::testing
