// SPDX-License-Identifier: Apache-2.0
// The manager may die at any moment of a start: the next one comes to the same end, and no part of a gang
// stays.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

constexpr int kMembers = 64;  // Enough writes that a kill at the first of them comes before the last.

class GangRestart : public Gang {
 protected:
  static void SetUpTestSuite() {
    StartWorld();
    Start();
  }
  static void Start() { StartManager({"--nominations", "always"}); }
  void CreateGang() {
    CreateGroup(kMembers);
    CreateSet(kMembers, 1);
  }
  int Nominated() const {
    return static_cast<int>(
        Where(Members(), [](const kube::Pod& pod) { return !pod.status.nominated_node_name.empty(); }).size());
  }
  int Lifted() const {
    return static_cast<int>(
        Where(Members(), [](const kube::Pod& pod) { return pod.spec.scheduling_gates.empty(); }).size());
  }
  void KillAtTheFirstNomination() {
    ASSERT_TRUE(Await("the first nomination", [&] { return Nominated() > 0; }));
    KillManager();
  }
  void KillAtTheFirstLift() {
    ASSERT_TRUE(Await("the first lift", [&] { return Lifted() > 0; }));
    KillManager();
  }
  // All run, and no pod was ended on the way.
  void ExpectAllRunAsTheyWereMade() {
    EXPECT_TRUE(Await("all run", [&] { return Runs(kMembers); }));
    EXPECT_EQ(EverMembers().size(), static_cast<std::size_t>(kMembers));
  }
};

TEST_F(GangRestart, KilledAmongTheNominationsItStartsTheGangAllTheSame) {
  AddNodes(8, 8);
  CreateGang();
  KillAtTheFirstNomination();

  Start();

  ExpectAllRunAsTheyWereMade();
}

TEST_F(GangRestart, KilledAmongTheLiftsItStartsTheRest) {
  AddNodes(8, 8);
  CreateGang();
  KillAtTheFirstLift();

  Start();

  ExpectAllRunAsTheyWereMade();
}

TEST_F(GangRestart, KilledOverAndOverItComesToTheSameEnd) {
  AddNodes(8, 8);
  CreateGang();
  KillAtTheFirstNomination();
  for (int i = 0; i < 4; ++i) {
    Start();
    world().AwaitChanges(ns(), 10, std::chrono::seconds(2));
    KillManager();
  }

  Start();

  ExpectAllRunAsTheyWereMade();
}

TEST_F(GangRestart, NominatedNodesThatAreGoneMeanwhileAreReplacedByOthers) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 8; ++i) nodes.push_back(AddNode(8));
  // Nothing is lifted while a scheduler may be about to take one of the nodes for somebody else.
  CreateOutsider("undecided", 1, R"({"schedulerName":"nobody"})");
  CreateGang();
  ASSERT_TRUE(Await("all are nominated", [&] { return Nominated() == kMembers; }));
  KillManager();
  ASSERT_EQ(Lifted(), 0);
  for (const std::string& node : nodes) Cordon(node, true);
  AddNodes(8, 8);
  DeletePod("undecided");

  Start();

  EXPECT_TRUE(Await("all run", [&] { return Runs(kMembers); }));
}

TEST_F(GangRestart, APartThatCannotBeCompletedIsRolledBackByTheNextManager) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 8; ++i) nodes.push_back(AddNode(8));
  // A part it stays also if the kill comes after the last lift.
  CreateClaimWithoutVolume();
  CreateGroup(kMembers, kGroup, R"({"scheduleTimeoutSeconds":10})");
  CreateSet(kMembers - 1, 1, "plain", kGroup);
  CreateSet(1, 1, "claim", kGroup, kWithClaim);
  KillAtTheFirstLift();
  for (const std::string& node : nodes) Cordon(node, true);

  Start();

  ASSERT_TRUE(Await("no part of it stays", [&] { return Members().size() == kMembers && Gated() == kMembers; }));
  for (const std::string& node : nodes) Cordon(node, false);
  CreateVolume();
  EXPECT_TRUE(Await("it runs once it can", [&] { return Runs(kMembers); }));
}

TEST_F(GangRestart, ARollBackThatIsCutShortIsCarriedOn) {
  AddNodes(8, 8);
  CreateGroup(33, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateSet(32, 1, "plain", kGroup);
  CreateClaimWithoutVolume();
  CreateSet(1, 1, "claim", kGroup, kWithClaim);
  ASSERT_TRUE(Await("the decision is written", [&] { return Group()->status.attempts == 1; }));
  KillManager();
  // However long this takes, the second try begins later.
  const kube::Time later{std::chrono::system_clock::now() + std::chrono::minutes(5)};
  Patch<api::PodGroup>(kGroup, R"({"status":{"nextAttemptTime":")" + kube::ToText(later) + R"("}})", "status");

  Start();

  ASSERT_TRUE(Await("no part of it stays", [&] { return EverMembers().size() == 66 && Gated() == 33; }));
  EXPECT_EQ(Group()->status.attempts, 1);
}

}  // namespace
}  // namespace grus::testing
