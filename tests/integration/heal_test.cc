// SPDX-License-Identifier: Apache-2.0
// What breaks is repaired, and what belongs to others is left alone.
#include <gmock/gmock.h>

#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr char kTwoToFour[] = R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})";

// All of `pods` but the one of that name.
PodList Without(PodList pods, const std::string& name) {
  std::erase_if(pods, [&](const PodPtr& pod) { return pod->metadata.name == name; });
  return pods;
}

TEST_F(ElasticJob, ReplacesAWorkerThatCrashedOrWasEvictedAndTrainsOn) {
  AddNode(4);
  Create(kTwoToFour);
  ASSERT_TRUE(AwaitTrains(4));
  const PodList all = Workers();
  const std::string launcher = LauncherPod()->metadata.uid, pod = "train-workers-1";
  const auto is_replaced = [&](const std::string& uid) {
    const auto now = Uids(Workers());
    return now.contains(pod) && now.at(pod) != uid && Trains(4);
  };

  std::string old_uid = Uids(all).at(pod);
  SetOutcome(pod, "fail");
  ASSERT_TRUE(Await("the crashed worker is replaced", [&] { return is_replaced(old_uid); }));
  EXPECT_TRUE(AllSurvive(Without(all, pod), Workers()));

  old_uid = Uids(Workers()).at(pod);
  Patch<kube::Pod>(pod, R"({"status":{"phase":"Failed","reason":"Evicted","message":"the node was low on memory"}})",
                   "status");
  ASSERT_TRUE(Await("the evicted worker is replaced", [&] { return is_replaced(old_uid); }));
  EXPECT_TRUE(AllSurvive(Without(all, pod), Workers()));
  EXPECT_EQ(LauncherPod()->metadata.uid, launcher);
}

TEST_F(ElasticJob, RepairsAnEditedStatefulSetWithoutTouchingTheWorkersThatStay) {
  AddNode(4);
  Create(kTwoToFour);
  ASSERT_TRUE(AwaitTrains(4));
  const PodList all = Workers();
  const std::string uid = Set()->metadata.uid;
  const auto image = [&] {
    const kube::Json* containers = Set()->spec_json.At({"template", "spec", "containers"});
    return *containers->AsArray()->at(0).Find("image")->AsString();
  };

  // JSON merge patch: the whole list of containers.
  Patch<kube::StatefulSet>(
      "train-workers",
      R"({"spec":{"template":{"spec":{"containers":[{"name":"worker","image":"registry.test/other:2"}]}}}})");
  ASSERT_TRUE(Await("the image is ours again", [&] { return image() == "registry.test/train:1"; }));

  Patch<kube::StatefulSet>("train-workers", R"({"metadata":{"labels":{"ai.centauruscloud.io/job-name":"other"}}})");
  ASSERT_TRUE(Await("the label is ours again", [&] { return Set()->metadata.Label(kJobNameLabel) == "train"; }));

  Patch<kube::StatefulSet>("train-workers", R"({"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}})");
  ASSERT_TRUE(Await("the label is back", [&] { return Set()->metadata.Label(kManagedByLabel) == kManagedBy; }));
  EXPECT_TRUE(AllSurvive(all, Workers()));

  // Whether the fourth pod was quicker to go does not matter.
  const std::int64_t generation = Set()->metadata.generation;
  Patch<kube::StatefulSet>("train-workers", R"({"spec":{"replicas":3}})");
  ASSERT_TRUE(Await("there are four again", [&] {
    return Set()->metadata.generation >= generation + 2 && SetState()->replicas == 4 && Trains(4);
  }));
  EXPECT_TRUE(AllSurvive(PodList(all.begin(), all.begin() + 3), Workers()));
  EXPECT_EQ(Set()->metadata.uid, uid);
}

TEST_F(ElasticJob, RepairsAnEditedLauncherJob) {
  AddNode(2);
  Create(R"({"workersSpec":{"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  const std::string uid = Launcher()->metadata.uid;

  Patch<kube::Job>("train-launcher", R"({"metadata":{"labels":{"ai.centauruscloud.io/role":"other"}}})");
  ASSERT_TRUE(Await("the label is ours again", [&] { return Launcher()->metadata.Label(kRoleLabel) == "launcher"; }));

  const std::string pod = LauncherPod()->metadata.uid;
  Patch<kube::Job>("train-launcher", R"({"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}})");
  ASSERT_TRUE(Await("the label is back", [&] { return Launcher()->metadata.Label(kManagedByLabel) == kManagedBy; }));
  ASSERT_TRUE(AwaitTrains(2));
  EXPECT_EQ(LauncherPod()->metadata.uid, pod);

  const std::int64_t generation = Launcher()->metadata.generation;
  Patch<kube::Job>("train-launcher", R"({"spec":{"suspend":true}})");
  ASSERT_TRUE(Await("it runs again", [&] {
    return Launcher()->metadata.generation >= generation + 2 && !Launcher()->spec.suspend && Trains(2);
  }));
  EXPECT_EQ(Launcher()->metadata.uid, uid);
}

