// SPDX-License-Identifier: Apache-2.0
// What the planner packs stays packed, although the scheduler would spread it.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

class GangPacking : public Gang {};

TEST_F(GangPacking, SmallGangsLeaveWholeNodesToALargeOne) {
  AddNodes(4, 8);
  for (int i = 0; i < 8; ++i) {
    const std::string name = "small-" + std::to_string(i);
    CreateGroup(1, name);
    CreateSet(1, 1, name);
  }
  for (int i = 0; i < 8; ++i) {
    const std::string name = "small-" + std::to_string(i);
    ASSERT_TRUE(Await(name + " runs", [&] { return Runs(1, name); }));
  }

  CreateGroup(3, "large");
  CreateSet(3, 8, "large");

  EXPECT_TRUE(Await("the large one runs", [&] { return Runs(3, "large"); }));
}

// Room for seven pods of one GPU is free, on a node that is kept for a gang of two whole ones.
TEST_F(GangPacking, WhatIsReservedIsNotTakenByGangsThatStart) {
  AddNodes(3, 8);
  CreateGroup(1, "first");
  CreateSet(1, 1, "first");
  CreateGroup(1, "second");
  CreateSet(1, 8, "second");
  ASSERT_TRUE(Await("both run", [&] { return Runs(1, "first") && Runs(1, "second"); }));
  CreateGroup(2, "large");
  CreateSet(2, 8, "large");
  // A reservation begins after 15 s, and what a gang is told of it waits for up to 30 s for company.
  ASSERT_TRUE(Await(
      "room is kept for the large one",
      [&] { return GroupSays("what becomes free is kept from other gangs", "large"); }, std::chrono::seconds(120)));

  for (int i = 0; i < 7; ++i) {
    const std::string name = "small-" + std::to_string(i);
    CreateGroup(1, name);
    CreateSet(1, 1, name);
  }

  EXPECT_TRUE(Stays(
      "a node stays whole",
      [&] {
        int whole = 0;
        for (const std::string& node : {ns() + "-0", ns() + "-1", ns() + "-2"}) {
          bool is_used = false;
          for (const auto& pod : world().List<kube::Pod>(ns())) is_used |= pod->spec.node_name == node;
          whole += !is_used;
        }
        return whole == 1;
      },
      std::chrono::seconds(5)));
  Delete<kube::StatefulSet>("second");

  EXPECT_TRUE(Await("the large one runs", [&] { return Runs(2, "large"); }));
}

}  // namespace
}  // namespace grus::testing
