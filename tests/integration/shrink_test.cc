// SPDX-License-Identifier: Apache-2.0
// How a job that runs shrinks and grows: no running worker is ever killed for a waiting one.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The pods of a node that this test made.
PodList On(const std::string& node, const PodList& pods) {
  PodList found;
  for (const PodPtr& pod : pods) {
    if (pod->spec.node_name == node) found.push_back(pod);
  }
  return found;
}

PodList NotOn(const std::string& node, const PodList& pods) {
  PodList found;
  for (const PodPtr& pod : pods) {
    if (pod->spec.node_name != node) found.push_back(pod);
  }
  return found;
}

// Names of the pods for which the scheduler ever found no node.
std::set<std::string> EverUnschedulable(const std::vector<Step>& history) {
  std::set<std::string> names;
  for (const Step& step : history) {
    if (step.kind != &kube::KindOf<kube::Pod>() || !step.after) continue;
    if (IsUnschedulable(static_cast<const kube::Pod&>(*step.after))) names.insert(step.after->metadata.name);
  }
  return names;
}

TEST_F(ElasticJob, ShrinksToWhatFitsGrowsAndGoesOnAfterALostNode) {
  AddNodes(4, 8);
  Create(R"({"workersSpec":{"minReplicas":16,"maxReplicas":40,"targetReplicas":34},
             "elastic":{"unschedulableGraceSeconds":2}})");

  // 34 are wanted, 32 fit, and no more are made.
  ASSERT_TRUE(Await("as many as fit are bound", [&] { return Where(Workers(), IsBound).size() == 32; }));
  const PodList bound = Where(Workers(), IsBound);
  ASSERT_TRUE(AwaitTrains(32));
  EXPECT_THAT(EverUnschedulable(world().History(ns())), IsEmpty());
  EXPECT_TRUE(AllSurvive(bound, Workers()));
  EXPECT_EQ(Workers().size(), 32U);
  EXPECT_EQ(TheJob()->status.last_scale->from, 0);
  EXPECT_EQ(TheJob()->status.last_scale->to, 32);
  EXPECT_EQ(TheJob()->status.last_scale->reason, "Started");
  const std::string launcher = LauncherPod()->metadata.uid;

  AddNode(8);
  ASSERT_TRUE(AwaitTrains(34));
  EXPECT_TRUE(AllSurvive(bound, Workers()));

  // 8 workers go with their node; for 6 of them there is room on the fifth.
  const std::string lost(bound.front()->spec.node_name.view());
  const PodList survivors = NotOn(lost, Workers());
  ASSERT_EQ(survivors.size(), 26U);
  DeleteNode(lost);
  ASSERT_TRUE(AwaitTrains(32));
  EXPECT_TRUE(AllSurvive(survivors, Workers()));
  EXPECT_EQ(LauncherPod()->metadata.uid, launcher);

  SetOutcome(LauncherPod()->metadata.name, "succeed");
  ASSERT_TRUE(Await("it succeeds and the workers go", [&] { return Phase() == "Succeeded" && Workers().empty(); }));
  EXPECT_TRUE(IsTrue("Complete"));
  EXPECT_TRUE(IsTrue("Ready"));
  EXPECT_TRUE(TheJob()->status.completion_time.has_value());
}

TEST_F(ElasticJob, GoesOnWithoutALostNodeAndReplacesItsWorkersOnceThereIsRoom) {
  AddNodes(2, 4);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":8}})");
  ASSERT_TRUE(AwaitTrains(8));
  const PodList all = Workers();
  // The highest ordinal survives: the lost ones lie below it.
  const std::string kept(all.back()->spec.node_name.view());
  const std::string lost(NotOn(kept, all).front()->spec.node_name.view());
  const PodList survivors = On(kept, all);

  DeleteNode(lost);

  ASSERT_TRUE(AwaitTrains(4));
  EXPECT_TRUE(AllSurvive(survivors, Workers()));
  EXPECT_EQ(Workers().size(), 4U) << "one that finds no node is left waiting";
  EXPECT_TRUE(Await("none counts as unschedulable", [&] { return TheJob()->status.replicas.unschedulable == 0; }));

  AddNode(4);

  ASSERT_TRUE(AwaitTrains(8));
  EXPECT_TRUE(AllSurvive(survivors, Workers()));
}

TEST_F(ElasticJob, AUsersShrinkTakesTheHighestOrdinalsAndTheLauncherTrainsOn) {
  AddNode(6);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":6}})");
  ASSERT_TRUE(AwaitTrains(6));
  const PodList all = Workers(), lowest(all.begin(), all.begin() + 4);
  const std::string launcher = LauncherPod()->metadata.uid;

  Scale(4);
  ASSERT_TRUE(AwaitTrains(4));
  ASSERT_TRUE(Await("two pods are gone", [&] { return Workers().size() == 4; }));
  EXPECT_TRUE(AllSurvive(lowest, Workers()));
  EXPECT_THAT(std::string(LauncherPod()->metadata.Annotation(kHostsAnnotation)), HasSubstr(" train-workers-3\n"));
  EXPECT_EQ(LauncherPod()->metadata.Annotation(kHostsAnnotation).find(" train-workers-4\n"), std::string_view::npos);

  Scale(6);
  ASSERT_TRUE(AwaitTrains(6));
  EXPECT_TRUE(AllSurvive(lowest, Workers()));
  EXPECT_EQ(LauncherPod()->metadata.uid, launcher);
}

}  // namespace
}  // namespace grus::testing
