// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_children.h"

#include <gmock/gmock.h>

#include "tests/controllers/trial/trial_builder.h"

namespace grus {
namespace {

using kube::Json;

api::ElasticHorovodJobSpec JobSpec() {
  api::ElasticHorovodJobSpec spec;
  spec.launcher.image = "train:1";
  spec.launcher.python_command = {"python", "train.py"};
  spec.workers.image = "train:1";
  spec.workers.gpus_per_worker = 2;
  spec.workers.min_replicas = 1;
  spec.workers.max_replicas = 64;
  spec.run_policy.suspend = true;
  spec.run_policy.backoff_limit = 6;
  spec.run_policy.ttl_seconds_after_finished = 5;
  spec.queue_name = "research";
  return spec;
}

std::string EnvOf(const Json& made, const char* part, const std::string& name) {
  const Json* containers = made.At({"spec", part, "template", "spec", "containers"});
  if (containers == nullptr) return "no containers";
  for (const Json& container : *containers->AsArray()) {
    const Json* env = container.Find("env");
    if (env == nullptr) continue;
    for (const Json& item : *env->AsArray()) {
      if (*item.Find("name")->AsString() == name) return *item.Find("value")->AsString();
    }
  }
  return "";
}

std::vector<std::string> CommandOf(const Json& made) {
  std::vector<std::string> words;
  for (const Json& word : *made.At({"spec", "launcherSpec", "pythonCommand"})->AsArray()) {
    words.push_back(*word.AsString());
  }
  return words;
}

TEST(MakeJobTrial, IsAJobOfFixedSizeThatEndsByItself) {
  const api::TrialJob job = testing::TestTrialJob();

  const Json made = MakeJobTrial(job, JobSpec(), {"tune-g8-x", {"", 8, 0, 0}, 300, 17});

  for (const char* count : {"minReplicas", "maxReplicas", "targetReplicas"}) {
    EXPECT_EQ(*made.At({"spec", "workersSpec", count})->AsInt(), 4) << count;
  }
  const auto child = kube::Decode<api::ElasticHorovodJob>(kube::ToText(made));
  ASSERT_TRUE(child);
  const api::RunPolicy& policy = (*child)->spec.run_policy;
  EXPECT_FALSE(policy.suspend);
  EXPECT_EQ(policy.backoff_limit, 0);
  EXPECT_EQ(policy.clean_pod_policy, api::CleanPodPolicy::kRunning);
  EXPECT_EQ(policy.active_deadline_seconds, 300 + kStartAllowanceSeconds);
  EXPECT_FALSE(policy.ttl_seconds_after_finished);
  EXPECT_EQ((*child)->spec.queue_name, "research");
  EXPECT_EQ((*child)->spec.profile, "Off");
  EXPECT_EQ((*child)->metadata.Controller()->uid, job.metadata.uid);
  EXPECT_EQ((*child)->metadata.Label(kTrialJobLabel), "tune");
}

TEST(MakeJobTrial, CarriesItsSliceForWhoeverReadsIt) {
  const api::TrialJob job = testing::TestTrialJob();
  const Json made = MakeJobTrial(job, JobSpec(), {"tune-g8-x", {"", 8, 0, 0}, 300, 17});
  const auto child = kube::Decode<api::ElasticHorovodJob>(kube::ToText(made));
  const TrialChild read = ReadTrialChild(**child, job);
  EXPECT_TRUE(read.is_ours);
  EXPECT_EQ(read.slice_seconds, 300);
  EXPECT_EQ(read.spent_before, 17);
}

TEST(MakeJobTrial, GivesTheBatchSizeToBothAndKeepsWhatTheUserHas) {
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.batch_size_env = "BATCH";
  api::ElasticHorovodJobSpec workload = JobSpec();
  workload.workers.pod_template = *kube::ParseJson(
      R"({"spec":{"containers":[{"name":"worker","env":[{"name":"BATCH","value":"1"},{"name":"A","value":"b"}]}]}})");

  const Json made = MakeJobTrial(job, workload, {"tune-g8-x", {"", 8, 0, 64}, 300, 0});

  EXPECT_EQ(EnvOf(made, "launcherSpec", "BATCH"), "64");
  EXPECT_EQ(EnvOf(made, "workersSpec", "BATCH"), "64");
  EXPECT_EQ(EnvOf(made, "workersSpec", "A"), "b");
  EXPECT_THAT(CommandOf(made), ::testing::ElementsAre("python", "train.py"));
}

TEST(MakeJobTrial, PutsTheBatchSizeBehindTheCommand) {
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.batch_size_option = "--batch-size";
  EXPECT_THAT(CommandOf(MakeJobTrial(job, JobSpec(), {"t", {"", 8, 0, 64}, 300, 0})),
              ::testing::ElementsAre("python", "train.py", "--batch-size", "64"));
  job.spec.space.batch_size_option = "-b=";
  EXPECT_THAT(CommandOf(MakeJobTrial(job, JobSpec(), {"t", {"", 8, 0, 64}, 300, 0})),
              ::testing::ElementsAre("python", "train.py", "-b=64"));
  EXPECT_THAT(CommandOf(MakeJobTrial(job, JobSpec(), {"t", {"", 8, 0, 0}, 300, 0})),
              ::testing::ElementsAre("python", "train.py"));
}

TEST(MakeJobTrial, SelectsTheNodesOfItsGpuTypeBesidesThoseOfTheUser) {
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.gpu_types = {{"A100", {}}};
  api::ElasticHorovodJobSpec workload = JobSpec();
  workload.workers.pod_template = *kube::ParseJson(R"({"spec":{"nodeSelector":{"pool":"b"}}})");
  const Json made = MakeJobTrial(job, workload, {"t", {"A100", 8, 0, 0}, 300, 0});
  const Json& selector = *made.At({"spec", "workersSpec", "template", "spec", "nodeSelector"});
  EXPECT_EQ(selector, *kube::ParseJson(R"({"pool":"b","nvidia.com/gpu.product":"A100"})"));
  EXPECT_EQ(made.At({"spec", "launcherSpec", "template", "spec", "nodeSelector"}), nullptr);
}

TEST(MakeJobTrial, TemplatesThatAreNoneAreLeftToTheServerToRefuse) {
  api::TrialJob job = testing::TestTrialJob();
  job.spec.space.batch_size_env = "BATCH";
  job.spec.space.gpu_types = {{"A100", {}}};
  for (const char* text :
       {R"("x")", "[]", R"({"spec":"x"})", R"({"spec":{"containers":"x","nodeSelector":[]}})",
        R"({"spec":{"containers":["x",{"name":5}]}})", R"({"spec":{"containers":[{"name":"worker","env":"x"}]}})"}) {
    api::ElasticHorovodJobSpec workload = JobSpec();
    workload.workers.pod_template = *kube::ParseJson(text);
    EXPECT_TRUE(MakeJobTrial(job, workload, {"t", {"A100", 8, 0, 64}, 300, 0}).is_object()) << text;
  }
}

}  // namespace
}  // namespace grus
