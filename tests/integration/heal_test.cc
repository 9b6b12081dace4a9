// SPDX-License-Identifier: Apache-2.0
// What breaks is repaired, and what belongs to others is left alone.
#include <gmock/gmock.h>

#include "controllers/elastic/elastic_children.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwoToFour[] = R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})";

TEST_F(ElasticJob, GivesAWorkerItsLabelsBackAndTrainsOn) {
  AddNode(4);
  Create(kTwoToFour);
  ASSERT_TRUE(AwaitTrains(4));
  const PodList all = Workers();
  const auto label = [&] { return world().Get<kube::Pod>(ns(), "train-workers-1")->metadata.Label(kJobNameLabel); };

  Patch<kube::Pod>("train-workers-1", R"({"metadata":{"labels":{"ai.centauruscloud.io/job-name":"other"}}})");
  ASSERT_TRUE(Await("the label is ours again", [&] { return label() == "train"; }));
  EXPECT_TRUE(AwaitTrains(4));
  Patch<kube::Pod>("train-workers-1", R"({"metadata":{"labels":null}})");
  ASSERT_TRUE(Await("the label is back", [&] { return label() == "train"; }));

  EXPECT_TRUE(AwaitTrains(4));
  EXPECT_TRUE(AllSurvive(all, Workers()));
}

TEST_F(ElasticJob, ReplacesADeletedWorkerWithoutTouchingTheOthers) {
  AddNode(5);
  Create(kTwoToFour);
  ASSERT_TRUE(AwaitTrains(4));
  const PodList all = Workers();

  Delete<kube::Pod>("train-workers-1");

  ASSERT_TRUE(Await("there are four again", [&] {
    const PodList now = Workers();
    const auto is_first = [&](const PodPtr& pod) { return pod->metadata.uid == all[1]->metadata.uid; };
    return std::none_of(now.begin(), now.end(), is_first) && Trains(4);
  }));
  EXPECT_TRUE(AllSurvive({all[0], all[2], all[3]}, Workers()));
}

TEST_F(ElasticJob, LeavesOutTheNameOfAPodOfOthers) {
  AddNode(2);
  world().Create(KindOf<kube::Pod>(), ns(), FromText(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"train-workers-0"},"spec":{"containers":[{"name":"c","image":"theirs"}]}})"));
  const std::string uid = world().Get<kube::Pod>(ns(), "train-workers-0")->metadata.uid;

  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");

  ASSERT_TRUE(AwaitTrains(2));
  EXPECT_THAT(Hosts(), ElementsAre("train-workers-1", "train-workers-2"));
  EXPECT_EQ(world().Get<kube::Pod>(ns(), "train-workers-0")->metadata.uid, uid);
}

