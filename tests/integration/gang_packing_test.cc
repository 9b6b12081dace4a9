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

}  // namespace
}  // namespace grus::testing
