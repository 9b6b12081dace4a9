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
  void KillAtTheFirstNomination() {
    ASSERT_TRUE(Await("the first nomination", [&] { return Nominated() > 0; }));
    KillManager();
  }
  // All run, and no pod was ended on the way.
  void ExpectAllRunAsTheyWereMade() {
    EXPECT_TRUE(Await("all run", [&] { return Runs(kMembers); }));
    EXPECT_EQ(EverMembers().size(), static_cast<std::size_t>(kMembers));
  }
};

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

}  // namespace
}  // namespace grus::testing
