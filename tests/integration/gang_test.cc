// SPDX-License-Identifier: Apache-2.0
// Gangs of plain pods and of StatefulSets, on the real scheduler.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

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
  EXPECT_TRUE(Await("it names what is missing", [&] { return GroupSays("nvidia.com/gpu"); }));
  EXPECT_TRUE(Await("all are gated", [&] { return Gated() == 4; }));
  EXPECT_EQ(Bound(), 0);
  EXPECT_TRUE(Await("an event says so", [&] { return HasEvent(kGroup, "CannotFit"); }));

  AddNode(8);
  EXPECT_TRUE(Await("it runs once there is room", [&] { return Runs(4); }));
}

TEST_F(Gang, APodThatIsResizedInPlaceLeavesLessRoom) {
  AddNodeWithoutKubelet(8);  // kwok's does not say that it could.
  CreateOutsider("service", 0, R"({"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"1"}}}]})");
  ASSERT_TRUE(Await("it has a node", [&] { return IsBound(*ThePod("service")); }));
  const auto resize = [&](const std::string& cpu) {
    Patch<kube::Pod>(
        "service",
        R"({"spec":{"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":")" + cpu + R"("}}}]}})",
        "resize");
  };
  resize("60");
  CreateGroup(2);
  CreateSet(
      2, 1, kGroup, kGroup,
      R"({"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"30"},"limits":{"nvidia.com/gpu":"1"}}}]})");

  ASSERT_TRUE(Await("the gang waits", [&] { return GroupReason() == "WaitingForRoom" && GroupSays("cpu"); }));
  EXPECT_TRUE(Await("both wait at their gates", [&] { return Gated() == 2; }));
  resize("2");
  EXPECT_TRUE(Await("it starts when there is room", [&] { return Bound() == 2; }));
}

}  // namespace
}  // namespace grus::testing
