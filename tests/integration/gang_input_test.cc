// SPDX-License-Identifier: Apache-2.0
// What users get wrong about gangs, and what they are told.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kNoGate[] = R"({"schedulingGates":null})";
constexpr char kForeignGate[] =
    R"({"schedulingGates":[{"name":"scheduling.x-k8s.io/gang"},{"name":"example.com/quota"}]})";

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

TEST_F(GangInput, AGroupOfAnotherNamespaceIsNone) {
  AddNode(8);
  kube::Json group = FromText(R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup"})");
  group["metadata"]["name"] = ns();
  world().Create(KindOf<api::PodGroup>(), "default", group);

  CreateMember("stranger", 1, ns());

  EXPECT_TRUE(Await("it is told", [&] { return HasEvent("stranger", "NoPodGroup"); }));
  EXPECT_TRUE(IsGated(*ThePod("stranger")));
  world().Delete(KindOf<api::PodGroup>(), {"default", ns()});
}

TEST_F(GangInput, FewerPodsThanTheMinimumWaitForTheRest) {
  AddNode(8);
  CreateGroup(3);
  CreateMember("a", 1);
  CreateMember("b", 1);

  ASSERT_TRUE(
      Await("it says so", [&] { return GroupReason() == "WaitingForMembers" && GroupSays("2 of the 3 members"); }));
  EXPECT_TRUE(Stays(
      "both are held", [&] { return Gated() == 2; }, kQuiet));
}

TEST_F(GangInput, MembersThatNoNodeCanHoldAreToldSo) {
  AddNodes(2, 8);
  struct Case {
    const char *name, *spec;
    int gpus;
  };
  const Case cases[] = {
      {"pool", R"({"nodeSelector":{"grus.test/pool":"nowhere"}})", 1},
      {"name", R"({"nodeSelector":{"kubernetes.io/hostname":"no-such-node"}})", 1},
      {"size", "{}", 9},
      {"memory", R"({"containers":[{"name":"c","image":"x","resources":{"requests":{"memory":"2Ti"}}}]})", 0},
      {"contradiction", R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{
          "nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["linux"]},
                                                    {"key":"kubernetes.io/os","operator":"NotIn","values":["linux"]}]}]}}}})",
       1},
  };
  for (const Case& c : cases) {
    CreateGroup(2, c.name);
    CreateSet(2, c.gpus, c.name, {}, c.spec);
  }
  for (const Case& c : cases) {
    ASSERT_TRUE(Await(std::string(c.name) + " cannot fit", [&] { return GroupReason(c.name) == "CannotFit"; }));
    EXPECT_THAT(GroupMessage(c.name), AnyOf(HasSubstr("no node can hold"), HasSubstr("needs "))) << c.name;
    EXPECT_TRUE(Await(std::string(c.name) + " has an event", [&] { return HasEvent(c.name, "CannotFit"); }));
    EXPECT_TRUE(Await(std::string(c.name) + " is held", [&] { return Gated(c.name) == 2; }));
  }
}

TEST_F(GangInput, MembersThatExcludeEachOtherFromEveryNodeCannotFit) {
  AddNode(8);
  CreateGroup(2);
  CreateSet(2, 1, kGroup, {},
            R"({"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
      {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"gang"}}}]}}})");

  ASSERT_TRUE(Await("it says so", [&] { return GroupReason() == "CannotFit" && GroupSays("2 members"); }));
  EXPECT_TRUE(Await("both are held", [&] { return Gated() == 2; }));
}

TEST_F(GangInput, ALoweredMinimumStartsAGangThatWaits) {
  AddNode(8);
  CreateGroup(4);
  CreateSet(4, 4);
  ASSERT_TRUE(Await("it waits", [&] { return GroupReason() == "CannotFit"; }));

  SetMinimum(2);

  EXPECT_TRUE(Await("two run", [&] { return Runs(2); }));
  EXPECT_EQ(Gated(), 2);
}

