// SPDX-License-Identifier: Apache-2.0
// ElasticHorovodJobs as gangs: their minimum is found before their pods exist.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

class ElasticGang : public Gang {
 protected:
  // How many of the workers were born with the gang's gate.
  std::size_t BornGated() const {
    std::map<std::string, bool> born;  // By UID, as each was first seen.
    for (const Step& step : world().History(ns())) {
      if (step.kind != &kube::KindOf<kube::Pod>() || !step.after) continue;
      const auto& pod = static_cast<const kube::Pod&>(*step.after);
      born.try_emplace(pod.metadata.uid, kube::HasGate(pod, api::kGangGate));
    }
    const PodList now = Workers();
    return static_cast<std::size_t>(
        std::count_if(now.begin(), now.end(), [&](const PodPtr& pod) { return born[pod->metadata.uid]; }));
  }
  void CreateBoundOutsider() {
    CreateOutsider("outsider", 1);
    ASSERT_TRUE(Await("it is bound", [&] { return IsBound(*ThePod("outsider")); }));
  }
};

TEST_F(ElasticGang, AJobHasAPodGroupOfItsNameWithItsMinimum) {
  AddNode(4);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})");
  ASSERT_TRUE(AwaitTrains(4));

  ASSERT_TRUE(Await("there is one", [&] { return Group(kName) != nullptr; }));
  EXPECT_EQ(Group(kName)->spec.min_member, 2);
  ASSERT_TRUE(Group(kName)->metadata.Controller());
  EXPECT_EQ(Group(kName)->metadata.Controller()->uid, TheJob()->metadata.uid);
  EXPECT_TRUE(Await("its group says that it runs", [&] { return Runs(4, kName); }));
  EXPECT_EQ(BornGated(), 0U) << "with nobody else about";
}

TEST_F(ElasticGang, SuspendStopsEverythingAndResumeStartsAgain) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  const std::string launcher = Launcher()->metadata.uid;

  Edit(R"({"spec":{"runPolicy":{"suspend":true}}})");
  ASSERT_TRUE(Await("the group and the pods are gone",
                    [&] { return Phase() == "Suspended" && !Group(kName) && HoldsNothing(); }));
  EXPECT_TRUE(IsTrue("Suspended"));
  EXPECT_EQ(TheJob()->status.replicas.granted, 0);

  Edit(R"({"spec":{"runPolicy":{"suspend":false}}})");
  EXPECT_TRUE(AwaitTrains(2));
  EXPECT_FALSE(IsTrue("Suspended"));
  EXPECT_NE(Launcher()->metadata.uid, launcher);
  EXPECT_TRUE(Await("the group is there", [&] { return Group(kName) != nullptr; }));
}

// Once there was an outsider a manager reckons with others for minutes: these have one of their own.
class ElasticGangWithOutsider : public ElasticGang {};

TEST_F(ElasticGangWithOutsider, ItsPodsAreBornWithTheGateAndItGrowsReplacesAndShrinksAsEver) {
  AddNode(3);
  CreateBoundOutsider();
  KillManager();
  StartManager();  // It knows of the outsider from its start.
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":4}})");
  ASSERT_TRUE(AwaitTrains(2));
  ASSERT_EQ(BornGated(), 2U);

  AddNode(2);
  ASSERT_TRUE(AwaitTrains(4));
  const auto uid = Workers().front()->metadata.uid;
  DeletePod("train-workers-0");
  ASSERT_TRUE(Await("it is replaced", [&] { return Trains(4) && Workers().front()->metadata.uid != uid; }));
  EXPECT_EQ(BornGated(), 4U);
  Scale(1);
  EXPECT_TRUE(AwaitTrains(1));
}

class ElasticWithoutGangs : public ElasticGang {
 protected:
  static void SetUpTestSuite() {
    StartWorld();
    StartManager({"--controllers", "elastic"});
  }
};

TEST_F(ElasticWithoutGangs, AJobHasNoGroupAndItsPodsNoGate) {
  AddNode(5);
  CreateBoundOutsider();

  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})");

  ASSERT_TRUE(AwaitTrains(4));
  EXPECT_EQ(BornGated(), 0U);
  EXPECT_TRUE(world().List<api::PodGroup>(ns()).empty());
  EXPECT_TRUE(EverMembers(kName).empty());
}

TEST_F(ElasticWithoutGangs, NobodyLiftsGates) {
  AddNode(2);
  CreateGroup(1);
  CreateMember("a", 1);
  Create(R"({"workersSpec":{"maxReplicas":1}})");

  ASSERT_TRUE(AwaitTrains(1));

  EXPECT_EQ(Gated(), 1);
}

}  // namespace
}  // namespace grus::testing
