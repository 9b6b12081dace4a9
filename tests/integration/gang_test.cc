// SPDX-License-Identifier: Apache-2.0
// Gangs of plain pods and of StatefulSets, on the real scheduler.
#include <gmock/gmock.h>

#include "crds/types/pod_group.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

class Gang : public ElasticJob {
 protected:
  void CreateGroup(int min_member, const std::string& name = "gang", std::string_view more = "{}") {
    kube::Json group = FromText(R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup"})");
    group["metadata"]["name"] = name;
    group["spec"] = FromText(more);
    group["spec"]["minMember"] = min_member;
    world().Create(kube::KindOf<api::PodGroup>(), ns(), group);
  }
  kube::Json PodSpec(int gpus) const {
    kube::Json spec = FromText(R"({"schedulingGates":[{"name":"scheduling.x-k8s.io/gang"}],
      "terminationGracePeriodSeconds":0,
      "containers":[{"name":"c","image":"registry.test/x","resources":{"limits":{}}}]})");
    spec["nodeSelector"]["grus.test/pool"] = pool();
    (*spec["containers"].AsArray())[0]["resources"]["limits"]["nvidia.com/gpu"] = std::to_string(gpus);
    return spec;
  }
  void CreateSet(int replicas, int gpus, const std::string& name = "gang") {
    kube::Json set = FromText(R"({"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"podManagementPolicy":"Parallel",
      "template":{"metadata":{"labels":{}}}}})");
    set["metadata"]["name"] = name;
    set["spec"]["replicas"] = replicas;
    set["spec"]["serviceName"] = name;
    set["spec"]["selector"]["matchLabels"]["app"] = name;
    kube::Json& labels = set["spec"]["template"]["metadata"]["labels"];
    labels["app"] = name;
    labels[api::kPodGroupLabel] = name;
    set["spec"]["template"]["spec"] = PodSpec(gpus);
    world().Create(kube::KindOf<kube::StatefulSet>(), ns(), set);
  }
  void CreateOutsider(const std::string& name, int gpus) {
    kube::Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{}})");
    pod["metadata"]["name"] = name;
    pod["spec"] = PodSpec(gpus);
    pod["spec"].Erase("schedulingGates");
    world().Create(kube::KindOf<kube::Pod>(), ns(), pod);
  }
  std::shared_ptr<const api::PodGroup> Group(const std::string& name = "gang") const {
    return world().Get<api::PodGroup>(ns(), name);
  }
  std::string GroupPhase(const std::string& name = "gang") const {
    const auto group = Group(name);
    return group ? group->status.phase : "";
  }
  std::string GroupReason(const std::string& name = "gang") const { return OfReady(name, &kube::Condition::reason); }
  std::string GroupMessage(const std::string& name = "gang") const { return OfReady(name, &kube::Condition::message); }
  PodList Members(const std::string& name = "gang") const {
    PodList members;
    for (const PodPtr& pod : world().List<kube::Pod>(ns())) {
      if (pod->metadata.Label(api::kPodGroupLabel) == name && !pod->metadata.is_being_deleted()) members.push_back(pod);
    }
    return members;
  }
  bool Runs(int members, const std::string& name = "gang") const {
    return GroupPhase(name) == "Running" && static_cast<int>(Where(Members(name), IsBound).size()) == members;
  }

 private:
  std::string OfReady(const std::string& name, std::string kube::Condition::*member) const {
    const auto group = Group(name);
    const auto* ready = group ? kube::FindCondition(group->status.conditions, "Ready") : nullptr;
    return ready ? ready->*member : "";
  }
};

TEST_F(Gang, StartsWhenAllOfTheMinimumCan) {
  AddNodes(2, 8);
  CreateGroup(4);
  CreateSet(4, 4);

  ASSERT_TRUE(Await("the gang runs", [&] { return Runs(4); }));
  EXPECT_EQ(GroupReason(), "Running");
  EXPECT_EQ(Group()->status.scheduled, 4);
  EXPECT_EQ(Group()->status.occupied_by, ns() + "/gang");
}

TEST_F(Gang, WaitsWholeWhileItDoesNotFitAndSaysWhatIsMissing) {
  AddNode(8);
  CreateGroup(4);
  CreateSet(4, 4);

  ASSERT_TRUE(Await("it waits", [&] { return GroupReason() == "CannotFit"; }));
  EXPECT_THAT(GroupMessage(), HasSubstr("nvidia.com/gpu"));
  EXPECT_TRUE(Where(Members(), IsBound).empty());
  EXPECT_EQ(Where(Members(), IsGated).size(), 4U);

  AddNode(8);
  EXPECT_TRUE(Await("it runs once there is room", [&] { return Runs(4); }));
}

TEST_F(Gang, TwoThatFitOneAtATimeRunOneAfterTheOther) {
  AddNodes(2, 8);
  CreateGroup(4, "first");
  CreateGroup(4, "second");
  CreateSet(4, 4, "first");
  CreateSet(4, 4, "second");
  const auto one_runs = [&] { return Runs(4, "first") != Runs(4, "second"); };
  ASSERT_TRUE(Await("one of them runs", one_runs));
  const std::string winner = Runs(4, "first") ? "first" : "second", loser = winner == "first" ? "second" : "first";
  ASSERT_TRUE(Await("the other one waits", [&] { return GroupReason(loser) == "WaitingForRoom"; }));
  EXPECT_TRUE(Where(Members(loser), IsBound).empty());
  EXPECT_THAT(GroupMessage(loser), HasSubstr(ns() + "/" + winner));

  Delete<kube::StatefulSet>(winner);
  EXPECT_TRUE(Await("then the other one runs", [&] { return Runs(4, loser); }));
}

TEST_F(Gang, AnOutsiderThatComesInBetweenKeepsTheGangWholeOrOut) {
  AddNodes(2, 8);
  CreateOutsider("early", 1);  // Competition is known of.
  ASSERT_TRUE(Await("it is bound", [&] { return IsBound(*world().Get<kube::Pod>(ns(), "early")); }));
  CreateGroup(3);
  CreateSet(3, 5);  // Fits never: 2 x 8 GPUs hold two members of 5.
  ASSERT_TRUE(Await("it cannot fit", [&] { return GroupReason() == "CannotFit"; }));
  EXPECT_TRUE(Where(Members(), IsBound).empty());
}

TEST_F(Gang, AReplacementInARunningGangStartsAtOnce) {
  AddNodes(2, 8);
  CreateGroup(4);
  CreateSet(4, 4);
  ASSERT_TRUE(Await("the gang runs", [&] { return Runs(4); }));
  const std::string lost = std::string(Members().at(1)->metadata.uid);

  Delete<kube::Pod>("gang-1");

  EXPECT_TRUE(Await("all four are bound again", [&] {
    const PodList bound = Where(Members(), IsBound);
    return bound.size() == 4 && std::none_of(bound.begin(), bound.end(), [&](const PodPtr& pod) { return pod->metadata.uid == lost; });
  }));
}

TEST_F(Gang, ExtrasStartAsRoomAppears) {
  AddNode(8);
  CreateGroup(2);
  CreateSet(4, 4);
  ASSERT_TRUE(Await("the minimum runs", [&] { return Runs(2); }));
  EXPECT_EQ(Where(Members(), IsGated).size(), 2U);
  AddNode(4);
  ASSERT_TRUE(Await("one more", [&] { return Where(Members(), IsBound).size() == 3; }));
  AddNode(4);
  EXPECT_TRUE(Await("and the last", [&] { return Where(Members(), IsBound).size() == 4; }));
}

}  // namespace
}  // namespace grus::testing
