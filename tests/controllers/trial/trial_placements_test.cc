// SPDX-License-Identifier: Apache-2.0
// Trials on more nodes than they need.
#include <gmock/gmock.h>

#include <algorithm>

#include "controllers/policy/profile_drift.h"
#include "controllers/trial/trial_children.h"
#include "tests/controllers/trial/trial_world.h"

namespace grus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Workload JobOf(int per_worker) {
  api::ElasticHorovodJobSpec spec;
  spec.workers.gpus_per_worker = per_worker;
  return JobWorkload(spec);
}

TypeNodes Nodes(std::vector<int> gpus) {
  TypeNodes nodes;
  for (const int one : gpus) nodes.gpus_per_node = std::max(nodes.gpus_per_node, one);
  for (const int one : gpus) nodes.most_gpus += one;
  nodes.gpus = std::move(gpus);
  return nodes;
}

// "8/2" is 8 GPUs spread over 2 nodes.
std::vector<std::string> Placed(const api::TrialJobSpec& spec, const TypeNodes& nodes,
                                const Workload& workload = JobOf(1), const std::vector<api::Trial>& trials = {}) {
  std::vector<std::string> texts;
  const auto configs = ConfigsOf(spec.space, workload);
  const auto placed = PlacedConfigs(spec, workload, {{"", nodes}}, *configs, trials);
  if (!placed) return {placed.error().message()};
  for (const api::TrialConfig& config : *placed) {
    texts.push_back(std::to_string(config.gpus));
    if (config.min_nodes > 0) texts.back() += "/" + std::to_string(config.min_nodes);
  }
  return texts;
}

api::TrialJobSpec SpecOf(std::vector<std::int32_t> counts, std::optional<std::int32_t> up_to = 64) {
  api::TrialJobSpec spec = TestTrialJob(std::move(counts)).spec;
  spec.extrapolate.max_gpus = up_to;
  return spec;
}

TEST(PlacedConfigs, OneIsOnTwoNodesIfTheCurveAsksBeyondOne) {
  const TypeNodes two = Nodes({8, 8});
  EXPECT_THAT(Placed(SpecOf({1, 2, 4, 8}), two), ElementsAre("1", "2", "4", "8", "8/2"));
  EXPECT_THAT(Placed(SpecOf({1, 2, 3}), two), ElementsAre("1", "2", "3", "2/2")) << "3 cannot be divided";
  EXPECT_THAT(Placed(SpecOf({1, 4, 16}), two), ElementsAre("1", "4", "16")) << "16 need two nodes anyway";
  EXPECT_THAT(Placed(SpecOf({1, 8}, 8), two), ElementsAre("1", "8")) << "nobody asks beyond a node";
  EXPECT_THAT(Placed(SpecOf({1, 8}, std::nullopt), two), ElementsAre("1", "8"));
  EXPECT_THAT(Placed(SpecOf({1, 8}), Nodes({8})), ElementsAre("1", "8")) << "there is no second node";
  EXPECT_THAT(Placed(SpecOf({4, 8}), two, JobOf(4)), ElementsAre("4", "8", "8/2")) << "workers of 4 GPUs";
  EXPECT_THAT(Placed(SpecOf({8}), two, JobOf(8)), ElementsAre("8")) << "a worker is not divided";
}

TEST(PlacedConfigs, AMeasuredOneStaysWhenNodesGo) {
  api::Trial measured;
  measured.phase = api::TrialPhase::kSucceeded;
  measured.config = {"", 8, 2, 0, 2};
  EXPECT_THAT(Placed(SpecOf({1, 8}), Nodes({8}), JobOf(1), {measured}), ElementsAre("1", "8", "8/2"));
  measured.phase = api::TrialPhase::kSkipped;
  EXPECT_THAT(Placed(SpecOf({1, 8}), Nodes({8}), JobOf(1), {measured}), ElementsAre("1", "8"));
}

TEST(PlacedConfigs, TheUserSaysHowManyNodes) {
  const TypeNodes four = Nodes({8, 8, 8, 8});
  api::TrialJobSpec spec = SpecOf({1, 4, 8, 16});
  spec.space.placements = {api::Placement::kPacked};
  EXPECT_THAT(Placed(spec, four), ElementsAre("1", "4", "8", "16"));
  spec.space.placements = {api::Placement::kPacked, api::Placement::kSpread};
  EXPECT_THAT(Placed(spec, four), ElementsAre("1", "4", "4/2", "8", "8/2", "16", "16/4"));
  spec.space.placements = {};
  spec.space.node_counts = {2, 1, 4};
  EXPECT_THAT(Placed(spec, four), ElementsAre("1", "4", "4/2", "4/4", "8", "8/2", "8/4", "16", "16/4"));
  spec = SpecOf({24});
  spec.space.node_counts = {3, 4};
  EXPECT_THAT(Placed(spec, four, JobOf(3)), ElementsAre("24")) << "two workers of 3 on a node: 4 nodes at least";
  spec = SpecOf({1, 3});
  spec.space.node_counts = {2};
  EXPECT_THAT(Placed(spec, four), ElementsAre(HasSubstr("can be divided evenly")));
}