TEST_F(ElasticJob, GoesOnAfterTheNodeOfItsLauncherIsLost) {
  const std::string node = AddNode(0);
  AddNode(2);
  Create(R"({"launcherSpec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":")" + node +
         R"(","grus.test/pool":null}}}},
             "workersSpec":{"maxReplicas":2},"runPolicy":{"backoffLimit":0}})");
  ASSERT_TRUE(AwaitTrains(2));
  const PodList all = Workers();
  const std::string pod = LauncherPod()->metadata.uid;

  DeleteNode(node);
  ASSERT_TRUE(Await("its pod is gone", [&] {
    const PodPtr now = LauncherPod();
    return now == nullptr || now->metadata.uid != pod;
  }));
  AddNode(0, node);

  ASSERT_TRUE(Await("another launcher runs", [&] {
    const PodPtr now = LauncherPod();
    return now && now->metadata.uid != pod && Trains(2);
  }));
  EXPECT_TRUE(AllSurvive(all, Workers()));
  EXPECT_FALSE(IsTrue("Failed"));
}

TEST_F(ElasticJob, KeepsStillInANamespaceThatIsBeingDeleted) {
  AddNode(1);
  Create("{}");
  ASSERT_TRUE(AwaitTrains(1));
  // Pods go first; this one keeps the rest of the namespace in place.
  world().Create(KindOf<kube::Pod>(), ns(), FromText(R"({"apiVersion":"v1","kind":"Pod",
      "metadata":{"name":"anchor","finalizers":["grus.test/anchor"]},
      "spec":{"nodeSelector":{"grus.test/pool":"none"},"containers":[{"name":"c","image":"c"}]}})"));
  Must(client().Delete(KindOf<kube::Namespace>(), {"", ns()}));
  ASSERT_TRUE(Await("the workers are gone", [&] { return Workers().empty(); }));

  Delete<kube::Service>("train-workers");

  EXPECT_TRUE(Stays(
      "it is not stalled", [&] { return TheJob() && !IsTrue("Stalled"); }, seconds(1)));
  EXPECT_EQ(manager().output().find("job cannot be carried out job=" + ns()), std::string::npos);
  Patch<kube::Pod>("anchor", R"({"metadata":{"finalizers":null}})");
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
  EXPECT_EQ(world().Get<kube::Secret>(ns(), name)->data.size(), 7U) << "the key pair and five scripts";
}

TEST_F(ElasticJob, LeavesChildrenOfOthersAloneAndGoesOnWhenTheyAreGone) {
  struct Case {
    std::string job;
    const kube::Kind& kind;
    std::string name;
    std::string_view object;
  };
  const Case cases[] = {
      {"svc", KindOf<kube::Service>(), "svc-workers", R"({"spec":{"ports":[{"port":80}]}})"},
      {"map", KindOf<kube::ConfigMap>(), "map-hosts", R"({"data":{"hosts":"theirs"}})"},
      {"set", KindOf<kube::StatefulSet>(), "set-workers",
       R"({"spec":{"replicas":0,"serviceName":"theirs","selector":{"matchLabels":{"app":"theirs"}},"template":{
           "metadata":{"labels":{"app":"theirs"}},"spec":{"containers":[{"name":"c","image":"theirs"}]}}}})"},
      {"job", KindOf<kube::Job>(), "job-launcher",
       R"({"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never",
           "containers":[{"name":"c","image":"theirs"}]}}}})"},
  };
  AddNode(4);
  std::map<std::string, std::string> versions;
  const auto version = [&](const Case& c) {
    return Must(client().Get(c.kind, {ns(), c.name}))->metadata.resource_version;
  };
  for (const Case& c : cases) {
    kube::Json object = FromText(c.object);
    object["apiVersion"] = c.kind.ApiVersion();
    object["kind"] = c.kind.kind;
    object["metadata"]["name"] = c.name;
    world().Create(c.kind, ns(), object);
  }
  ASSERT_TRUE(Await("the controllers of the cluster have looked at theirs",
                    [&] { return Launcher("job")->status.conditions.size() == 1 && SetState("set")->is_observed; }));
  for (const Case& c : cases) versions[c.job] = version(c);

  for (const Case& c : cases) Create(R"({"workersSpec":{"minReplicas":1}})", c.job);

  for (const Case& c : cases) {
    ASSERT_TRUE(Await(c.job + " is stalled", [&] { return IsTrue("Stalled", c.job); }));
    EXPECT_EQ(ReasonOf("Stalled", c.job), "NameTaken");
    EXPECT_THAT(MessageOf("Stalled", c.job),
                HasSubstr(std::string(c.kind.kind) + " \"" + c.name + "\" exists and belongs to"));
    EXPECT_FALSE(IsTrue("Ready", c.job));
  }
  EXPECT_TRUE(Stays(
      "they wait",
      [&] {
        return std::all_of(std::begin(cases), std::end(cases), [&](const Case& c) { return IsTrue("Stalled", c.job); });
      },
      seconds(1)));
  for (const Case& c : cases) {
    EXPECT_EQ(version(c), versions[c.job]) << c.name << " was touched";
    world().Delete(c.kind, {ns(), c.name});
  }

  for (const Case& c : cases) {
    EXPECT_TRUE(AwaitTrains(1, c.job));
    EXPECT_FALSE(IsTrue("Stalled", c.job));
  }
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
      {"type", R"({"workersSpec":{"template":{"spec":{"terminationGracePeriodSeconds":"soon"}}}})",
       "terminationGracePeriodSeconds",
       R"({"spec":{"workersSpec":{"template":{"spec":{"terminationGracePeriodSeconds":5}}}}})"},
      {"quantity",
       R"({"workersSpec":{"template":{"spec":{"containers":[
           {"name":"worker","resources":{"limits":{"cpu":"4 cores"}}}]}}}})",
       "spec.workersSpec.template.spec.containers[0].resources.limits[cpu]: \"4 cores\" is no quantity",
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