TEST_F(GangInput, ARaisedMinimumEndsNothingThatRuns) {
  AddNode(8);
  CreateGroup(2, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateSet(2, 4);
  ASSERT_TRUE(Await("it runs", [&] { return Runs(2); }));
  const PodList running = Members();

  SetMinimum(4);

  ASSERT_TRUE(Await("it is below its minimum", [&] { return GroupReason() == "BelowMinimum"; }));
  EXPECT_TRUE(Stays(
      "its members run", [&] { return AllSurvive(running, Members()) && Bound() == 2; }, kQuiet));
}

TEST_F(GangInput, ARaisedMinimumEndsNothingThatRunsAlsoWhenTheOthersFindNoRoom) {
  AddNode(8);
  CreateGroup(2, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateSet(4, 4);
  ASSERT_TRUE(Await("its minimum runs", [&] { return Runs(2); }));
  const PodList running = Where(Members(), IsBound);

  SetMinimum(4);

  ASSERT_TRUE(Await("the manager has seen it", [&] { return Group()->status.observed_generation == 2; }));
  EXPECT_TRUE(Stays(
      "its members run", [&] { return AllSurvive(running, Members()) && Bound() == 2; }, kQuiet));
}

TEST_F(GangInput, ADeletedGroupLeavesItsPodsHeldUntilItIsThereAgain) {
  AddNode(4);
  CreateGroup(2);
  CreateSet(2, 4);
  ASSERT_TRUE(Await("it waits", [&] { return GroupReason() == "CannotFit"; }));

  Delete<api::PodGroup>(kGroup);
  ASSERT_TRUE(
      Await("its pods are told", [&] { return HasEvent("gang-0", "NoPodGroup") && HasEvent("gang-1", "NoPodGroup"); }));
  AddNode(4);

  EXPECT_TRUE(Stays(
      "they are held, although there is room", [&] { return Gated() == 2; }, kQuiet));
  CreateGroup(2);
  EXPECT_TRUE(Await("they run", [&] { return Runs(2); }));
}

TEST_F(GangInput, ADeletedGroupLeavesARunningGangAlone) {
  AddNode(8);
  CreateGroup(2);
  CreateSet(2, 4);
  ASSERT_TRUE(Await("it runs", [&] { return Runs(2); }));
  const PodList running = Members();

  Delete<api::PodGroup>(kGroup);
  CreateGroup(2);

  EXPECT_TRUE(Await("the new group knows that it runs", [&] { return Runs(2); }));
  EXPECT_TRUE(AllSurvive(running, Members()));
}

TEST_F(GangInput, AMinimumBelowOneIsRefusedByItsField) {
  for (const kube::Kind* kind : {&KindOf<api::PodGroup>(), &KindOf<api::LegacyPodGroup>()}) {
    for (const int min_member : {0, -1}) {
      kube::Json group = kube::Json::MakeObject({{"kind", "PodGroup"}});
      group["apiVersion"] = std::string(kind->group) + "/v1alpha1";
      group["metadata"]["name"] = "refused";
      group["spec"]["minMember"] = min_member;
      const auto made = client().Create(*kind, ns(), group, {.dry_run = true});
      ASSERT_FALSE(made) << kind->group << " " << min_member;
      EXPECT_EQ(made.error().code(), kube::ErrorCode::kInvalid);
      EXPECT_THAT(made.error().message(), AllOf(HasSubstr("spec.minMember"), HasSubstr("greater than or equal to 1")));
    }
  }
}

TEST_F(GangInput, AMemberWithTheGateOfAnotherControllerWaitsForThatOne) {
  AddNode(8);
  CreateGroup(2);
  CreateMember("ours", 1);
  CreateMember("theirs", 1, kGroup, kForeignGate);
  ASSERT_TRUE(Await("it says so", [&] { return GroupReason() == "GatedByOthers"; }));
  EXPECT_TRUE(Await("in an event, too", [&] { return HasEvent(kGroup, "GatedByOthers"); }));
  EXPECT_EQ(Gated(), 2);

  Patch<kube::Pod>("theirs", R"({"spec":{"schedulingGates":[{"name":"scheduling.x-k8s.io/gang"}]}})");

  EXPECT_TRUE(Await("it runs", [&] { return Runs(2); }));
}

TEST_F(GangInput, AMemberWithTheGateOfAnotherControllerDoesNotHoldBackTheMinimum) {
  AddNode(8);
  CreateGroup(2);
  CreateMember("a", 1);
  CreateMember("b", 1, kGroup, kForeignGate);
  CreateMember("c", 1);

  ASSERT_TRUE(Await("two run", [&] { return Runs(2); }));
  EXPECT_EQ(ThePod("b")->spec.scheduling_gates.size(), 2U);
}

TEST_F(GangInput, AMemberWithoutTheGateIsNotHeldButCounts) {
  AddNode(8);
  CreateGroup(2);
  CreateMember("free", 1, kGroup, kNoGate);
  ASSERT_TRUE(Await("the scheduler has it", [&] { return IsBound(*ThePod("free")); }));
  ASSERT_TRUE(
      Await("one is missing", [&] { return GroupReason() == "WaitingForMembers" && GroupSays("1 of the 2 members"); }));

  CreateMember("gated", 1);

  EXPECT_TRUE(Await("both run", [&] { return Runs(2); }));
}

TEST_F(GangInput, AMemberWithoutTheGateIsNeverEnded) {
  AddNode(8);
  CreateGroup(2, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateSet(1, 1, "free", kGroup, kNoGate);
  ASSERT_TRUE(Await("the scheduler has it", [&] { return Bound() == 1; }));
  const PodList before = Members();

  CreateMember("too-large", 9);

  ASSERT_TRUE(Await("both are known", [&] { return Group()->status.scheduled == 1 && Members().size() == 2; }));
  EXPECT_TRUE(Stays(
      "it runs", [&] { return AllSurvive(before, Members()) && Bound() == 1; }, kQuiet));
}

TEST_F(GangInput, AGangWhoseRestCannotFitSaysSoAlsoWhenAPartOfItRuns) {
  AddNode(8);
  CreateGroup(2);
  CreateMember("free", 1, kGroup, kNoGate);
  ASSERT_TRUE(Await("the scheduler has it", [&] { return Bound() == 1; }));

  CreateMember("too-large", 9);

  EXPECT_TRUE(Await(
      "it says so", [&] { return GroupReason() == "CannotFit"; }, std::chrono::seconds(20)));
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
