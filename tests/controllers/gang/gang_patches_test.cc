// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "controllers/gang/member_writer.h"
#include "tests/controllers/gang/gang_builder.h"

namespace grus {
namespace {

using testing::At;
using testing::GangBuilder;

std::string Nomination(const std::string& node, const std::string& scheduler, const std::string& told_before) {
  const auto told = [&](Member& member) { member.nominated_to = told_before; };
  const GangView view = GangBuilder(1).Gated(1).Each(told).Scheduler(scheduler).Build();
  return kube::ToText(NominationPatch(view, {&view.members[0], node}));
}

TEST(NominationPatch, NamesTheSchedulerThatIsToHoldTheNode) {
  EXPECT_EQ(Nomination("node-0", "first", ""),
            R"({"metadata":{"uid":"uid-0","annotations":{"scheduling.ai.centauruscloud.io/nominated-to":"first"}},)"
            R"("status":{"nominatedNodeName":"node-0"}})");
}

TEST(NominationPatch, DiffersForEachScheduler) {
  EXPECT_NE(Nomination("node-0", "second", "first"), Nomination("node-0", "first", "first"));
}

TEST(NominationPatch, OfAnUnknownSchedulerLeavesAnnotationsAlone) {
  EXPECT_EQ(Nomination("node-0", "", ""), R"({"metadata":{"uid":"uid-0"},"status":{"nominatedNodeName":"node-0"}})");
}

TEST(NominationPatch, ThatIsTakenBackNamesNobody) {
  EXPECT_EQ(Nomination("", "first", "first"),
            R"({"metadata":{"uid":"uid-0","annotations":{"scheduling.ai.centauruscloud.io/nominated-to":null}},)"
            R"("status":{"nominatedNodeName":null}})");
}

TEST(LiftPatch, TakesOurGateAndLeavesThoseOfOthers) {
  const GangView view = GangBuilder(1).Gated(1).Build();
  EXPECT_EQ(kube::ToText(*LiftPatch(view, view.members[0], view.now).Find("spec")),
            R"({"schedulingGates":[{"$patch":"delete","name":"scheduling.x-k8s.io/gang"}]})");
}

TEST(LiftPatch, SaysWhenUnlessAnOwnersPodHasHardlyWaited) {
  const auto is_dated = [](const GangView& view) {
    return LiftPatch(view, view.members[0], view.now).Find("metadata")->Find("annotations") != nullptr;
  };
  const auto made = [](int at) { return [at](Member& member) { member.created_at = At(at); }; };
  EXPECT_FALSE(is_dated(GangBuilder(1).Gated(1).Each(made(-1)).PlannedByOwner().Build()));
  EXPECT_TRUE(is_dated(GangBuilder(1).Gated(1).Each(made(-2)).PlannedByOwner().Build()));
  EXPECT_TRUE(is_dated(GangBuilder(1).Gated(1).PlannedByOwner().Build()));
  EXPECT_TRUE(is_dated(GangBuilder(1).Gated(1).Each(made(-1)).Build()));
}

TEST(LiftPatch, PinsTheMemberToItsNodeWithTheGate) {
  const GangView view = GangBuilder(1).Gated(1).Build();
  const kube::Json patch = LiftPatch(view, view.members[0], view.now, Pin{"node-0", "host-0"});
  EXPECT_EQ(kube::ToText(*patch.Find("spec")->Find("nodeSelector")), R"({"kubernetes.io/hostname":"host-0"})");
  EXPECT_NE(kube::ToText(*patch.Find("metadata")).find(R"(pinned-to":"node-0")"), std::string::npos);
}

TEST(UncountPatch, TakesThePodOutOfItsJobsCountAsItWasSeen) {
  const GangView view = GangBuilder(1).Bound(1).Build();
  EXPECT_EQ(kube::ToText(UncountPatch(view.members[0], "77")),
            R"({"metadata":{"uid":"uid-0","resourceVersion":"77",)"
            R"("$deleteFromPrimitiveList/finalizers":["batch.kubernetes.io/job-tracking"],)"
            R"("annotations":{"scheduling.ai.centauruscloud.io/given-up":"true"}}})");
}

TEST(DisruptionPatch, TellsAPolicyThatThePodDidNotFail) {
  GangView view = GangBuilder(1).Bound(1).Build();
  view.members[0].resource_version = "76";
  const kube::Json patch = DisruptionPatch(view, view.members[0]);
  EXPECT_EQ(kube::ToText(*patch.Find("metadata")), R"({"uid":"uid-0","resourceVersion":"76"})");
  const kube::Json condition = (*patch.At({"status", "conditions"})->AsArray())[0];
  EXPECT_EQ(*condition.Find("type")->AsString(), "DisruptionTarget");
  EXPECT_EQ(*condition.Find("status")->AsString(), "True");
}

}  // namespace
}  // namespace grus
