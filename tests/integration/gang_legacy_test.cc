// SPDX-License-Identifier: Apache-2.0
// PodGroups of scheduling.sigs.k8s.io, as the first versions of the coscheduling plugin had them.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LegacyGang : public Gang {
 protected:
  void CreateLegacyGroup(int min_member) { CreateGroup(min_member, kGroup, "{}", KindOf<api::LegacyPodGroup>()); }
  void CreateLegacyMember(const std::string& name, int gpus, std::string_view spec = "{}") {
    CreateMember(name, gpus, kGroup, spec, api::kLegacyPodGroupLabel);
  }
  std::shared_ptr<const api::LegacyPodGroup> LegacyGroup() const {
    return world().Get<api::LegacyPodGroup>(ns(), kGroup);
  }
  std::string LegacyPhase() const {
    const auto group = LegacyGroup();
    return group ? group->status.phase : "";
  }
  std::string LegacyMessage() const { return kit::MessageOf(LegacyGroup()); }
  bool LegacySays(std::string_view text) const { return LegacyMessage().find(text) != std::string::npos; }
};

TEST_F(LegacyGang, IsPendingWithoutMembersAndPreSchedulingOnceTheyWait) {
  AddNode(8);
  CreateLegacyGroup(2);
  CreateLegacyMember("a", 8);
  ASSERT_TRUE(Await("it waits for members", [&] { return !LegacyMessage().empty(); }));
  EXPECT_EQ(LegacyPhase(), "Pending");

  CreateLegacyMember("b", 8);

  EXPECT_TRUE(Await("it waits for room", [&] { return LegacyPhase() == "PreScheduling"; }));
}

TEST_F(LegacyGang, IsScheduledOnceTheyHaveOneAndRunningOnceTheyRun) {
  AddNodeWithoutKubelet(8);
  CreateLegacyGroup(2);
  CreateLegacyMember("a", 1);
  CreateLegacyMember("b", 1);
  ASSERT_TRUE(Await("it says so", [&] { return LegacyPhase() == "Scheduled"; }));

  for (const char* pod : {"a", "b"}) Patch<kube::Pod>(pod, R"({"status":{"phase":"Running"}})", "status");

  EXPECT_TRUE(Await("it runs", [&] { return LegacyPhase() == "Running"; }));
}

TEST_F(LegacyGang, OneOfEachKindWithTheSameNameDoNotMix) {
  AddNode(8);
  CreateGroup(2);
  CreateLegacyGroup(3);
  CreateMember("a", 1);
  CreateMember("b", 1);
  CreateLegacyMember("c", 1);
  CreateLegacyMember("d", 1);

  ASSERT_TRUE(Await("the gang of two runs", [&] { return Runs(2); }));
  ASSERT_TRUE(Await("the legacy one waits", [&] { return LegacySays("2 of the 3 members"); }));
  EXPECT_TRUE(IsGated(*ThePod("c")) && IsGated(*ThePod("d")));

  CreateLegacyMember("e", 1);

  EXPECT_TRUE(Await("it runs, too", [&] { return LegacyPhase() == "Running" && LegacyGroup()->status.running == 3; }));
  EXPECT_EQ(Group()->status.scheduled, 2);
}

TEST_F(LegacyGang, APodWithoutItsGroupIsToldWhichKindItWaitsFor) {
  CreateLegacyMember("early", 1);

  ASSERT_TRUE(Await("it is told", [&] { return HasEvent("early", "NoPodGroup"); }));
  EXPECT_THAT(Events("early", "NoPodGroup"), ElementsAre(HasSubstr("of scheduling.sigs.k8s.io")));
}

}  // namespace
}  // namespace grus::testing
