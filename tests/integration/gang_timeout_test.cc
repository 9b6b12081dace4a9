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

TEST_F(GangTimeout, AStartThatDoesNotComeTogetherIsRolledBackWhole) {
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
}

TEST_F(GangTimeout, ARollBackSaysWhyInStatusAndEvent) {
  AddNode(8);
  CreateGangWithObstacle();

  ASSERT_TRUE(Await("it gives its nodes back", [&] { return GroupReason() == "BackingOff"; }));
  EXPECT_THAT(GroupMessage(), AllOf(HasSubstr("2 of the 3 members"), HasSubstr("after 2 s"),
                                    HasSubstr("persistent volumes"), HasSubstr("try 2")));
  ASSERT_TRUE(Await("in an event", [&] { return HasEvent(kGroup, "BackingOff"); }));
  EXPECT_THAT(Events(kGroup, "BackingOff"), Each(HasSubstr("2 of the 3 members")));
}

TEST_F(GangTimeout, WhileItBacksOffOthersUseItsNodes) {
  AddNode(6);
  CreateGangWithObstacle();
  ASSERT_TRUE(Await("a part of it is bound", [&] { return Bound() == 2; }));
  CreateGroup(3, "other");
  CreateSet(3, 2, "other");
  ASSERT_EQ(Bound("other"), 0);

  EXPECT_TRUE(Await("the other one runs", [&] { return Runs(3, "other"); }));
  EXPECT_EQ(Bound(), 0);
}

TEST_F(GangTimeout, RunsOnceTheObstacleIsGone) {
  AddNode(8);
  CreateGangWithObstacle();
  ASSERT_TRUE(Await("it gives its nodes back", [&] { return GroupReason() == "BackingOff"; }));

  CreateVolume();

  ASSERT_TRUE(Await("it runs", [&] { return Runs(3); }));
  EXPECT_EQ(Group()->status.attempts, 0);
  EXPECT_FALSE(Group()->status.next_attempt_time);
}

TEST_F(GangTimeout, EachFailedTryCounts) {
  AddNode(8);
  CreateGangWithObstacle(R"({"scheduleTimeoutSeconds":1})");

  ASSERT_TRUE(Await("it was tried", [&] { return Group()->status.attempts == 1; }));
  ASSERT_TRUE(Await("it waits anew", [&] { return Members().size() == 3 && Gated() == 3; }));
  const std::size_t after_one = EverMembers().size();

  ASSERT_TRUE(Await("it was tried twice", [&] { return Group()->status.attempts == 2; }));
  EXPECT_TRUE(Await("what was let go is made again, and no member is bound",
                    [&] { return Members().size() == 3 && Gated() == 3 && EverMembers().size() > after_one; }));
}

TEST_F(GangTimeout, BarePodsAreNotDeleted) {
  AddNode(8);
  CreateGroup(2, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateMember("a", 1);
  CreateClaimWithoutVolume();
  CreateMember("b", 1, kGroup, kWithClaim);
  ASSERT_TRUE(Await("a part of it is bound", [&] { return Bound() == 1; }));
  const PodList first_try = Members();

  EXPECT_TRUE(Stays(
      "they are there", [&] { return AllSurvive(first_try, Members()) && Bound() == 1; }, kQuiet));

  EXPECT_TRUE(Await("it says for what it waits",
                    [&] { return GroupReason() == "Starting" && GroupSays("of b the scheduler says"); }));
  CreateVolume();
  EXPECT_TRUE(Await("it runs once it can", [&] { return Runs(2); }));
}

TEST_F(GangTimeout, AnExtraThatFindsNoNodeWaitsGatedAgainAndTheRestRuns) {
  AddNode(8);
  CreateGroup(2, kGroup, kTwoSeconds);
  CreateSet(2, 2, "plain", kGroup);
  ASSERT_TRUE(Await("the minimum runs", [&] { return Runs(2); }));
  const PodList running = Members();

  CreateClaimWithoutVolume();
  CreateSet(1, 2, "claim", kGroup, kWithClaim);

  ASSERT_TRUE(Await("it was tried and made again", [&] { return EverMembers().size() >= 4 && Gated() == 1; }));
  EXPECT_TRUE(AllSurvive(running, Members()));
  EXPECT_EQ(GroupPhase(), "Running");
}

// The same while nodes are held by nominations.
class GangTimeoutWithNominations : public GangTimeout {
 protected:
  static void SetUpTestSuite() {
    StartWorld();
    StartManager({"--nominations", "always"});
  }
};

TEST_F(GangTimeoutWithNominations, RunsOnceTheObstacleIsGoneAlsoOnTheOnlyNode) {
  AddNode(8);
  CreateGangWithObstacle();
  ASSERT_TRUE(Await("it gives its nodes back", [&] { return GroupReason() == "BackingOff"; }));

  CreateVolume();

  EXPECT_TRUE(Await("it runs", [&] { return Runs(3); }));
}

TEST_F(GangTimeoutWithNominations, AGangThatGaveItsNodesBackHoldsNone) {
  AddNode(8);
  CreateGangWithObstacle();
  ASSERT_TRUE(Await("it gives its nodes back", [&] { return GroupReason() == "BackingOff"; }));
  ASSERT_TRUE(Await("its members are gated", [&] { return EverMembers().size() == 6 && Gated() == 3; }));

  CreateOutsider("outsider", 8);

  EXPECT_TRUE(Await(
      "another pod has the node", [&] { return IsBound(*ThePod("outsider")); }, std::chrono::seconds(5)));
}

}  // namespace
}  // namespace grus::testing