// As fast as GPUs on one node, and half as fast on two.
double HalfOnTwo(const api::TrialConfig& config) { return 100.0 * config.gpus / (config.min_nodes > 1 ? 2 : 1); }

api::TrialJob AskingBeyondANode() {
  api::TrialJob job = TestTrialJob({1, 2, 4, 8});
  job.spec.extrapolate.max_gpus = 64;
  return job;
}

TEST(SpreadTrials, AreMeasuredForTheModelAndLeaveTheCurveToPackedOnes) {
  TrialWorld world(AskingBeyondANode());
  world.view().nodes[""] = Nodes({8, 8});
  world.RunAll(HalfOnTwo);
  ASSERT_TRUE(world.status().completion_time);
  const auto spread = std::ranges::find_if(world.status().trials, [](const auto& t) { return t.config.min_nodes > 0; });
  ASSERT_NE(spread, world.status().trials.end());
  EXPECT_EQ(ToText(WithoutNodes(spread->config)), "8 GPUs spread over 2 nodes");
  EXPECT_EQ(spread->measured->throughput, "400");
  const auto on_eight = std::ranges::find(world.status().curve, 8, &api::CurvePoint::gpus);
  ASSERT_NE(on_eight, world.status().curve.end());
  EXPECT_EQ(on_eight->throughput, "800");
}

TEST(SpreadTrials, TheResultWaitsForOneThatNobodyAskedForForTenMinutesOnly) {
  for (const bool is_asked : {false, true}) {
    api::TrialJob job = AskingBeyondANode();
    if (is_asked) job.spec.space.node_counts = {1, 2};
    TrialWorld world(job);
    world.view().nodes[""] = Nodes({8, 8});
    const auto spread = [&] {
      return std::ranges::find_if(world.status().trials,
                                  [](const auto& t) { return t.config.gpus == 8 && t.config.min_nodes > 0; });
    };
    for (int i = 0; i < 200 && !world.status().completion_time; ++i) {
      world.Pass();
      world.now += 10;
      for (const std::string& name : world.Active()) {
        const auto trial = std::ranges::find(world.status().trials, name, &api::Trial::name);
        world.run(name).speed = Seen(HalfOnTwo(trial->config), 20);
        if (trial != spread()) continue;
        world.run(name) = {};
        world.run(name).child = TrialChild{"u", true, false, false, "Waiting", "0/2 nodes", "", {}, 300, 0};
      }
    }
    EXPECT_EQ(world.status().completion_time.has_value(), !is_asked);
    if (is_asked) continue;
    EXPECT_EQ(spread()->reason, api::TrialReason::kDoesNotFit);
    EXPECT_THAT(spread()->message, HasSubstr("no room for it in 10 minutes: 0/2 nodes"));
    EXPECT_EQ(world.status().phase, api::TrialJobPhase::kSucceeded);
  }
}

TEST(SpreadTrials, AreNoSignThatMoreGpusDoNotHelp) {
  api::TrialJob job = TestTrialJob({2, 4, 8});
  job.spec.space.node_counts = {1, 2};
  TrialWorld world(job);
  world.view().nodes[""] = Nodes({8, 8});
  world.RunAll([](const api::TrialConfig& config) { return config.min_nodes > 0 ? 10.0 : 100.0 * config.gpus; });
  EXPECT_EQ(world.TrialOf(8)->phase, api::TrialPhase::kSucceeded);
}

TEST(SpreadTrials, AreNotStartedWhereNodesAreTooFew) {
  api::TrialJob job = TestTrialJob({8});
  job.spec.space.node_counts = {1, 2};
  TrialWorld world(job);
  world.view().nodes[""] = Nodes({8, 2});
  world.RunAll(HalfOnTwo);
  const auto spread = std::ranges::find_if(world.status().trials, [](const auto& t) { return t.config.min_nodes > 0; });
  ASSERT_NE(spread, world.status().trials.end());
  EXPECT_EQ(spread->reason, api::TrialReason::kDoesNotFit);
}

// A template whose trials may be on several nodes.
Workload PodsOfTemplate() {
  Workload workload;
  workload.is_pod = true;
  return workload;
}

