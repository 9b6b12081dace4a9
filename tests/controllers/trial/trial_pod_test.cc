// SPDX-License-Identifier: Apache-2.0
// Trials that are pods: what is made of a template, and what is read of the pod.
#include <gmock/gmock.h>

#include "controllers/trial/trial_children.h"
#include "tests/controllers/trial/trial_builder.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::HasSubstr;

constexpr char kTemplate[] = R"({"metadata":{"name":"mine","labels":{"team":"a"},"annotations":{"note":"b"}},
    "spec":{"restartPolicy":"Always","nodeSelector":{"pool":"b"},"containers":[{"name":"side","image":"s"},
    {"name":"train","image":"t","command":["torchrun"],"args":["train.py"],
     "resources":{"limits":{"nvidia.com/gpu":1,"cpu":"4"}},"env":[{"name":"BATCH","value":"1"}]}]}})";

Json Template(const std::string& patch = "{}") {
  Json made = *kube::ParseJson(kTemplate);
  kube::MergePatch(made, *kube::ParseJson(patch));
  return made;
}

Json Made(const api::TrialJob& job, const TrialStart& start, bool is_gang = true) {
  return MakePodTrial(job, Template(), start, is_gang);
}

const Json& Training(const Json& made) { return made.At({"spec", "containers"})->AsArray()->at(1); }

TEST(MakePodTrial, IsAPodWithAllItsGpusThatEndsByItself) {
  const api::TrialJob job = testing::TestTrialJob();

  const Json made = Made(job, {"tune-g8-x", {"", 8, 0, 0}, 300, 17});

  EXPECT_EQ(*Training(made).At({"resources", "limits"}), *kube::ParseJson(R"({"nvidia.com/gpu":"8","cpu":"4"})"));
  EXPECT_EQ(*Training(made).At({"resources", "requests"}), *kube::ParseJson(R"({"nvidia.com/gpu":"8"})"));
  EXPECT_EQ(made.At({"spec", "containers"})->AsArray()->at(0).Find("resources"), nullptr);
  EXPECT_EQ(*made.At({"spec", "restartPolicy"})->AsString(), "Never");
  EXPECT_EQ(*made.At({"spec", "activeDeadlineSeconds"})->AsInt(), 300 + kStartAllowanceSeconds);
  const auto pod = kube::Decode<kube::Pod>(kube::ToText(made));
  ASSERT_TRUE(pod);
  EXPECT_EQ((*pod)->metadata.name, "tune-g8-x");
  EXPECT_EQ((*pod)->metadata.Controller()->uid, job.metadata.uid);
  EXPECT_EQ((*pod)->metadata.Label(kTrialJobLabel), "tune");
  EXPECT_EQ((*pod)->metadata.Label("team"), "a");
  EXPECT_EQ((*pod)->metadata.Annotation("note"), "b");
}

TEST(MakePodTrial, IsAGangOfOneWhereGangsAre) {
  const api::TrialJob job = testing::TestTrialJob();
  const TrialStart start{"tune-g1-x", {"", 1, 0, 0}, 300, 0};

  const Json gang = Made(job, start, true), alone = Made(job, start, false);

  EXPECT_EQ(*gang.At({"spec", "schedulingGates"}), *kube::ParseJson(R"([{"name":"scheduling.x-k8s.io/gang"}])"));
  EXPECT_EQ(*gang.At({"metadata", "labels", api::kPodGroupLabel})->AsString(), "tune-g1-x");
  EXPECT_EQ(alone.At({"spec", "schedulingGates"}), nullptr);
  EXPECT_EQ(alone.At({"metadata", "labels", api::kPodGroupLabel}), nullptr);
}

TEST(MakePodTrial, ATemplateWithoutGpusGivesThemToItsFirstContainer) {
  const Json plain = *kube::ParseJson(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})");
  const Json made = MakePodTrial(testing::TestTrialJob(), plain, {"t", {"", 2, 0, 0}, 300, 0}, true);
  const Json::Array& containers = *made.At({"spec", "containers"})->AsArray();
  EXPECT_EQ(*containers[0].At({"resources", "limits", "nvidia.com/gpu"})->AsString(), "2");
  EXPECT_EQ(containers[1].Find("resources"), nullptr);
}

TEST(MakePodTrial, APartOfAGpuStaysWhatItIs) {
  const Json parts = *kube::ParseJson(R"({"spec":{"containers":[{"name":"side"},
      {"name":"train","resources":{"limits":{"alnair/vgpu-memory":2,"alnair/vgpu-compute":50}}}]}})");
  const TrialStart start{"t", {"", 2, 0, 16}, 300, 0, 2};
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.batch_size_env = "BATCH";
  const Json made = MakePodTrial(job, parts, start, true);
  EXPECT_EQ(*Training(made).At({"resources"}),
            *kube::ParseJson(R"({"limits":{"alnair/vgpu-memory":2,"alnair/vgpu-compute":50}})"));
  const auto has = [&](const char* name, const char* value) {
    const Json::Array& env = *Training(made).Find("env")->AsArray();
    return std::ranges::count(env, Json::MakeObject({{"name", name}, {"value", value}})) == 1;
  };
  EXPECT_TRUE(has("BATCH", "16")) << "in the container that trains";
  EXPECT_TRUE(has("WORLD_SIZE", "2"));
  EXPECT_TRUE(has("NPROC_PER_NODE", "1"));
}

