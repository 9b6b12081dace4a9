// SPDX-License-Identifier: Apache-2.0
// Trials that are pods, on a real API server: measured by their logs, and nothing left behind.
#include "controllers/trial/trial_view.h"
#include "tests/integration/trial_fixture.h"

namespace grus::testing {
namespace {

using api::TrialJobPhase;
using api::TrialPhase;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr seconds kLong{180};

class TrialPod : public TrialJobs {
 protected:
  // One container trains, on this test's nodes; `space` is that of the spec.
  void CreatePodTrialJob(const std::string& space) {
    CreateTrialJob(
        R"({"workload":{"podTemplate":{"spec":{"nodeSelector":{"grus.test/pool":")" + pool() +
        R"("},"containers":[{"name":"train","image":"registry.test/train:1","command":["torchrun","train.py"]}
                   ]}}},"space":)" +
        space + "}");
  }
  PodPtr TheTrial() const {
    for (const PodPtr& pod : world().List<kube::Pod>(ns())) {
      if (!pod->metadata.Label(kTrialJobLabel).empty()) return pod;
    }
    return nullptr;
  }
};

TEST_F(TrialPod, TwoSizesAreMeasuredAndNothingIsLeft) {
  AddNode(8);
  Train(100, 8);

  CreatePodTrialJob(R"({"gpuCounts":[1,2]})");

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong))
      << ReadyMessage();
  EXPECT_THAT(Trials(TrialPhase::kSucceeded), ElementsAre("1 GPUs PrecisionReached", "2 GPUs PrecisionReached"));
  EXPECT_NEAR(std::stod(Tune()->status.trials[1].measured->throughput), 200, 10);
  EXPECT_GT(Tune()->status.spent.gpu_seconds, 0);
  EXPECT_TRUE(world().List<api::ElasticHorovodJob>(ns()).empty());
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

}  // namespace
}  // namespace grus::testing
