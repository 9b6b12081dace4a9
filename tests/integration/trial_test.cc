// SPDX-License-Identifier: Apache-2.0
// TrialJobs on a real API server: short runs on several sizes, measured by their logs, and nothing left behind.
#include <map>

#include "controllers/trial/trial_view.h"
#include "tests/integration/trial_fixture.h"

namespace grus::testing {
namespace {

using api::TrialJobPhase;
using api::TrialPhase;
using std::chrono::seconds;
using ::testing::ElementsAre;

constexpr seconds kLong{180};  // Several trials, one after another.

class Trial : public TrialJobs {};

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
  EXPECT_FALSE(Tune()->status.eta || Tune()->status.eta_latest);
  const auto says_its_end = [](const Step& step) {
    if (step.kind != &kube::KindOf<api::TrialJob>() || !step.after) return false;
    const auto& status = static_cast<const api::TrialJob&>(*step.after).status;
    return status.eta && status.eta_latest && *status.eta <= *status.eta_latest && *status.eta > *status.start_time;
  };
  EXPECT_TRUE(std::ranges::any_of(world().History(ns()), says_its_end)) << "while trials ran";
  EXPECT_EQ(Tune()->status.throughput_unit, api::ThroughputUnit::kSamplesPerSecond);
  EXPECT_NEAR(std::stod(Tune()->status.trials[1].measured->throughput), 200, 10);
  std::int64_t spent = 0;
  for (const api::Trial& trial : Tune()->status.trials) spent += trial.gpu_seconds;
  EXPECT_GT(spent, 0);
  EXPECT_EQ(Tune()->status.spent.gpu_seconds, spent);
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

TEST_F(Trial, ASpreadOneHasAnEvenShareOfItsWorkersOnEachNode) {
  for (int i = 0; i < 3; ++i) AddNode(8);
  Train(100, 8);
  CreateTrialJob(R"({"space":{"gpuCounts":[8],"nodeCounts":[1,2]}})");

  const auto workers_by_node = [&] {
    std::map<std::string, int> counts;
    for (const auto& pod : world().List<kube::Pod>(ns())) {
      if (pod->metadata.Label("ai.centauruscloud.io/role") == "worker") ++counts[pod->spec.node_name.str()];
    }
    std::vector<int> shares;
    for (const auto& [node, count] : counts) shares.push_back(node.empty() ? -1 : count);
    return shares;
  };
  EXPECT_TRUE(Await(
      "all are on one node", [&] { return workers_by_node() == std::vector{8}; }, kLong));
  EXPECT_TRUE(Await(
      "then half of them on each of two",
      [&] {
        return workers_by_node() == std::vector{4, 4};
      },
      kLong));
  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong));
  std::vector<std::pair<int, int>> nodes;
  for (const api::Trial& trial : Tune()->status.trials) nodes.emplace_back(trial.config.min_nodes, trial.config.nodes);
  EXPECT_THAT(nodes, ElementsAre(std::pair(0, 1), std::pair(2, 2)));
}

TEST_F(Trial, WithTheTrialJobGoesAllThatItMade) {
  AddNode(8);
  CreateTrialJob(R"({"space":{"gpuCounts":[2]}})");
  ASSERT_TRUE(Await("pods are there", [&] { return !world().List<kube::Pod>(ns()).empty(); }));

  Delete<api::TrialJob>(kTrialJob);

  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

}  // namespace
}  // namespace grus::testing
