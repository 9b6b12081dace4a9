// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_space.h"

#include <gmock/gmock.h>

#include "controllers/policy/gpu_parts.h"
#include "tests/controllers/trial/trial_builder.h"

namespace grus {
namespace {

using api::TrialConfig;
using api::TrialReason;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> Gpus(const std::vector<TrialConfig>& configs) {
  std::vector<int> gpus;
  for (const TrialConfig& config : configs) gpus.push_back(config.gpus);
  return gpus;
}

Workload JobOf(int per_worker, std::optional<int> max_replicas = std::nullopt) {
  api::ElasticHorovodJobSpec spec;
  spec.workers.gpus_per_worker = per_worker;
  spec.workers.max_replicas = max_replicas;
  return JobWorkload(spec);
}

api::Trial Ended(const TrialConfig& config, api::TrialPhase phase, TrialReason reason) {
  api::Trial trial;
  trial.config = config;
  trial.phase = phase;
  trial.reason = reason;
  return trial;
}
api::Trial Measured(int gpus, const char* mean, const char* low, const char* high) {
  api::Trial trial = Ended({"", gpus, 0, 0}, api::TrialPhase::kSucceeded, TrialReason::kPrecisionReached);
  trial.measured.emplace();
  trial.measured->throughput = mean;
  trial.measured->throughput_low = low;
  trial.measured->throughput_high = high;
  return trial;
}

TEST(ConfigsOf, GoUpOneSizeAtATimeAndSmallBatchesFirst) {
  api::TrialSpace space;
  space.gpu_types = {{"A100", {}}, {"H100", {}}};
  space.gpu_counts = {4, 1};
  space.batch_sizes = {64, 32};

  const auto configs = ConfigsOf(space, JobOf(1));

  ASSERT_TRUE(configs);
  EXPECT_THAT(*configs,
              ElementsAre(TrialConfig{"A100", 1, 0, 32}, TrialConfig{"A100", 1, 0, 64}, TrialConfig{"H100", 1, 0, 32},
                          TrialConfig{"H100", 1, 0, 64}, TrialConfig{"A100", 4, 0, 32}, TrialConfig{"A100", 4, 0, 64},
                          TrialConfig{"H100", 4, 0, 32}, TrialConfig{"H100", 4, 0, 64}));
}

TEST(ConfigsOf, ASmallerBatchIsTriedWhereTheSmallestDidNotFit) {
  api::TrialSpace space;
  space.gpu_types = {{"A100", {}}, {"H100", {}}};
  space.gpu_counts = {1};
  space.batch_sizes = {64, 128};
  const auto too_large = [](int batch) {
    return Ended({"A100", 1, 0, batch}, api::TrialPhase::kFailed, TrialReason::kOutOfMemory);
  };
  const auto batches_on_a100 = [&](const std::vector<api::Trial>& trials) {
    std::vector<int> batches;
    const auto configs = ConfigsOf(space, JobOf(1), trials);
    for (const TrialConfig& config : *configs) {
      if (config.gpu_type == "A100") batches.push_back(config.batch_size);
    }
    return batches;
  };
  EXPECT_THAT(batches_on_a100({}), ElementsAre(64, 128));
  EXPECT_THAT(batches_on_a100({too_large(128)}), ElementsAre(64, 128));
  EXPECT_THAT(batches_on_a100({too_large(64)}), ElementsAre(32, 64, 128));
  EXPECT_THAT(batches_on_a100({too_large(64), too_large(32)}), ElementsAre(16, 32, 64, 128));
  EXPECT_EQ(ConfigsOf(space, JobOf(1), {too_large(64)})->size(), 5u);  // The other type keeps its two.
}

TEST(ConfigsOf, WithoutCountsAreDoublingWorkersUpToTheMost) {
  struct Case {
    int per_worker;
    std::optional<int> max_replicas;
    std::vector<int> gpus;
  };
  for (const Case& c : {Case{1, {}, {1, 2, 4, 8}}, Case{1, 6, {1, 2, 4, 6}}, Case{4, 3, {4, 8, 12}}, Case{2, 1, {2}},
                        Case{1, 0, {1}}}) {
    const auto configs = ConfigsOf({}, JobOf(c.per_worker, c.max_replicas));
    ASSERT_TRUE(configs);
    EXPECT_EQ(Gpus(*configs), c.gpus) << c.per_worker << " GPUs a worker";
  }
}

TEST(ConfigsOf, CountsThatAreNoWholeWorkersAreLeftOut) {
  api::TrialSpace space;
  space.gpu_counts = {2, 3, 4};
  EXPECT_EQ(Gpus(*ConfigsOf(space, JobOf(2))), (std::vector<int>{2, 4}));
  space.gpu_counts = {3};
  EXPECT_THAT(ConfigsOf(space, JobOf(2)).error().message(),
              HasSubstr("multiple of the workload's gpusPerWorker, which is 2"));
  EXPECT_THAT(ConfigsOf({}, JobOf(0)).error().message(), HasSubstr("gpusPerWorker is 0"));
}

TEST(ConfigsOf, APodWithPartOfAGpuThatTrainsForItselfHasOne) {
  Workload workload;
  workload.is_pod = true;
  workload.is_on_one_node = true;
  workload.part.AddExtended("ai.centauruscloud.io/gpu-milli", 300);
  api::TrialSpace space;
  EXPECT_THAT(Gpus(*ConfigsOf(space, workload)), ElementsAre(1));
  space.gpu_counts = {1, 2};
  EXPECT_THAT(Gpus(*ConfigsOf(space, workload)), ElementsAre(1));
  space.gpu_counts = {2, 4};
  ASSERT_FALSE(ConfigsOf(space, workload));
  EXPECT_THAT(ConfigsOf(space, workload).error().message(), HasSubstr("space.gpuCounts can only be 1"));
  workload.is_on_one_node = false;
  EXPECT_THAT(Gpus(*ConfigsOf(space, workload)), ElementsAre(2, 4)) << "a pod for each";
}

TEST(NodesByType, WherePartsAreAskedForAGpuIsAPartOfThatSize) {
  const auto node_with = [](const std::string& resource, std::int64_t amount, const std::string& inventory) {
    auto node = std::make_shared<kube::Node>();
    node->status.allocatable = {{resource, kube::Quantity(amount)}};
    if (!inventory.empty()) node->metadata.annotations = {{"sharing.ai.centauruscloud.io/inventory", inventory}};
    return std::shared_ptr<const kube::Node>(std::move(node));
  };
  const std::string milli = "ai.centauruscloud.io/gpu-milli";
  const std::vector<std::shared_ptr<const kube::Node>> nodes = {
      node_with(milli, 2000, R"([{"uuid":"GPU-1","mode":"milli"},{"uuid":"GPU-2","mode":"milli"}])"),
      node_with(milli, 1000, R"([{"uuid":"GPU-3","mode":"milli"}])"), node_with(kGpuResource, 8, ""),
      node_with("cpu", 8, "")};
  Workload workload;
  workload.part.AddExtended(milli, 400);

  const TypeNodes parts = NodesByType({}, workload, nodes).at(""), whole = NodesByType({}, JobOf(1), nodes).at("");

  EXPECT_EQ(parts.most_gpus, 6) << "two on each GPU, whatever is left of the sum";
  EXPECT_EQ(parts.gpus_per_node, 4);
  EXPECT_THAT(parts.gpus, ElementsAre(4, 2));
  EXPECT_EQ(whole.most_gpus, 8);
  EXPECT_THAT(whole.gpus, ElementsAre(8));
}

TEST(JobWorkload, KnowsThePartThatItsWorkersHave) {
  api::ElasticHorovodJobSpec spec;
  spec.workers.gpus_per_worker = 4;
  spec.workers.pod_template["spec"]["containers"] =
      *kube::ParseJson(R"([{"name":"worker","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":300}}}])");
  EXPECT_EQ(JobWorkload(spec).gpus_per_worker, 1);
  EXPECT_EQ(JobWorkload(spec).part.Extended("ai.centauruscloud.io/gpu-milli"), 300);
  EXPECT_EQ(JobWorkload(spec).part.Extended(kSaidMemory), 0);
  spec.workers.pod_template["metadata"]["annotations"]["sharing.ai.centauruscloud.io/memory-mib"] = "20480";
  EXPECT_EQ(JobWorkload(spec).part.Extended(kSaidMemory), 20'480);
  EXPECT_EQ(JobOf(4).part, Resources());
}

TEST(NodesOf, AreThoseOfTheProductUnlessTheSpaceSaysWhich) {
  api::TrialSpace space;
  space.gpu_types = {{"A100", {}}, {"big", {{"pool", "b"}}}};
  EXPECT_EQ(NodesOf(space, "A100"), (std::map<std::string, std::string>{{"nvidia.com/gpu.product", "A100"}}));
  EXPECT_EQ(NodesOf(space, "big"), (std::map<std::string, std::string>{{"pool", "b"}}));
  EXPECT_TRUE(NodesOf(space, "").empty());
}

TEST(TrialName, IsTheSameEachTimeFitsAndDiffersFromThoseTaken) {
  const std::string job(api::kMaxTrialJobName, 'x');
  std::set<std::string> names;
  for (int gpus : {1, 65536}) {
    for (int batch = 0; batch < 500; ++batch) {
      const TrialConfig config{"A100", gpus, 0, batch};
      const std::string name = TrialName(job, config, names);
      EXPECT_LE(name.size(), job.size() + 1 + api::kMaxTrialSuffix);
      EXPECT_TRUE(names.insert(name).second) << name;
    }
  }
  EXPECT_EQ(TrialName("tune", {"A100", 8, 0, 64}, {}), TrialName("tune", {"A100", 8, 0, 64}, {}));
}

TEST(SkipRules, WhatDidNotFitRulesOutWhatNeedsMoreMemory) {
  struct Case {
    const char* what;
    TrialConfig config;
    bool is_out_in_job, is_out_in_pod;  // In a pod, GPUs may hold parts of a model.
  };
  const Case cases[] = {
      {"a larger batch", {"A100", 4, 0, 128}, true, true},
      {"a larger batch on fewer GPUs", {"A100", 2, 0, 128}, true, true},
      {"a larger batch on more", {"A100", 8, 0, 128}, true, false},
      {"the same batch on more", {"A100", 8, 0, 64}, true, false},
      {"the same batch on fewer, without buffers of gradients", {"A100", 1, 0, 64}, false, false},
      {"a smaller batch", {"A100", 8, 0, 32}, false, false},
      {"another type", {"H100", 4, 0, 128}, false, false},
  };
  const std::vector<api::Trial> trials = {
      Ended({"A100", 4, 0, 64}, api::TrialPhase::kFailed, TrialReason::kOutOfMemory)};
  Workload pod;
  pod.is_pod = true;
  for (const Case& c : cases) {
    const auto is_out = [&](const Workload& workload) {
      return SkipRules({}, workload, trials).WhyNot(c.config) == TrialReason::kOutOfMemory;
    };
    EXPECT_EQ(is_out(JobOf(1)), c.is_out_in_job) << c.what;
    EXPECT_EQ(is_out(pod), c.is_out_in_pod) << c.what;
  }
}

TEST(SkipRules, ABatchOfAllGpusIsSmallerOnEachOfMore) {
  api::TrialJobSpec spec;
  spec.space.batch_size_scope = api::BatchSizeScope::kPerJob;
  const SkipRules rules(spec, JobOf(1), {Ended({"", 2, 0, 64}, api::TrialPhase::kFailed, TrialReason::kOutOfMemory)});
  EXPECT_EQ(rules.WhyNot({"", 4, 0, 64}), TrialReason::kNone);
  EXPECT_EQ(rules.WhyNot({"", 4, 0, 256}), TrialReason::kOutOfMemory);
}

TEST(SkipRules, SizesBeyondOneThatWasNoFasterAreSkipped) {
  struct Case {
    std::vector<api::Trial> trials;
    bool gains;
    TrialReason want;  // For 8 GPUs.
  };
  const auto two = Measured(2, "200", "195", "205");
  const std::vector<Case> cases = {
      {{two, Measured(4, "390", "380", "400")}, true, TrialReason::kNone},
      {{two, Measured(4, "203", "198", "208")}, true, TrialReason::kNoMoreGain},
      {{two, Measured(4, "150", "145", "155")}, true, TrialReason::kNoMoreGain},
      {{two, Measured(4, "150", "145", "155")}, false, TrialReason::kNone},
      {{two, Measured(4, "300", "10", "900")}, true, TrialReason::kNone},  // Wide is not slow.
      {{two}, true, TrialReason::kNone},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    api::TrialJobSpec spec;
    spec.early_stop = cases[i].gains;
    EXPECT_EQ(SkipRules(spec, JobOf(1), cases[i].trials).WhyNot({"", 8, 0, 0}), cases[i].want) << "case " << i;
  }
}

}  // namespace
}  // namespace grus
