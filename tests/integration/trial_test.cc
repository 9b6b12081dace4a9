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

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong));
  EXPECT_THAT(Trials(TrialPhase::kSucceeded), ElementsAre("2 GPUs PrecisionReached"));
  const auto job = Tune();
  const api::Trial& trial = job->status.trials.front();
  EXPECT_NEAR(std::stod(trial.measured->throughput), 200, 10);
  EXPECT_EQ(job->status.throughput_unit, api::ThroughputUnit::kSamplesPerSecond);
  EXPECT_GT(trial.gpu_seconds, 0);
  EXPECT_EQ(job->status.spent.gpu_seconds, trial.gpu_seconds);
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

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
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(Trial, AnImageThatDoesNotExistIsSaidInSecondsAndTriedOnce) {
  AddNodeWithoutKubelet(8);
  CreateTrialJob(R"({"space":{"gpuCounts":[1,2]}})");
  const auto worker = [&]() -> PodPtr {
    for (const PodPtr& pod : world().List<kube::Pod>(ns())) {
      if (pod->metadata.Label(kRoleLabel) == "worker" && IsBound(*pod)) return pod;
    }
    return nullptr;
  };
  PodPtr bound;
  ASSERT_TRUE(Await("a worker is bound", [&] { return (bound = worker()) != nullptr; }));

  Patch<kube::Pod>(bound->metadata.name, R"({"status":{"phase":"Pending","containerStatuses":[{"name":"worker",
      "image":"a","imageID":"","restartCount":0,"ready":false,
      "state":{"waiting":{"reason":"ErrImagePull","message":"registry.test/train:1: not found"}}}]}})",
                   "status");

  ASSERT_TRUE(Await(
      "it fails", [&] { return Trials(TrialPhase::kFailed).size() == 1; }, seconds(10)));
  EXPECT_THAT(Tune()->status.trials[0].message, HasSubstr("registry.test/train:1: not found"));
  EXPECT_EQ(EverTrials().size(), 1u);
  // Nobody plays the kubelet that would end it.
  ASSERT_TRUE(Await("it is being deleted", [&] {
    const PodPtr pod = worker();
    return pod && pod->metadata.is_being_deleted();
  }));
  kube::DeleteOptions now;
  now.grace_period_seconds = 0;
  Must(client().Delete(kube::KindOf<kube::Pod>(), bound->metadata.Key(), now));
  ASSERT_TRUE(Await("the TrialJob fails", [&] { return HasPhase(TrialJobPhase::kFailed); }));
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
