// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_view.h"

#include <gmock/gmock.h>

#include "tests/controllers/trial/trial_builder.h"
#include "tests/kit/moment.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

kube::Pod PodOf(const std::string& role, const std::string& status, const std::string& node = "n1") {
  const auto pod = kube::Decode<kube::Pod>(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"t-)" + role +
                                           R"(","uid":"u","labels":{"ai.centauruscloud.io/job-name":"t",
      "ai.centauruscloud.io/role":")" + role +
                                           R"("}},"spec":{"nodeName":")" + node + R"("},"status":)" + status + "}");
  EXPECT_TRUE(pod);
  return **pod;
}

TrialPods Read(const kube::Pod& pod, bool has_node = true) {
  TrialPods pods;
  ReadTrialPod(pod, PartInJob(pod), has_node, pods);
  return pods;
}

constexpr char kBound[] =
    R"("conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}])";

TEST(ReadTrialPod, AWorkerHoldsItsGpusFromItsBindingToItsEnd) {
  struct Case {
    std::string phase, node;
    bool has_node;
    int holding;
  };
  for (const Case& c :
       {Case{"Pending", "n1", true, 1}, Case{"Running", "n1", true, 1}, Case{"Succeeded", "n1", true, 0},
        Case{"Failed", "n1", true, 0}, Case{"Pending", "", true, 0}, Case{"Running", "n1", false, 0}}) {
    const TrialPods pods = Read(PodOf("worker", R"({"phase":")" + c.phase + "\"," + kBound + "}", c.node), c.has_node);
    EXPECT_EQ(pods.holding, c.holding) << c.phase << " on " << c.node;
    EXPECT_EQ(pods.first_bound.has_value(), !c.node.empty()) << c.phase;
  }
}

TEST(ReadTrialPod, TheFirstWorkerThatIsBoundCounts) {
  TrialPods pods = Read(PodOf("worker", R"({"phase":"Running","conditions":[{"type":"PodScheduled","status":"True",
      "lastTransitionTime":"2026-01-02T03:04:09Z"}]})"));
  const kube::Pod earlier = PodOf("worker", std::string(R"({"phase":"Running",)") + kBound + "}");
  ReadTrialPod(earlier, PartInJob(earlier), true, pods);
  EXPECT_EQ(kube::ToText(*pods.first_bound), "2026-01-02T03:04:05Z");
  EXPECT_EQ(pods.holding, 2);
}

TEST(ReadTrialPod, TheLauncherHoldsNoGpuAndHasStartedOnceItsContainerRuns) {
  const TrialPods waits = Read(PodOf("launcher", R"({"phase":"Pending"})"));
  EXPECT_EQ(waits.launcher, "t-launcher");
  EXPECT_FALSE(waits.launcher_started);
  const TrialPods runs =
      Read(PodOf("launcher", R"({"phase":"Running","containerStatuses":[{"name":"side"},{"name":"launcher",
      "state":{"running":{"startedAt":"2026-01-02T03:04:07Z"}}}]})"));
  EXPECT_EQ(kube::ToText(*runs.launcher_started), "2026-01-02T03:04:07Z");
  EXPECT_EQ(runs.holding, 0);
}

TEST(ReadTrialPod, TellsImagesThatCannotBeHadWithTheKubeletsWords) {
  for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}) {
    const TrialPods pods =
        Read(PodOf("worker", std::string(R"({"containerStatuses":[{"name":"worker","state":{"waiting":{"reason":")") +
                                 reason + R"(","message":"x:1: not found"}}}]})"));
    EXPECT_THAT(pods.image_problem, HasSubstr("x:1: not found")) << reason;
  }
  EXPECT_EQ(
      Read(PodOf("worker",
                 R"({"containerStatuses":[{"name":"worker","state":{"waiting":{"reason":"ContainerCreating"}}}]})"))
          .image_problem,
      "");
  EXPECT_NE(
      Read(PodOf("worker", R"({"initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"ErrImagePull"}}}]})"))
          .image_problem,
      "");
}

