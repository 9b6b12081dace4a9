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

TEST_F(Trial, AManagerThatIsKilledAmongTrialsStartsNoneTwice) {
  AddNode(8);
  Train(100, 8);
  CreateTrialJob(R"({"space":{"gpuCounts":[1,2]}})");
  for (const int killed_at : {1, 2}) {
    ASSERT_TRUE(Await(
        "a trial runs",
        [&] {
          const auto job = Tune();
          return job && job->status.trials.size() == 2 &&
                 job->status.trials[static_cast<std::size_t>(killed_at - 1)].phase >= TrialPhase::kStarting;
        },
        kLong));
    KillManager();
    StartManager();
  }

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong));
  EXPECT_EQ(EverTrials().size(), 2u);
  for (const auto& [name, uids] : EverTrials()) EXPECT_EQ(uids.size(), 1u) << name;
  std::int64_t spent = 0;
  const auto job = Tune();
  for (const api::Trial& trial : job->status.trials) spent += trial.gpu_seconds;
  EXPECT_EQ(job->status.spent.gpu_seconds, spent);
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(Trial, APatternThatMatchesNothingIsSaidInHalfAMinuteAndEndsAll) {
  AddNode(8);
  Train(100, 8);

  CreateTrialJob(R"json({"space":{"gpuCounts":[1,2]},
      "measure":{"patterns":[{"name":"speed","regex":"throughput=([0-9.]+)","kind":"SamplesPerSecond"}]}})json");

  ASSERT_TRUE(Await(
      "it fails", [&] { return HasPhase(TrialJobPhase::kFailed); }, seconds(60)));
  EXPECT_EQ(ReadyReason(), "NothingMeasured");
  EXPECT_THAT(ReadyMessage(), HasSubstr("none of measure.patterns matches"));
  EXPECT_THAT(Trials(TrialPhase::kFailed), ElementsAre("1 GPUs NothingMatched"));
  EXPECT_THAT(Trials(TrialPhase::kSkipped), ElementsAre("2 GPUs NothingMatched"));
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(Trial, APatternThatDoesNotCompileStartsNothing) {
  CreateTrialJob(R"({"measure":{"patterns":[{"name":"speed","regex":"speed (","kind":"Step"}]}})");

  ASSERT_TRUE(Await(
      "it says so", [&] { return ReadyReason() == "InvalidPattern"; }, seconds(10)));
  EXPECT_THAT(ReadyMessage(), HasSubstr("missing )"));
  EXPECT_TRUE(EverTrials().empty());
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

TEST_F(Trial, TheBudgetIsKeptToOnePoll) {
  AddNode(8);
  Train([](int, int number) { return "warming up " + std::string(static_cast<std::size_t>(number % 3), '.'); });

  CreateTrialJob(R"({"space":{"gpuCounts":[2,4]},"budget":{"gpuSeconds":50,"perTrialSeconds":12}})");

  ASSERT_TRUE(Await(
      "it ends", [&] { return HasPhase(TrialJobPhase::kFailed); }, seconds(90)));
  EXPECT_LE(Tune()->status.spent.gpu_seconds, 50 + 4 * 5);
  EXPECT_GE(Tune()->status.spent.gpu_seconds, 24);
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(Trial, ABudgetOfZeroRunsNothing) {
  AddNode(8);
  CreateTrialJob(R"({"budget":{"gpuSeconds":0}})");
  ASSERT_TRUE(Await(
      "it says so", [&] { return ReadyReason() == "BudgetSpent"; }, seconds(10)));
  EXPECT_TRUE(EverTrials().empty());
}

TEST_F(Trial, SuspendGivesTheGpusBackAndResumeMeasures) {
  AddNode(8);
  Train(100, 8);
  CreateTrialJob(R"({"space":{"gpuCounts":[2]}})");
  ASSERT_TRUE(Await("a trial runs", [&] { return !EverTrials().empty(); }));

  EditTrialJob(R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(Await("nothing is left", [&] { return HasPhase(TrialJobPhase::kSuspended) && NothingIsLeft(); }));
  EditTrialJob(R"({"spec":{"suspend":false}})");

  EXPECT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong));
}

TEST_F(Trial, WithTheTrialJobGoesAllThatItMade) {
  AddNode(8);
  CreateTrialJob(R"({"space":{"gpuCounts":[2]}})");
  ASSERT_TRUE(Await("pods are there", [&] { return !world().List<kube::Pod>(ns()).empty(); }));

  Delete<api::TrialJob>(kTrialJob);

  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(Trial, TheKneeIsAppliedToTheJobThatWasMeasured) {
  AddNode(8);
  Train(100, 2);
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":8},"runPolicy":{"suspend":true}})", "bert");

  CreateTrialJob(R"({"workload":{"jobRef":{"name":"bert"}},"space":{"gpuCounts":[1,2,4]},"apply":"Apply"})");

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong));
  EXPECT_TRUE(Await("bert has the knee", [&] { return TheJob("bert")->spec.workers.target_replicas == 2; }));
  EXPECT_TRUE(TheJob("bert")->spec.run_policy.suspend);
}

TEST_F(Trial, IdleOnlyTrialsGiveTheirGpusToWhoWaits) {
  AddNode(4);
  CreateTrialJob(R"({"space":{"gpuCounts":[4]},"idleOnly":true})");
  ASSERT_TRUE(Await("the trial runs", [&] { return Trials(TrialPhase::kWarming).size() == 1; }));

  Create(R"({"workersSpec":{"minReplicas":4}})");

  EXPECT_TRUE(AwaitTrains(4));
  EXPECT_TRUE(Await("it is told", [&] {
    const auto events = world().List<kube::Event>(ns());
    return std::any_of(events.begin(), events.end(), [](const auto& event) {
      return event->reason == "TrialStopped" && event->note.str().ends_with(": others wait for GPUs");
    });
  }));
  // It may stand in the queue by now, since nobody else does any more.
  EXPECT_TRUE(Await("the trial waits",
                    [&] { return Trials(TrialPhase::kPending).size() + Trials(TrialPhase::kStarting).size() == 1; }));
}

TEST_F(Trial, SizesBeyondTheClusterAreSkipped) {
  AddNode(2);
  CreateTrialJob(R"({"space":{"gpuCounts":[4,8]}})");
  ASSERT_TRUE(Await(
      "it says so", [&] { return HasPhase(TrialJobPhase::kFailed); }, seconds(10)));
  EXPECT_THAT(Trials(TrialPhase::kSkipped), ElementsAre("4 GPUs DoesNotFit", "8 GPUs DoesNotFit"));
  EXPECT_TRUE(EverTrials().empty());
}

TEST_F(Trial, AnEndedOneIsLeftInPeace) {
  AddNode(8);
  CreateTrialJob(R"({"budget":{"gpuSeconds":0}})");
  ASSERT_TRUE(Await("it ends", [&] { return HasPhase(TrialJobPhase::kFailed); }));
  const std::string version = Tune()->metadata.resource_version;
  EXPECT_TRUE(Stays(
      "nobody writes", [&] { return Tune()->metadata.resource_version == version; }, seconds(7)));
}

}  // namespace
}  // namespace grus::testing
