// SPDX-License-Identifier: Apache-2.0
// A cluster on which the CRD of kubernetes-sigs/scheduler-plugins is installed and not ours: no conditions,
// no observedGeneration, no attempts. Changes the CRD of the cluster, which must be the test's own, and sets
// it right again; by its file name this comes near the end.
#include <fstream>
#include <sstream>

#include "tests/integration/gang_fixture.h"
#include "tests/kit/local_cluster.h"

namespace grus::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kCrdPath[] = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.x-k8s.io";

std::string UpstreamCrd() {
  const std::string path = kit::FileOfTree("tests/integration/upstream_podgroup.yaml");
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) throw std::runtime_error("cannot read " + path);
  return text.str();
}

class UpstreamPodGroup : public Gang {
 protected:
  static void SetUpTestSuite() {
    StartWorld();
    ours_ = FromText(world().Send("GET", kCrdPath).body)["spec"];
    Replace(FromText(Yaml(UpstreamCrd()))["spec"], false);
    StartManager();
  }
  static void TearDownTestSuite() {
    Replace(ours_, true);
    Gang::TearDownTestSuite();
  }

 private:
  // The API server reads YAML: an apply that changes nothing says what it understood.
  static std::string Yaml(const std::string& text) {
    const kube::HttpResponse answer =
        world().Send("PATCH", std::string(kCrdPath) + "?fieldManager=upstream&force=true&dryRun=All",
                     "application/apply-patch+yaml", text);
    if (answer.status != 200) throw std::runtime_error(answer.body);
    return answer.body;
  }
  // Sets the CRD, and waits until the server goes by it.
  static void Replace(const kube::Json& spec, bool has_default) {
    kube::Json crd = FromText(world().Send("GET", kCrdPath).body);
    crd["spec"] = spec;
    const kube::HttpResponse put = world().Send("PUT", kCrdPath, "application/json", ToText(crd));
    if (put.status != 200) throw std::runtime_error(put.body);
    for (int i = 0; i < 10000; ++i) {
      const kube::HttpResponse made = world().Send(
          "POST", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups?dryRun=All", "application/json",
          R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup","metadata":{"name":"probe"},"spec":{}})");
      if (made.status == 201 && (made.body.find("minMember") != std::string::npos) == has_default) return;
    }
    throw std::runtime_error("the API server does not go by the new schema");
  }

  static kube::Json ours_;
};

kube::Json UpstreamPodGroup::ours_;

TEST_F(UpstreamPodGroup, AGangThatDoesNotFitWaitsAndSaysWhyInAnEvent) {
  AddNode(8);
  CreateGroup(4);
  CreateSet(4, 4);

  ASSERT_TRUE(Await("it says why", [&] { return HasEvent(kGroup, "CannotFit"); }));
  EXPECT_THAT(Events(kGroup, "CannotFit").front(), HasSubstr("nvidia.com/gpu"));
  EXPECT_TRUE(Await("it waits whole", [&] { return GroupPhase() == "Pending" && Gated() == 4; }));
  for (int i = 0; i < 3; ++i) AddNode(1);  // Each is a reason to look again.
  EXPECT_TRUE(Stays(
      "it is said once", [&] { return Events(kGroup, "CannotFit").size() == 1; }, kQuiet));
  AddNode(8);
  EXPECT_TRUE(
      Await("it runs once there is room, with all counts", [&] { return Runs(4) && Group()->status.running == 4; }));
  EXPECT_EQ(Group()->status.occupied_by, ns() + "/gang");
  EXPECT_TRUE(Group()->status.conditions.empty());
}

TEST_F(UpstreamPodGroup, AtRestNothingIsWritten) {
  AddNodes(2, 4);
  CreateGroup(2, "runs");
  CreateSet(2, 4, "runs");
  ASSERT_TRUE(Await("one runs", [&] { return Runs(2, "runs"); }));
  CreateGroup(4, "waits");
  CreateSet(4, 4, "waits");
  CreateGroup(3, "lacks");
  CreateSet(1, 1, "lacks");
  ASSERT_TRUE(Await("one waits", [&] { return HasEvent("waits", "CannotFit"); }));

  EXPECT_TRUE(WritesNothing(seconds(10)));
}

TEST_F(UpstreamPodGroup, AReplacementInARunningGangStartsAtOnce) {
  AddNode(8);
  CreateGroup(2);
  CreateSet(2, 4);
  ASSERT_TRUE(Await("it runs", [&] { return Runs(2); }));

  DeletePod("gang-0");

  EXPECT_TRUE(Await("two are bound again", [&] { return EverMembers().size() >= 3 && Bound() == 2; }));
  EXPECT_THAT(EverMembers(), SizeIs(3)) << "the other one stayed";
}

TEST_F(UpstreamPodGroup, AStartThatDoesNotComeTogetherIsRolledBackAndNotTriedAtOnce) {
  AddNode(8);
  CreateGroup(2, kGroup, R"({"scheduleTimeoutSeconds":1})");
  CreateSet(1, 1, "plain", kGroup);
  CreateClaimWithoutVolume();
  CreateSet(1, 1, "claim", kGroup, kWithClaim);

  ASSERT_TRUE(Await("it is rolled back", [&] { return EverMembers().size() >= 4 && Gated() == 2; }));
  ASSERT_TRUE(Await("an event says so", [&] { return HasEvent(kGroup, "BackingOff"); }));
  // "...; try 2 begins at TIME", in whole seconds.
  const std::string note = Events(kGroup, "BackingOff").front();
  const auto next = kube::ParseTime(note.substr(note.rfind(' ') + 1));
  ASSERT_TRUE(next) << note;
  ASSERT_TRUE(Await("it is tried again", [&] { return Gated() < 2; }));
  EXPECT_GE(kube::SystemClock().WallNow(), next->value) << "as it said";
}

}  // namespace
}  // namespace grus::testing
