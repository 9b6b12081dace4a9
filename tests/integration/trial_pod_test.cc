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
using ::testing::HasSubstr;

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

TEST_F(TrialPod, AManagerThatIsKilledAmongTrialsStartsNoneTwice) {
  AddNode(8);
  Train(100, 8);
  CreatePodTrialJob(R"({"gpuCounts":[1,2]})");
  for (const std::size_t killed_at : {0U, 1U}) {
    ASSERT_TRUE(Await(
        "a trial runs",
        [&] {
          const auto job = Tune();
          return job && job->status.trials.size() == 2 && job->status.trials[killed_at].phase >= TrialPhase::kStarting;
        },
        kLong));
    KillManager();
    StartManager();
  }

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong))
      << ReadyMessage();
  EXPECT_EQ(EverTrials().size(), 2U);
  for (const auto& [name, uids] : EverTrials()) EXPECT_EQ(uids.size(), 1U) << name;
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(TrialPod, AnImageThatDoesNotExistIsSaidInSecondsAndTriedOnce) {
  AddNodeWithoutKubelet(8);
  CreatePodTrialJob(R"({"gpuCounts":[1,2]})");
  ASSERT_TRUE(Await("the pod is bound", [&] {
    const PodPtr pod = TheTrial();
    return pod && IsBound(*pod);
  }));
  const kube::ObjectKey key = TheTrial()->metadata.Key();

  Patch<kube::Pod>(key.name, R"({"status":{"phase":"Pending","containerStatuses":[{"name":"train",
      "image":"a","imageID":"","restartCount":0,"ready":false,
      "state":{"waiting":{"reason":"ErrImagePull","message":"registry.test/train:1: not found"}}}]}})",
                   "status");

  ASSERT_TRUE(Await(
      "it fails", [&] { return Trials(TrialPhase::kFailed).size() == 1; }, seconds(10)));
  EXPECT_THAT(Tune()->status.trials[0].message, HasSubstr("registry.test/train:1: not found"));
  EXPECT_EQ(EverTrials().size(), 1U);
  // Nobody plays the kubelet that would end it.
  ASSERT_TRUE(Await("it is being deleted", [&] {
    const PodPtr pod = TheTrial();
    return !pod || pod->metadata.is_being_deleted();
  }));
  kube::DeleteOptions now;
  now.grace_period_seconds = 0;
  Must(client().Delete(kube::KindOf<kube::Pod>(), key, now));
  ASSERT_TRUE(Await("the TrialJob fails", [&] { return HasPhase(TrialJobPhase::kFailed); }));
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(TrialPod, LargerThanANodeIsSkipped) {
  AddNodes(2, 2);
  CreatePodTrialJob(R"({"gpuCounts":[4]})");
  ASSERT_TRUE(Await(
      "it says so", [&] { return HasPhase(TrialJobPhase::kFailed); }, seconds(10)));
  EXPECT_THAT(Trials(TrialPhase::kSkipped), ElementsAre("4 GPUs DoesNotFit"));
  EXPECT_THAT(Tune()->status.trials[0].message, HasSubstr("no node"));
  EXPECT_TRUE(EverTrials().empty());
}

TEST_F(TrialPod, WaitsInTheQueueAndSaysForWhat) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  ASSERT_TRUE(Await("the node is taken", [&] { return Phase() == "Running"; }));
  CreatePodTrialJob(R"({"gpuCounts":[2]})");
  ASSERT_TRUE(Await("it says so", [&] {
    return ReadyReason() == "WaitingForRoom" && ReadyMessage().find("2 of 2 GPUs are held") != std::string::npos;
  })) << ReadyMessage();
  Delete<api::ElasticHorovodJob>(kName);
  EXPECT_TRUE(Await("it is bound", [&] {
    const PodPtr pod = TheTrial();
    return pod && IsBound(*pod);
  }));
}

}  // namespace
}  // namespace grus::testing