TEST(ReadTrialPod, TellsWhoWasOutOfMemoryAndHowTheLauncherEnded) {
  const auto ended = [](int code, const char* reason) {
    return R"({"containerStatuses":[{"name":"launcher","state":{"terminated":{"exitCode":)" + std::to_string(code) +
           R"(,"reason":")" + reason + R"("}}}]})";
  };
  struct Case {
    std::string role, status;
    bool is_oom;
    const char* exit;
  };
  for (const Case& c :
       {Case{"launcher", ended(137, "OOMKilled"), true, "exit code 137 (OOMKilled)"},
        Case{"launcher", ended(137, "Error"), true, "exit code 137 (Error)"},
        Case{"launcher", ended(1, "Error"), false, "exit code 1 (Error)"},
        Case{"launcher", ended(0, "Completed"), false, ""}, Case{"worker", ended(1, "Error"), false, ""},
        Case{"worker", ended(137, "OOMKilled"), true, ""}}) {
    const TrialPods pods = Read(PodOf(c.role, c.status));
    EXPECT_EQ(!pods.out_of_memory.empty(), c.is_oom) << c.status;
    EXPECT_EQ(pods.exit, c.exit) << c.status;
  }
}

TEST(ReadTrialPod, WhoIsKilledBecauseItIsDeletedWasNotOutOfMemory) {
  kube::Pod pod = PodOf(
      "worker", R"({"containerStatuses":[{"name":"w","state":{"terminated":{"exitCode":137,"reason":"Error"}}}]})");
  pod.metadata.deletion_timestamp = testing::At(0);
  EXPECT_EQ(Read(pod).out_of_memory, "");
}

TEST(ReadTrialChild, KnowsItsOwnAndWhatCannotBeCarriedOut) {
  api::ElasticHorovodJob child;
  const api::TrialJob job = testing::TestTrialJob();
  EXPECT_FALSE(ReadTrialChild(child, job).is_ours);
  child.status.observed_generation = 1;
  for (const auto& [reason, is_final] : {std::pair{"TemplateRefused", true}, std::pair{"NotPermitted", false}}) {
    child.status.conditions = {{.type = "Stalled", .status = "True", .reason = reason, .message = "no"}};
    EXPECT_EQ(!ReadTrialChild(child, job).refusal.empty(), is_final) << reason;
  }
  child.metadata.annotations = kube::StringMap();
  EXPECT_EQ(ReadTrialChild(child, job).slice_seconds, 1);  // Somebody took the annotation off: it is over.
}

TEST(TrialView, AGpuTypeIsTheProductOfItsNodesWhereThatIsOneAndNoOthers) {
  struct Case {
    const char* what;
    std::map<std::string, TypeNodes> nodes;
    const char* want;  // Of "fast".
  };
  const Case cases[] = {
      {"one product", {{"fast", {8, 8, "H100-SXM"}}, {"slow", {8, 8, "T4"}}}, "H100-SXM"},
      {"its own name", {{"fast", {8, 8, "fast"}}}, "fast"},
      {"several, or none", {{"fast", {8, 8, ""}}}, "fast"},
      {"no such nodes", {}, "fast"},
      {"two types of one product", {{"fast", {8, 8, "H100-SXM"}}, {"near", {8, 8, "H100-SXM"}}}, "fast"},
      {"a product that is another's name", {{"fast", {8, 8, "T4"}}, {"T4", {8, 8, "T4-16GB"}}}, "fast"},
  };
  for (const Case& c : cases) {
    TrialView view;
    view.nodes = c.nodes;
    EXPECT_EQ(view.ProductOf("fast"), c.want) << c.what;
    EXPECT_EQ(view.ProductOf(""), "") << c.what;
  }
}

}  // namespace
}  // namespace grus
