// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodeagent/gpu_states.h"

namespace grus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::LookAt;
using testing::WorkingGpu;

kube::Node NodeThatOffers(std::optional<int> gpus, const kube::StringMap& labels = {}) {
  kube::Node node;
  node.metadata.labels = labels;
  node.status.allocatable = {{"cpu", 8}};
  if (gpus) node.status.allocatable.emplace_back("nvidia.com/gpu", *gpus);
  return node;
}
GpuState Lost(GpuState state) {
  state.sample = std::nullopt;
  return state;
}
auto Problem(const char* reason, const std::string& text) {
  return AllOf(Field(&GpuProblem::reason, reason), Field(&GpuProblem::note, HasSubstr(text)));
}
auto Count(const std::string& text) { return ElementsAre(Problem("GpuCountDiffers", text)); }

TEST(GpuProblems, AHealthyNodeHasNone) {
  const kube::Node node = NodeThatOffers(2);
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0), WorkingGpu(1)}), &node), IsEmpty());
  const kube::Node without = NodeThatOffers(std::nullopt);
  EXPECT_THAT(FindGpuProblems(LookAt({}), &without), IsEmpty());
  EXPECT_THAT(FindGpuProblems(NodeSample{.at = {}}, &without), IsEmpty()) << "no driver, and no GPUs";
}

TEST(GpuProblems, ALostGpuIsSick) {
  const kube::Node node = NodeThatOffers(1);
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0), Lost(WorkingGpu(1))}), &node),
              ElementsAre(Problem("GpuSick", "GPU 1 (GPU-1) is lost")));
}

TEST(GpuProblems, AGpuThatWasNeverReachedIsSick) {
  NodeSample look = LookAt({WorkingGpu(0)});
  look.never_seen = 2;
  EXPECT_THAT(FindGpuProblems(look, nullptr), ElementsAre(Problem("GpuSick", "2 GPUs that it has not reached")));
}

TEST(GpuProblems, ALostDriverIsOneProblem) {
  NodeSample look = LookAt({Lost(WorkingGpu(0)), Lost(WorkingGpu(1))});
  look.is_open = false;
  EXPECT_THAT(FindGpuProblems(look, nullptr), ElementsAre(Problem("GpuSick", "the GPU driver, which had 2 GPUs")));
}

TEST(GpuProblems, AGpuWithAnXidThatNoApplicationCausesIsSick) {
  GpuState gpu = WorkingGpu(0);
  gpu.fault_xid = 48;
  EXPECT_THAT(FindGpuProblems(LookAt({gpu}), nullptr), ElementsAre(Problem("GpuSick", "Xid 48 of GPU 0 (GPU-0)")));
}

TEST(GpuProblems, SeveralModelsAreMixed) {
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0, "A"), WorkingGpu(1, "B"), WorkingGpu(2, "A")}), nullptr),
              ElementsAre(Problem("GpuModelsMixed", "2 of \"A\", 1 of \"B\"")));
}

TEST(GpuProblems, ACountThatIsNotTheAllocatableOneIsTold) {
  const kube::Node two = NodeThatOffers(2), none = NodeThatOffers(std::nullopt);
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0)}), &two),
              Count("offers 2 nvidia.com/gpu, and its driver shows 1 GPU in"));
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0)}), &none), Count("is NVIDIA's device plugin running?"));
  EXPECT_THAT(FindGpuProblems(NodeSample{.at = {}}, &two), Count("runtimeClassName"));
  EXPECT_GT(FindGpuProblems(LookAt({WorkingGpu(0)}), &two).at(0).told_after, kube::Duration::zero())
      << "the device plugin may be starting";
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0), Lost(WorkingGpu(1))}), &two),
              ElementsAre(Problem("GpuSick", "lost"), Problem("GpuCountDiffers", "1 GPU in working order")))
      << "pods may get the lost one";
}

TEST(GpuProblems, GpusSharedInTimeCountAsOftenAsTheyAreShared) {
  const kube::Node four = NodeThatOffers(4, {{"nvidia.com/gpu.replicas", "4"}});
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0)}), &four), IsEmpty());
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0), WorkingGpu(1)}), &four), Count("offers 4"));
  for (const char* text : {"0", "-3", "many", ""}) {
    const kube::Node one = NodeThatOffers(1, {{"nvidia.com/gpu.replicas", text}});
    EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0)}), &one), IsEmpty()) << text;
  }
}

TEST(GpuProblems, ANodeThatSharesItsGpusOffersNoWholeOnes) {
  const kube::StringMap shared = {{"sharing.ai.centauruscloud.io/mode", "milli"}};
  for (const std::optional<int> none : {std::optional<int>(), std::optional<int>(0)}) {
    const kube::Node node = NodeThatOffers(none, shared);
    EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0)}), &node), IsEmpty());
  }
  const kube::Node both = NodeThatOffers(1, shared);
  EXPECT_THAT(FindGpuProblems(LookAt({WorkingGpu(0)}), &both),
              Count("offers 1 nvidia.com/gpu beside parts of its GPUs"));
}

TEST(GpuProblems, PartsOfDividedGpusAreNotCounted) {
  GpuState gpu = WorkingGpu(0);
  gpu.gpu.is_divided = true;
  const kube::Node seven = NodeThatOffers(7);
  EXPECT_THAT(FindGpuProblems(LookAt({gpu}), &seven), IsEmpty());
}

}  // namespace
}  // namespace grus