TEST(MakePodTrial, GivesTheBatchSizeAsVariableAndBehindTheArgumentsOrTheCommand) {
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.batch_size_env = "BATCH";
  job.spec.space.batch_size_option = "--batch-size";
  const TrialStart start{"t", {"", 2, 0, 64}, 300, 0};
  const Json only_command = Template(R"({"spec":{"containers":[{"name":"train","command":["python","train.py"]}]}})");

  const Json made = Made(job, start), plain = MakePodTrial(job, only_command, start, true);

  EXPECT_EQ(*Training(made).Find("args"), *kube::ParseJson(R"(["train.py","--batch-size","64"])"));
  EXPECT_EQ(*Training(made).Find("command"), *kube::ParseJson(R"(["torchrun"])"));
  EXPECT_EQ(*Training(made).Find("env"), *kube::ParseJson(R"([{"name":"BATCH","value":"64"}])"));
  EXPECT_EQ(*plain.At({"spec", "containers"})->AsArray()->at(0).Find("command"),
            *kube::ParseJson(R"(["python","train.py","--batch-size","64"])"));
}

TEST(MakePodTrial, SelectsTheNodesOfItsGpuTypeBesidesThoseOfTheUser) {
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.gpu_types = {{"A100", {}}};
  const Json made = Made(job, {"t", {"A100", 8, 0, 0}, 300, 0});
  EXPECT_EQ(*made.At({"spec", "nodeSelector"}), *kube::ParseJson(R"({"pool":"b","nvidia.com/gpu.product":"A100"})"));
}

TEST(MakePodTrial, WhatIsNoPodIsLeftToTheServerToRefuse) {
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.batch_size_env = "BATCH";
  job.spec.space.batch_size_option = "-b";
  job.spec.space.gpu_types = {{"A100", {}}};
  for (const char* spec :
       {R"({"nodeSelector":[],"schedulingGates":"x","containers":[{"name":5,"env":"x","args":["a"],"command":"x"}]})",
        R"({"containers":[{"resources":"x","command":["a"]}]})", R"({"containers":[{"resources":{"limits":1}}]})"}) {
    const Json plain = Json::MakeObject({{"metadata", "x"}, {"spec", *kube::ParseJson(spec)}});
    EXPECT_TRUE(MakePodTrial(job, plain, {"t", {"A100", 8, 0, 64}, 300, 0}, true).is_object()) << spec;
  }
}

TEST(MakeTrialGroup, HasOneMemberAndGoesWithItsPod) {
  kube::Pod pod;
  pod.metadata.name = "tune-g1-x";
  pod.metadata.ns = "team-a";
  pod.metadata.uid = "pod-uid";
  const auto group = kube::Decode<api::PodGroup>(kube::ToText(MakeTrialGroup(pod)));
  ASSERT_TRUE(group);
  EXPECT_EQ((*group)->metadata.Key(), pod.metadata.Key());
  EXPECT_EQ((*group)->spec.min_member, 1);
  ASSERT_NE((*group)->metadata.Controller(), nullptr);
  EXPECT_EQ((*group)->metadata.Controller()->uid, "pod-uid");
}

TEST(PodWorkload, HasItsOwnNodes) {
  const auto workload = PodWorkload(Template(), {});
  ASSERT_TRUE(workload);
  EXPECT_EQ(workload->node_selector, (std::map<std::string, std::string>{{"pool", "b"}}));
}

TEST(PodWorkload, SaysWhyNoTrialCanBeMadeOfIt) {
  api::TrialSpace space;
  space.batch_sizes = {64};
  space.batch_size_option = "-b";
  struct Case {
    const char *text, *why;
  };
  constexpr char kGpus[] = R"({"resources":{"limits":{"nvidia.com/gpu":1}},"args":["a"]})";
  const std::string two = R"({"spec":{"containers":[)" + std::string(kGpus) + "," + kGpus + "]}}";
  for (const Case& c :
       {Case{"5", "no container"}, Case{"{}", "no container"}, Case{R"({"spec":[]})", "no container"},
        Case{R"({"spec":{"containers":[]}})", "no container"},
        Case{R"({"spec":{"containers":["x"]}})", "not an object"}, Case{two.c_str(), "several containers"},
        Case{R"({"spec":{"containers":[{"name":"a"}]}})", "batchSizeOption"}}) {
    const auto workload = PodWorkload(*kube::ParseJson(c.text), space);
    ASSERT_FALSE(workload) << c.text;
    EXPECT_THAT(workload.error().message(), HasSubstr(c.why)) << c.text;
  }
}

