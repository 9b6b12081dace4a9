// SPDX-License-Identifier: Apache-2.0
// TrialJobs on a real API server: short runs on several sizes, measured by their logs, and nothing left behind.
#include "controllers/trial/trial_view.h"
#include "tests/integration/trial_fixture.h"

namespace grus::testing {
namespace {

using api::TrialJobPhase;
using api::TrialPhase;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr seconds kLong{180};  // Several trials, one after another.

class Trial : public TrialJobs {};

TEST_F(Trial, TheLadderEndsWithTheKnee) {
  AddNode(16);
  Train(100, 4);

  CreateTrialJob(R"({"space":{"gpuCounts":[1,2,4,8,16]}})");

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong));
  EXPECT_THAT(Trials(TrialPhase::kSucceeded), ElementsAre("1 GPUs PrecisionReached", "2 GPUs PrecisionReached",
                                                          "4 GPUs PrecisionReached", "8 GPUs PrecisionReached"));
  EXPECT_THAT(Trials(TrialPhase::kSkipped), ElementsAre("16 GPUs NoMoreGain"));
  ASSERT_TRUE(Knee());
  EXPECT_EQ(Knee()->gpus, 4);
  EXPECT_EQ(Tune()->status.progress, "4/4");
  EXPECT_EQ(Tune()->status.throughput_unit, api::ThroughputUnit::kSamplesPerSecond);
  EXPECT_NEAR(std::stod(Tune()->status.trials[1].measured->throughput), 200, 10);
  std::int64_t spent = 0;
  for (const api::Trial& trial : Tune()->status.trials) spent += trial.gpu_seconds;
  EXPECT_GT(spent, 0);
  EXPECT_EQ(Tune()->status.spent.gpu_seconds, spent);
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(Trial, WithTheTrialJobGoesAllThatItMade) {
  AddNode(8);
  CreateTrialJob(R"({"space":{"gpuCounts":[2]}})");
  ASSERT_TRUE(Await("pods are there", [&] { return !world().List<kube::Pod>(ns()).empty(); }));

  Delete<api::TrialJob>(kTrialJob);

  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

}  // namespace
}  // namespace grus::testing
