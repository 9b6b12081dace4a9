// SPDX-License-Identifier: Apache-2.0
// Trials that are pods, on a real API server: measured by their logs, and nothing left behind.
#include "controllers/trial/trial_peers.h"
#include "tests/integration/trial_fixture.h"

namespace grus::testing {
namespace {

using api::TrialJobPhase;
using api::TrialPhase;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr seconds kLong{180};

class TrialPod : public TrialJobs {
 protected:
  // One container trains, on this test's nodes; `space` is that of the spec.
  void CreatePodTrialJob(const std::string& space) {
    CreateTrialJob(
        R"({"workload":{"podTemplate":{"spec":{"nodeSelector":{"grus.test/pool":")" + pool() +
        R"("},"containers":[{"name":"train","image":"registry.test/train:1","command":["torchrun","train.py"]}
                   ]}}},"space":)" +
        space + "}");
  }
  PodPtr TheTrial() const {
    for (const PodPtr& pod : world().List<kube::Pod>(ns())) {
      if (!pod->metadata.Label(kTrialJobLabel).empty()) return pod;
    }
    return nullptr;
  }
};

TEST_F(TrialPod, TwoSizesAreMeasuredAndNothingIsLeft) {
  AddNode(8);
  Train(100, 8);

  CreatePodTrialJob(R"({"gpuCounts":[1,2]})");

  ASSERT_TRUE(Await(
      "it succeeds", [&] { return HasPhase(TrialJobPhase::kSucceeded); }, kLong))
      << ReadyMessage();
  EXPECT_THAT(Trials(TrialPhase::kSucceeded), ElementsAre("1 GPUs PrecisionReached", "2 GPUs PrecisionReached"));
  EXPECT_NEAR(std::stod(Tune()->status.trials[1].measured->throughput), 200, 10);
  EXPECT_GT(Tune()->status.spent.gpu_seconds, 0);
  EXPECT_TRUE(world().List<api::ElasticHorovodJob>(ns()).empty());
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

// 16 GPUs need two nodes of 8, and 8 of them are also tried on two.
TEST_F(TrialPod, ATorchrunOnTwoNodesIsAGangOfAPodOnEach) {
  for (int i = 0; i < 3; ++i) AddNode(8);
  Train(100, 16);

  CreatePodTrialJob(R"({"gpuCounts":[8,16],"placements":["Packed","Spread"]})");

  std::set<std::pair<int, int>> seen;  // Pods that run at once, and nodes that they are on.
  const auto look = [&] {
    std::map<std::string, std::set<std::string>> nodes;
    std::map<std::string, int> running;
    for (const PodPtr& pod : world().List<kube::Pod>(ns())) {
      const std::string trial(pod->metadata.Label(kTrialLabel));
      if (pod->status.phase != "Running" || trial.empty()) continue;
      ++running[trial];
      nodes[trial].insert(pod->spec.node_name.str());
    }
    for (const auto& [trial, count] : running) seen.emplace(count, static_cast<int>(nodes[trial].size()));
    return HasPhase(TrialJobPhase::kSucceeded);
  };
  ASSERT_TRUE(Await("it succeeds", look, kLong)) << ReadyMessage();
  std::vector<std::string> trials;
  for (const api::Trial& trial : Tune()->status.trials) {
    trials.push_back(std::to_string(trial.config.gpus) + " on " + std::to_string(trial.config.nodes) +
                     (trial.config.min_nodes > 0 ? " spread" : "") + (trial.measured ? " measured" : ""));
  }
  EXPECT_THAT(trials,
              UnorderedElementsAre("8 on 1 measured", "8 on 2 spread measured", "16 on 2 measured", "16 on 0 spread"))
      << "16 on four nodes do not fit";
  EXPECT_TRUE(seen.contains({2, 2}));
  EXPECT_TRUE(Await("nothing is left", [&] { return NothingIsLeft(); }));
}

}  // namespace
}  // namespace grus::testing
