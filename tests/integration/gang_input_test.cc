// SPDX-License-Identifier: Apache-2.0
// What users get wrong about gangs, and what they are told.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using ::testing::HasSubstr;

class GangInput : public Gang {};

TEST_F(GangInput, APodWhoseGroupDoesNotExistIsToldSoAndStartsOnceItDoes) {
  AddNode(8);
  CreateMember("early", 1);
  ASSERT_TRUE(Await("it is told", [&] { return HasEvent("early", "NoPodGroup"); }));
  EXPECT_THAT(Events("early", "NoPodGroup").front(), HasSubstr("PodGroup " + ns() + "/gang of scheduling.x-k8s.io"));
  EXPECT_TRUE(IsGated(*ThePod("early")));

  CreateGroup(1);

  EXPECT_TRUE(Await("it runs", [&] { return Runs(1); }));
}

TEST_F(GangInput, APodWithAGateAndWithoutALabelIsToldSo) {
  AddNode(8);
  CreateMember("nameless", 1, "gang", "{}", "app");
  ASSERT_TRUE(Await("it is told", [&] { return HasEvent("nameless", "NoPodGroup"); }));
  EXPECT_THAT(Events("nameless", "NoPodGroup").front(),
              HasSubstr("add the label scheduling.x-k8s.io/pod-group, or remove the gate"));
  CreateGroup(1);

  Patch<kube::Pod>("nameless", R"({"metadata":{"labels":{"scheduling.x-k8s.io/pod-group":"gang"}}})");

  EXPECT_TRUE(Await("it runs", [&] { return Runs(1); }));
}

TEST_F(GangInput, AMemberThatTheServerRefusesToChangeIsToldAndHoldsNothing) {
  AddNode(8);
  CreateMember("full", 1);
  // Not one more annotation finds room.
  Patch<kube::Pod>("full", R"({"metadata":{"annotations":{"example.com/x":")" + std::string(262'125, 'a') + "\"}}}");
  CreateGroup(1);
  ASSERT_TRUE(Await("it is told", [&] { return GroupReason() == "PodsRefused"; }));
  EXPECT_THAT(GroupMessage(), HasSubstr("Pod " + ns() + "/full"));
  EXPECT_TRUE(Await("an event says so", [&] { return HasEvent(kGroup, "PodsRefused"); }));

  CreateGroup(1, "whole");
  CreateSet(1, 8, "whole");

  EXPECT_TRUE(Await("another one has the node", [&] { return Runs(1, "whole"); }));
}

// It is no job's, so nobody would ever give back what is kept for the next one.
TEST_F(GangInput, APodThatSaysThatItIsALauncherKeepsNothingOnceItIsGone) {
  AddNode(8);
  kube::Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"false","labels":{
      "scheduling.x-k8s.io/pod-group":"none","ai.centauruscloud.io/role":"launcher"}}})");
  pod["spec"] = PodSpec(8);
  pod["spec"].Erase("schedulingGates");
  world().Create(KindOf<kube::Pod>(), ns(), pod);
  ASSERT_TRUE(Await("it runs", [&] { return !ThePod("false")->spec.node_name.empty(); }));
  DeletePod("false");

  CreateGroup(1);
  CreateSet(1, 8);

  EXPECT_TRUE(Await("a gang has the node", [&] { return Runs(1); }));
}

}  // namespace
}  // namespace grus::testing
