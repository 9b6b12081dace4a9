// SPDX-License-Identifier: Apache-2.0
// What trials measured, and a job of the same workload that runs slower, on a real API server.
#include <atomic>

#include "controllers/policy/workload_fingerprint.h"
#include "controllers/trial/profile_status.h"
#include "crds/types/workload_profile.h"
#include "tests/integration/trial_fixture.h"

namespace grus::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class TrialDrift : public TrialJobs {
 protected:
  // Workloads of other runs of this test have other profiles.
  void CreateSame(const std::string& name, std::string_view spec) {
    kube::Json job = Manifest(name, spec);
    job["spec"]["launcherSpec"]["pythonCommand"] = FromText(R"(["python","train.py",")" + ns() + R"("])");
    job["metadata"]["namespace"] = ns();
    world().Create(kube::KindOf<api::ElasticHorovodJob>(), ns(), job);
  }
  void TearDown() override {
    if (!profile_.empty()) world().Delete(kube::KindOf<api::WorkloadProfile>(), {"", profile_});
    TrialJobs::TearDown();
  }
  std::shared_ptr<const api::WorkloadProfile> Profile() { return world().Get<api::WorkloadProfile>("", profile_); }

  std::string profile_;
  std::atomic<double> per_gpu_{100};  // What the trainings do; their thread outlives the body of the test.
};

TEST_F(TrialDrift, AJobThatRunsSlowerThanItsTrialIsADriftOfTheProfile) {
  AddNode(8);
  Train([this](int gpus, int number) {
    char text[80];
    std::snprintf(text, sizeof text, "step %d loss 2.31 speed %.2f samples/s", number,
                  per_gpu_ * gpus * (1 + 0.01 * (number % 3 - 1)));
    return std::string(text);
  });
  CreateSame("bert", R"({"workersSpec":{"minReplicas":2,"maxReplicas":2,"targetReplicas":2},
                         "runPolicy":{"suspend":true}})");
  CreateTrialJob(R"({"workload":{"jobRef":{"name":"bert"}},"space":{"gpuCounts":[2]},"cache":{"policy":"Use"}})");
  ASSERT_TRUE(Await(
      "the trial succeeds", [&] { return HasPhase(api::TrialJobPhase::kSucceeded); }, seconds(120)));
  profile_ = Tune()->status.fingerprint;
  ASSERT_TRUE(Await("the profile has its status", [&] { return Profile() && Profile()->status.points == 1; }));

  per_gpu_ = 50;
  Patch<api::ElasticHorovodJob>("bert", R"({"spec":{"runPolicy":{"suspend":false}}})");

  ASSERT_TRUE(Await(
      "the drift is seen", [&] { return Profile()->status.drift.has_value(); }, seconds(180)));
  const auto profile = Profile();
  const auto* drifted = kube::FindCondition(profile->status.conditions, "Drifted");
  ASSERT_NE(drifted, nullptr);
  EXPECT_EQ(drifted->status + " " + drifted->reason, std::string("True ") + kReasonSlower);
  EXPECT_THAT(drifted->message, HasSubstr("on 2 GPUs on 1 node, " + ns() + "/bert runs at "));
  EXPECT_NEAR(std::stod(profile->status.drift->observed.throughput), 100, 5);
  EXPECT_NEAR(std::stod(profile->spec.points[0].measured.throughput), 200, 10);
  const auto has_event = [&](const std::string& in, const std::string& about) {
    const auto events = world().List<kube::Event>(in);
    return std::any_of(events.begin(), events.end(), [&](const auto& event) {
      return event->reason == kReasonSlower && event->regarding.name == about;
    });
  };
  EXPECT_TRUE(Await("the job has the event", [&] { return has_event(ns(), "bert"); }));
  EXPECT_TRUE(Await("the profile has the event", [&] { return has_event("default", profile_); }));
}

}  // namespace
}  // namespace grus::testing