TEST_F(ElasticJob, ResumesALauncherThatSomebodySuspended) {
  AddNode(2);
  Create(R"({"workersSpec":{"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  const std::string uid = Launcher()->metadata.uid;
  const std::int64_t generation = Launcher()->metadata.generation;

  Patch<kube::Job>("train-launcher", R"({"spec":{"suspend":true}})");

  ASSERT_TRUE(Await("it runs again", [&] {
    return Launcher()->metadata.generation >= generation + 2 && !Launcher()->spec.suspend && Trains(2);
  }));
  EXPECT_EQ(Launcher()->metadata.uid, uid);
}

TEST_F(ElasticJob, MakesADeletedSecretAgainWhenAWorkerDoesNotStart) {
  AddNode(2);
  Create(R"({"workersSpec":{"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  const std::string name = "train-files-" + TheJob()->metadata.uid;
  const std::string uid = world().Get<kube::Secret>(ns(), name)->metadata.uid;

  Delete<kube::Secret>(name);
  // As if this worker had been on its node for long without coming up.
  const std::string past = kube::ToText(kube::Time{std::chrono::system_clock::now() - seconds(60)});
  world().Patch(KindOf<kube::Pod>(), {ns(), "train-workers-0"}, kube::PatchType::kStrategicMerge,
                FromText(R"({"status":{"conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":")" +
                         past + "\"}]}}"),
                "status");
  Patch<kube::Pod>("train-workers-0", R"({"metadata":{"annotations":{"grus.test/ready":"false"}}})");

  ASSERT_TRUE(Await("there is a new one", [&] {
    const auto secret = world().Get<kube::Secret>(ns(), name);
    return secret && secret->metadata.uid != uid;
  }));
  EXPECT_EQ(world().Get<kube::Secret>(ns(), name)->data.size(), 9U) << "two key pairs and five scripts";
}

TEST_F(ElasticJob, LeavesAChildOfOthersAloneAndGoesOnWhenItIsGone) {
  AddNode(1);
  const auto service = [&] { return world().Get<kube::Service>(ns(), "train-workers"); };
  world().Create(KindOf<kube::Service>(), ns(), FromText(R"({"apiVersion":"v1","kind":"Service",
      "metadata":{"name":"train-workers"},"spec":{"clusterIP":"None","selector":{"app":"theirs"}}})"));
  const auto version = service()->metadata.resource_version;

  Create("{}");
  ASSERT_TRUE(Await("it is stalled", [&] { return IsTrue("Stalled"); }));
  EXPECT_EQ(ReasonOf("Stalled"), "NameTaken");
  EXPECT_THAT(MessageOf("Stalled"), HasSubstr("Service \"train-workers\" exists and has no controller"));
  EXPECT_FALSE(IsTrue("Ready"));
  EXPECT_TRUE(Stays(
      "it waits", [&] { return IsTrue("Stalled"); }, seconds(1)));
  EXPECT_EQ(service()->metadata.resource_version, version) << "it was touched";

  Delete<kube::Service>("train-workers");
  EXPECT_TRUE(AwaitTrains(1));
  EXPECT_FALSE(IsTrue("Stalled"));
}

TEST_F(ElasticJob, SaysWhatTheApiServerRefusedAndGoesOnWithTheNextEdit) {
  struct Case {
    std::string job, spec, message, edit;
  };
  const Case cases[] = {
      {"workers",
       R"({"workersSpec":{"template":{"spec":{"containers":[
           {"name":"worker","volumeMounts":[{"name":"nowhere","mountPath":"/x"}]}]}}}})",
       "volumeMounts[0].name: Not found: \"nowhere\"",
       R"({"spec":{"workersSpec":{"template":{"spec":{"containers":null}}}}})"},
      {"launcher",
       R"({"launcherSpec":{"template":{"spec":{"containers":[
           {"name":"launcher","resources":{"requests":{"cpu":"-1"}}}]}}}})",
       "must be greater than or equal to 0", R"({"spec":{"launcherSpec":{"template":{"spec":{"containers":null}}}}})"},
      {"quantity",
       R"({"workersSpec":{"template":{"spec":{"containers":[
           {"name":"worker","resources":{"limits":{"cpu":"4 cores"}}}]}}}})",
       "spec.workersSpec.template.spec.containers[0].resources.limits[cpu]: \"4 cores\" is not a quantity",
       R"({"spec":{"workersSpec":{"template":{"spec":{"containers":null}}}}})"},
  };
  AddNode(4);

  for (const Case& c : cases) Create(c.spec, c.job);

  for (const Case& c : cases) {
    ASSERT_TRUE(Await(c.job + " is stalled", [&] { return IsTrue("Stalled", c.job); }));
    EXPECT_EQ(ReasonOf("Stalled", c.job), "TemplateRefused");
    EXPECT_THAT(MessageOf("Stalled", c.job), HasSubstr(c.message));
  }
  for (const Case& c : cases) Edit(c.edit, c.job);
  for (const Case& c : cases) {
    EXPECT_TRUE(AwaitTrains(1, c.job));
    EXPECT_FALSE(IsTrue("Stalled", c.job));
  }
}

}  // namespace
}  // namespace grus::testing
