// SPDX-License-Identifier: Apache-2.0
// Gangs whose members are made by Jobs of the real Job controller, and replacements that come late.
#include "clientlib/model/batch_v1.h"
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

class GangJob : public Gang {
 protected:
  void CreateJob(const std::string& name, int pods, int gpus, std::string_view job_spec = "{}",
                 const std::string& group = kGroup) {
    kube::Json job = kit::MakeJob(name, pods, PodSpec(gpus), kit::MemberOf(group));
    kube::MergePatch(job["spec"], FromText(job_spec));
    world().Create(kube::KindOf<kube::Job>(), ns(), job);
  }
  std::shared_ptr<const kube::Job> TheKubernetesJob(const std::string& name) const {
    const auto job = client().Get<kube::Job>({ns(), name});
    return job ? *job : nullptr;
  }
  // Its pods, but those that are being deleted.
  PodList PodsOf(const std::string& job) const {
    PodList pods = Members();
    std::erase_if(pods, [&](const PodPtr& pod) { return pod->metadata.Label("job-name") != job; });
    return pods;
  }
  void EndWork(const std::string& job) {
    for (const PodPtr& pod : PodsOf(job)) SetOutcome(pod->metadata.name, "succeed");
  }
};

struct JobCase {
  const char* name;
  const char* spec;
};
std::ostream& operator<<(std::ostream& out, const JobCase& job) { return out << job.name; }

// None of these may fail once.

class GangJobRollBack : public GangJob, public ::testing::WithParamInterface<JobCase> {};

TEST_P(GangJobRollBack, IsNoFailureOfTheJob) {
  AddNode(8);
  CreateClaimWithoutVolume();
  CreateGroup(3, kGroup, R"({"scheduleTimeoutSeconds":3})");
  CreateJob("train", 2, 2, GetParam().spec);
  CreateSet(1, 2, "claim", kGroup, kWithClaim);
  ASSERT_TRUE(Await("it was rolled back", [&] { return Group()->status.attempts >= 1; }));
  ASSERT_TRUE(Await("the Job made its pods again, gated",
                    [&] { return PodsOf("train").size() == 2 && Where(PodsOf("train"), IsGated).size() == 2; }));

  EXPECT_EQ(TheKubernetesJob("train")->status.failed, 0);
  EXPECT_FALSE(TheKubernetesJob("train")->status.is_failed());
  CreateVolume();
  ASSERT_TRUE(Await("it runs once it can", [&] { return Runs(3); }));
  EndWork("train");
  EXPECT_TRUE(Await("and the Job completes", [&] { return TheKubernetesJob("train")->status.is_complete(); }));
}

INSTANTIATE_TEST_SUITE_P(
    , GangJobRollBack,
    ::testing::Values(JobCase{"WithoutAPolicy", R"({"backoffLimit":0})"},
                      JobCase{"ReplacingOnlyFailedPods", R"({"backoffLimit":0,"podReplacementPolicy":"Failed"})"},
                      JobCase{"WithAPolicyThatIgnoresDisruptions", R"({"backoffLimit":0,"podFailurePolicy":{"rules":[
            {"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]},
            {"action":"FailJob","onExitCodes":{"operator":"NotIn","values":[0]}}]}})"},
                      JobCase{"Indexed", R"({"backoffLimitPerIndex":0,"completionMode":"Indexed"})"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST_F(GangJob, OneThatGivesUpLeavesAGangThatFailed) {
  AddNode(8);
  CreateGroup(3);
  CreateJob("train", 3, 2, R"({"backoffLimit":0})");
  ASSERT_TRUE(Await("it runs", [&] { return Runs(3); }));
  SetOutcome(PodsOf("train").front()->metadata.name, "fail");

  EXPECT_TRUE(Await("the gang has failed", [&] { return GroupPhase() == "Failed"; }));
  EXPECT_THAT(GroupMessage(), HasSubstr("failed, 0 of the 3 members"));  // The Job ends the others, too.
}

}  // namespace
}  // namespace grus::testing
