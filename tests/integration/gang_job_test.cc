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
    kube::Json job = FromText(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{},
        "spec":{"template":{"metadata":{"labels":{}}}}})");
    job["metadata"]["name"] = name;
    kube::Json& spec = job["spec"];
    spec["parallelism"] = pods;
    spec["completions"] = pods;
    spec["template"]["metadata"]["labels"][api::kPodGroupLabel] = group;
    spec["template"]["spec"] = PodSpec(gpus);
    spec["template"]["spec"]["restartPolicy"] = "Never";
    kube::MergePatch(spec, FromText(job_spec));
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

TEST_F(GangJob, TheNextJobOfAGroupStartsWholeAlthoughThePodsOfTheLastAreStillThere) {
  AddNode(8);
  CreateGroup(4);
  CreateJob("monday", 4, 2);
  ASSERT_TRUE(Await("the first one runs", [&] { return Runs(4); }));
  EndWork("monday");
  ASSERT_TRUE(Await("it is finished", [&] { return GroupPhase() == "Finished"; }));
  CreateOutsider("outsider", 4);
  ASSERT_TRUE(Await("the outsider has half the node", [&] { return IsBound(*ThePod("outsider")); }));

  CreateJob("tuesday", 4, 2);

  ASSERT_TRUE(Await("it waits", [&] { return GroupReason() == "WaitingForRoom"; }));
  EXPECT_TRUE(Stays(
      "all of it", [&] { return Where(PodsOf("tuesday"), IsGated).size() == 4; }, kQuiet));
  EXPECT_EQ(Group()->status.succeeded, 0);
  DeletePod("outsider");
  EXPECT_TRUE(Await("it runs whole",
                    [&] { return GroupPhase() == "Running" && Where(PodsOf("tuesday"), IsReady).size() == 4; }));
}

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

TEST_F(GangJob, AReplacementThatComesLateEndsNobodyThatRuns) {
  AddNode(8);
  CreateGroup(4, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateSet(4, 1);
  ASSERT_TRUE(Await("it runs", [&] { return Runs(4); }));
  const auto scale = [&](int replicas) {
    Patch<kube::StatefulSet>(kGroup, R"({"spec":{"replicas":)" + std::to_string(replicas) + "}}");
  };
  scale(3);
  ASSERT_TRUE(Await("one is gone", [&] { return Members().size() == 3 && GroupReason() == "BelowMinimum"; }));
  const PodList rest = Members();
  ASSERT_TRUE(Stays(
      "its time passes", [&] { return AllSurvive(rest, Members()); }, kQuiet));

  scale(4);

  ASSERT_TRUE(Await("it is whole again", [&] { return Runs(4); }));
  EXPECT_TRUE(AllSurvive(rest, Members()));
  EXPECT_EQ(Group()->status.attempts, 0);
}

TEST_F(GangJob, AMemberThatTakesLongToStopEndsNobodyElse) {
  AddNode(8);
  CreateGroup(3, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateSet(3, 1, kGroup, kGroup, R"({"terminationGracePeriodSeconds":60})");
  ASSERT_TRUE(Await("it runs", [&] { return Runs(3); }));
  PodList rest = Members();
  rest.erase(rest.begin());
  Patch<kube::Pod>("gang-0", R"({"metadata":{"annotations":{"grus.test/stop-seconds":"4"}}})");
  DeletePod("gang-0");

  ASSERT_TRUE(Await("it is below its minimum", [&] { return Members().size() == 2; }));
  ASSERT_TRUE(Await("it is whole again", [&] { return Members().size() == 3 && Runs(3); }));
  EXPECT_TRUE(AllSurvive(rest, Members()));
}

}  // namespace
}  // namespace grus::testing