// The pod of a trial in `status`, on a node if it is bound.
kube::Pod PodIn(const std::string& status, bool is_bound = true) {
  Json made = Made(testing::TestTrialJob(), {"tune-g2-x", {"", 2, 0, 0}, 300, 17});
  made["metadata"]["uid"] = "pod-uid";
  if (is_bound) made["spec"]["nodeName"] = "n1";
  made["status"] = *kube::ParseJson(status);
  const auto pod = kube::Decode<kube::Pod>(kube::ToText(made));
  EXPECT_TRUE(pod) << status;
  return **pod;
}

TEST(ReadPodChild, ItsPhaseIsThatOfTheContainerThatTrains) {
  const auto ended = [](const char* container, int code) {
    return R"({"phase":"Running","containerStatuses":[{"name":")" + std::string(container) +
           R"(","state":{"terminated":{"exitCode":)" + std::to_string(code) + "}}}]}";
  };
  struct Case {
    std::string status;
    bool has_node;
    const char* phase;
    bool lingers;
  };
  for (const Case& c :
       {Case{R"({"phase":"Running"})", true, "Running", false},
        Case{R"({"phase":"Succeeded"})", true, "Succeeded", false},
        Case{R"({"phase":"Failed"})", true, "Failed", false}, Case{R"({"phase":"Running"})", false, "Failed", false},
        Case{ended("train", 0), true, "Succeeded", true}, Case{ended("train", 1), true, "Failed", true},
        Case{ended("side", 1), true, "Running", false}}) {
    const TrialChild child = ReadPodChild(PodIn(c.status), nullptr, testing::TestTrialJob(), c.has_node);
    EXPECT_EQ(child.phase, c.phase) << c.status;
    EXPECT_EQ(child.lingers, c.lingers) << c.status;
    EXPECT_TRUE(child.is_ours);
    EXPECT_EQ(child.slice_seconds, 300);
    EXPECT_EQ(child.spent_before, 17);
  }
}

TEST(ReadPodChild, WaitsWithTheWordsOfItsGangOrOfTheScheduler) {
  const kube::Pod gated = PodIn(R"({"phase":"Pending"})", false);
  const kube::Pod refused = PodIn(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
      "reason":"Unschedulable","message":"0/1 nodes"}]})",
                                  false);
  const auto group = kube::Decode<api::PodGroup>(R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup",
      "metadata":{"name":"tune-g2-x"},"spec":{"minMember":1},"status":{"phase":"Pending","observedGeneration":1,
      "conditions":[{"type":"Ready","status":"False","reason":"WaitingForRoom","message":"waiting for 2 GPUs"}]}})");
  ASSERT_TRUE(group);
  const api::TrialJob job = testing::TestTrialJob();

  EXPECT_EQ(ReadPodChild(gated, group->get(), job, true).message, "waiting for 2 GPUs");
  EXPECT_EQ(ReadPodChild(gated, group->get(), job, true).phase, "Waiting");
  EXPECT_EQ(ReadPodChild(refused, nullptr, job, true).message, "0/1 nodes");
  EXPECT_EQ(ReadPodChild(gated, nullptr, job, true).phase, "");
}

TEST(ReadTrialPod, APodThatIsATrialHoldsGpusAndTellsTheSpeed) {
  const kube::Pod pod = PodIn(R"({"phase":"Running","conditions":[{"type":"PodScheduled","status":"True",
      "lastTransitionTime":"2026-01-02T03:04:05Z"}],"containerStatuses":[{"name":"side"},{"name":"train",
      "state":{"running":{"startedAt":"2026-01-02T03:04:07Z"}}}]})");
  TrialPods pods;
  ReadTrialPod(pod, PartAsTrial(pod), true, pods);
  EXPECT_EQ(pods.holding, 1);
  EXPECT_EQ(kube::ToText(*pods.first_bound), "2026-01-02T03:04:05Z");
  EXPECT_EQ(pods.launcher, "tune-g2-x");
  EXPECT_EQ(pods.launcher_container, "train");
  EXPECT_EQ(kube::ToText(*pods.launcher_started), "2026-01-02T03:04:07Z");
}

TEST(ReadTrialPod, TellsHowThePodThatIsATrialEnded) {
  const kube::Pod pod = PodIn(R"({"phase":"Failed","containerStatuses":[{"name":"train",
      "state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]})");
  TrialPods pods;
  ReadTrialPod(pod, PartAsTrial(pod), true, pods);
  EXPECT_EQ(pods.holding, 0);
  EXPECT_EQ(pods.out_of_memory, "pod tune-g2-x");
  EXPECT_EQ(pods.exit, "exit code 137 (OOMKilled)");
}

}  // namespace
}  // namespace grus
