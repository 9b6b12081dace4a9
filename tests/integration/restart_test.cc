// SPDX-License-Identifier: Apache-2.0
// The manager may die at any moment, and does nothing when there is nothing to do.
#include <random>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using std::chrono::seconds;

// UIDs ever seen of a kind, by name.
std::map<std::string, std::set<std::string>> EverSeen(const std::vector<Step>& history, const kube::Kind& kind) {
  std::map<std::string, std::set<std::string>> seen;
  for (const Step& step : history) {
    if (step.kind == &kind && step.after) seen[step.after->metadata.name].insert(step.after->metadata.uid);
  }
  return seen;
}

TEST_F(ElasticJob, ComesToTheSameEndWhereverTheManagerIsKilled) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand random(seed);
  // A moment is a number of changes after the last one: no two of our writes go without one.
  const auto kill_at_random_moments = [&](int times) {
    for (int i = 0; i < times; ++i) {
      world().AwaitChanges(ns(), std::uniform_int_distribution<std::size_t>(1, 15)(random), seconds(2));
      KillManager();
      StartManager();
    }
  };
  AddNodes(2, 4);

  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":8}})");
  kill_at_random_moments(5);
  ASSERT_TRUE(AwaitTrains(8));
  std::size_t made = 0;
  for (const auto& [name, uids] : EverSeen(world().History(ns()), KindOf<kube::Pod>())) {
    if (name.starts_with("train-workers-")) made += uids.size();
  }
  EXPECT_EQ(made, 8U) << "a worker was made more than once";
  const PodList all = Workers();
  const auto lost = all.front()->spec.node_name;
  PodList survivors = all;
  std::erase_if(survivors, [&](const PodPtr& pod) { return pod->spec.node_name == lost; });

  DeleteNode(std::string(lost.view()));
  kill_at_random_moments(4);
  ASSERT_TRUE(AwaitTrains(4));
  EXPECT_TRUE(AllSurvive(survivors, Workers()));

  AddNode(4);
  kill_at_random_moments(3);
  ASSERT_TRUE(AwaitTrains(8));
  EXPECT_TRUE(AllSurvive(survivors, Workers()));

  Scale(3);
  kill_at_random_moments(3);
  ASSERT_TRUE(AwaitTrains(3));

  SetOutcome(LauncherPod()->metadata.name, "succeed");
  kill_at_random_moments(2);
  ASSERT_TRUE(Await("it succeeds and the workers go", [&] { return Phase() == "Succeeded" && Workers().empty(); }));

  const std::vector<Step> history = world().History(ns());
  const std::pair<const kube::Kind*, std::string> children[] = {
      {&KindOf<kube::Service>(), "train-workers"},
      {&KindOf<kube::ConfigMap>(), "train-hosts"},
      {&KindOf<kube::Job>(), "train-launcher"},
      {&KindOf<kube::Secret>(), "train-files-" + TheJob()->metadata.uid}};
  for (const auto& [kind, name] : children) {
    auto seen = EverSeen(history, *kind);
    EXPECT_EQ(seen[name].size(), 1U) << kind->kind << " was made more than once";
    seen.erase("kube-root-ca.crt");  // A ConfigMap of every namespace.
    EXPECT_EQ(seen.size(), 1U) << "more than one " << kind->kind;
  }
  std::size_t launchers = 0;
  for (const auto& [name, uids] : EverSeen(history, KindOf<kube::Pod>()))
    launchers += name.starts_with("train-launcher-");
  EXPECT_EQ(launchers, 1U);
}

TEST_F(ElasticJob, AtRestNothingIsWritten) {
  AddNodes(2, 3);
  Create(R"({"workersSpec":{"maxReplicas":2}})", "full");
  ASSERT_TRUE(AwaitTrains(2, "full"));
  Create(R"({"workersSpec":{"maxReplicas":8}})", "hungry");
  ASSERT_TRUE(AwaitTrains(4, "hungry"));
  Create(R"({"workersSpec":{"minReplicas":9,"maxReplicas":9}})", "waiting");
  Create(R"({"runPolicy":{"suspend":true}})", "suspended");
  Create(R"({"workersSpec":{"gpusPerWorker":0},"launcherSpec":{"template":{"spec":{"containers":[
             {"name":"launcher","resources":{"requests":{"cpu":"-1"}}}]}}}})",
         "refused");
  Create(R"({"workersSpec":{"gpusPerWorker":0}})", "ended");
  ASSERT_TRUE(AwaitTrains(1, "ended"));
  SetOutcome(LauncherPod("ended")->metadata.name, "succeed");
  ASSERT_TRUE(Await("all are settled", [&] {
    return Phase("waiting") == "Waiting" && Phase("suspended") == "Suspended" && Phase("ended") == "Succeeded" &&
           IsTrue("Stalled", "refused");
  }));

  EXPECT_TRUE(WritesNothing(seconds(10)));
  EXPECT_FALSE(CountWrites().empty());
}

}  // namespace
}  // namespace grus::testing
