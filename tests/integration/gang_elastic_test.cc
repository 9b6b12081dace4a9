// SPDX-License-Identifier: Apache-2.0
// ElasticHorovodJobs as gangs: their minimum is found before their pods exist.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

class ElasticGang : public Gang {
 protected:
  // Whether the worker's template carries the gang's gate; nullopt: there is no StatefulSet.
  std::optional<bool> TemplateIsGated() const {
    const auto set = Set();
    if (!set) return std::nullopt;
    const kube::Json* gates = set->spec_json.At({"template", "spec", "schedulingGates"});
    if (gates == nullptr || gates->AsArray() == nullptr) return false;
    for (const kube::Json& gate : *gates->AsArray()) {
      if (*gate.Find("name")->AsString() == api::kGangGate) return true;
    }
    return false;
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
  EXPECT_EQ(TemplateIsGated(), false) << "with nobody else about";
}

TEST_F(ElasticGang, SuspendDeletesItsGroupAndResumeMakesItAgain) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));

  Edit(R"({"spec":{"runPolicy":{"suspend":true}}})");
  ASSERT_TRUE(Await("the group and the pods are gone", [&] { return !Group(kName) && HoldsNothing(); }));
  Edit(R"({"spec":{"runPolicy":{"suspend":false}}})");

  EXPECT_TRUE(AwaitTrains(2));
  EXPECT_TRUE(Await("the group is there", [&] { return Group(kName) != nullptr; }));
}

TEST_F(ElasticGang, ADeletedGroupIsMadeAgainAndTheJobTrainsOn) {
  AddNode(2);
  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  ASSERT_TRUE(Await("it has a group", [&] { return Group(kName) != nullptr; }));
  const PodList before = Workers();
  const auto uid = Group(kName)->metadata.uid;

  Delete<api::PodGroup>(kName);

  EXPECT_TRUE(Await("it is there again", [&] { return Group(kName) && Group(kName)->metadata.uid != uid; }));
  EXPECT_TRUE(AwaitTrains(2));
  EXPECT_TRUE(AllSurvive(before, Workers()));
}

// Once there was an outsider a manager reckons with others for minutes: these have one of their own.
class ElasticGangWithOutsider : public ElasticGang {
 protected:
  // The manager knows of it from its start.
  void CreateKnownOutsider() {
    CreateBoundOutsider();
    KillManager();
    StartManager();
  }
};

TEST_F(ElasticGangWithOutsider, ItsPodsAreBornWithTheGateAndItTrains) {
  AddNode(5);
  CreateKnownOutsider();

  Create(R"({"workersSpec":{"minReplicas":2,"maxReplicas":4}})");

  EXPECT_TRUE(AwaitTrains(4));
  EXPECT_EQ(TemplateIsGated(), true);
}

TEST_F(ElasticGangWithOutsider, ItShrinksAndGrowsAsEver) {
  AddNode(3);
  CreateKnownOutsider();
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":4}})");
  ASSERT_TRUE(AwaitTrains(2));
  ASSERT_EQ(TemplateIsGated(), true);

  AddNode(2);
  ASSERT_TRUE(AwaitTrains(4));
  Scale(1);
  EXPECT_TRUE(AwaitTrains(1));
}

TEST_F(ElasticGangWithOutsider, ALostWorkerIsReplaced) {
  AddNode(4);
  CreateKnownOutsider();
  Create(R"({"workersSpec":{"minReplicas":3,"maxReplicas":3}})");
  ASSERT_TRUE(AwaitTrains(3));
  ASSERT_EQ(TemplateIsGated(), true);

  DeletePod(Workers().front()->metadata.name);

  EXPECT_TRUE(AwaitTrains(3));
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
  EXPECT_EQ(TemplateIsGated(), false);
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
