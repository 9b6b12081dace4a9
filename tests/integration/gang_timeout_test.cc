// SPDX-License-Identifier: Apache-2.0
// Starts that do not come together. What stands in the way is a claim that finds no volume once its pod is there: the
// ledger knows nothing of it, and the scheduler leaves the pod pending.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwoSeconds[] = R"({"scheduleTimeoutSeconds":2})";

class GangTimeout : public Gang {
 protected:
  // Two members that could run, and one that cannot until CreateVolume().
  void CreateGangWithObstacle(std::string_view more = kTwoSeconds) {
    CreateClaimWithoutVolume();
    CreateGroup(3, kGroup, more);
    CreateSet(2, 2, "plain", kGroup);
    CreateSet(1, 2, "claim", kGroup, kWithClaim);
  }
  // Names of the pods that ever had a node.
  std::set<std::string> EverBound() const {
    std::set<std::string> names;
    for (const Step& step : world().History(ns())) {
      if (step.kind != &kube::KindOf<kube::Pod>() || !step.after) continue;
      if (IsBound(static_cast<const kube::Pod&>(*step.after))) names.insert(step.after->metadata.name);
    }
    return names;
  }
};

TEST_F(GangTimeout, AStartThatDoesNotComeTogetherIsRolledBackWholeAndRunsOnceItCan) {
  AddNode(8);
  CreateGangWithObstacle();

  ASSERT_TRUE(Await("it gives its nodes back", [&] { return GroupReason() == "BackingOff"; }));
  api::PodGroupStatus status;
  // On a slow machine another try may have come before anybody looks.
  ASSERT_TRUE(Await("all members are made again, gated", [&] {
    status = Group()->status;
    const std::size_t made = 3 * (static_cast<std::size_t>(status.attempts) + 1);
    return GroupReason() == "BackingOff" && EverMembers().size() == made && Gated() == 3;
  }));

  EXPECT_THAT(EverBound(), ElementsAre("plain-0", "plain-1"));
  EXPECT_EQ(status.phase, "Pending");
  EXPECT_GE(status.attempts, 1);
  ASSERT_TRUE(status.next_attempt_time);
  EXPECT_FALSE(status.schedule_start_time);
  EXPECT_THAT(GroupMessage(), AllOf(HasSubstr("2 of the 3 members"), HasSubstr("after 2 s"),
                                    HasSubstr("persistent volumes"), HasSubstr("try ")));
  ASSERT_TRUE(Await("it is told in an event", [&] { return HasEvent(kGroup, "BackingOff"); }));
  EXPECT_THAT(Events(kGroup, "BackingOff"), Each(HasSubstr("2 of the 3 members")));

  CreateVolume();

  ASSERT_TRUE(Await("it runs once it can", [&] { return Runs(3); }));
  EXPECT_EQ(Group()->status.attempts, 0);
  EXPECT_FALSE(Group()->status.next_attempt_time);
}

}  // namespace
}  // namespace grus::testing
