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
using ::testing::HasSubstr;

constexpr seconds kLong{180};  // Several trials, one after another.

class Trial : public TrialJobs {};

TEST_F(Trial, OneSizeIsMeasuredAndNothingIsLeft) {
  AddNode(8);
  Train(100, 8);

  CreateTrialJob(R"({"space":{"gpuCounts":[2]}})");

  ASSERT_TRUE(Await("it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong));
  EXPECT_THAT(Trials(TrialPhase::kSucceeded), ElementsAre("2 GPUs PrecisionReached"));
  const api::Trial& trial = Tune()->status.trials.front();
  EXPECT_NEAR(std::stod(trial.measured->throughput), 200, 10);
  EXPECT_EQ(Tune()->status.throughput_unit, api::ThroughputUnit::kSamplesPerSecond);
  EXPECT_GT(trial.gpu_seconds, 0);
  EXPECT_EQ(Tune()->status.spent.gpu_seconds, trial.gpu_seconds);
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

}  // namespace
}  // namespace grus::testing