TEST(PodsOf, OneOnEachOfTheFewestNodesThatHaveRoomForEqualOnes) {
  const std::map<std::string, TypeNodes> nodes = {{"", Nodes({8, 8, 8, 2})}};
  const auto pods = [&](int gpus, int min_nodes = 0) {
    return PodsOf({"", gpus, 0, 0, min_nodes}, PodsOfTemplate(), nodes);
  };
  EXPECT_EQ(pods(1), 1);
  EXPECT_EQ(pods(8), 1);
  EXPECT_EQ(pods(8, 2), 2) << "the space says so";
  EXPECT_EQ(pods(12), 2);
  EXPECT_EQ(pods(9), 3) << "two cannot be equal";
  EXPECT_EQ(pods(24), 3);
  const std::map<std::string, TypeNodes> mixed = {{"", Nodes({8, 8, 4, 4, 4, 4})}};
  EXPECT_EQ(PodsOf({"", 20, 0, 0}, PodsOfTemplate(), mixed), 5) << "four of five fit nowhere";
  EXPECT_TRUE(Fits({"", 20, 0, 0}, PodsOfTemplate(), mixed));
  EXPECT_EQ(PodsOf({"", 16, 0, 0}, JobOf(1), nodes), 0);
  Workload alone = PodsOfTemplate();
  alone.is_on_one_node = true;
  EXPECT_EQ(PodsOf({"", 8, 0, 0}, alone, nodes), 0);
}

TEST(PodsOf, EachNeedsANodeOfItsOwn) {
  const std::map<std::string, TypeNodes> nodes = {{"", Nodes({8, 8, 8, 2})}};
  EXPECT_TRUE(Fits({"", 24, 0, 0}, PodsOfTemplate(), nodes));
  EXPECT_TRUE(Fits({"", 25, 0, 0}, JobOf(1), nodes)) << "a worker may be on the small one";
  EXPECT_FALSE(Fits({"", 25, 0, 0}, PodsOfTemplate(), nodes));
  EXPECT_TRUE(Fits({"", 8, 0, 0, 4}, PodsOfTemplate(), nodes));
  EXPECT_FALSE(Fits({"", 16, 0, 0, 4}, PodsOfTemplate(), nodes)) << "4 do not fit on the small one";
}

TEST(PodsOf, APodForEachPartOfAGpuAndTheyMayShareANode) {
  Workload parts = PodsOfTemplate();
  parts.part.AddExtended("ai.centauruscloud.io/gpu-milli", 300);
  const std::map<std::string, TypeNodes> nodes = {{"", Nodes({3, 3})}};
  EXPECT_EQ(PodsOf({"", 1, 0, 0}, parts, nodes), 1);
  EXPECT_EQ(PodsOf({"", 6, 0, 0}, parts, nodes), 6);
  EXPECT_EQ(PodsOf({"", 4, 0, 0, 2}, parts, nodes), 4) << "two on each of two nodes";
  EXPECT_TRUE(Fits({"", 6, 0, 0}, parts, nodes));
  EXPECT_FALSE(Fits({"", 7, 0, 0}, parts, nodes));
  EXPECT_TRUE(Fits({"", 6, 0, 0, 2}, parts, nodes));
  EXPECT_FALSE(Fits({"", 3, 0, 0, 3}, parts, nodes)) << "there are two nodes";
}

TEST(SpreadTrials, KeepTheirWorkersApart) {
  api::ElasticHorovodJobSpec workload;
  workload.workers.gpus_per_worker = 2;
  const kube::Json made = MakeJobTrial(TestTrialJob(), workload, {"tune-x", {"", 16, 0, 0, 2}, 300, 0});
  const kube::Json* spread = made.At({"spec", "workersSpec", "template", "spec", "topologySpreadConstraints"});
  ASSERT_NE(spread, nullptr);
  const kube::Json& rule = spread->AsArray()->front();
  EXPECT_EQ(*rule.Find("maxSkew"), kube::Json(4));
  EXPECT_EQ(*rule.Find("minDomains"), kube::Json(3));
  EXPECT_EQ(*rule.Find("whenUnsatisfiable"), kube::Json("DoNotSchedule"));
  workload.workers.pod_template = *kube::ParseJson(R"({"spec":{"topologySpreadConstraints":[
      {"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"DoNotSchedule"},
      {"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]}})");
  const kube::Json with_own = MakeJobTrial(TestTrialJob(), workload, {"tune-x", {"", 16, 0, 0, 2}, 300, 0});
  const kube::Json* rules = with_own.At({"spec", "workersSpec", "template", "spec", "topologySpreadConstraints"});
  ASSERT_EQ(rules->AsArray()->size(), 2U) << "a pod may have one rule of nodes";
  EXPECT_EQ(*rules->AsArray()->front().Find("topologyKey"), kube::Json("zone"));
  workload.workers.pod_template = {};
  const kube::Json packed = MakeJobTrial(TestTrialJob(), workload, {"tune-x", {"", 16, 0, 0}, 300, 0});
  EXPECT_EQ(packed.At({"spec", "workersSpec", "template", "spec", "topologySpreadConstraints"}), nullptr);
}

}  // namespace
}  // namespace grus::testing
