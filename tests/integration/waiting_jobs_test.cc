// SPDX-License-Identifier: Apache-2.0
// Jobs that wait: for other controllers to remove their scheduling gates, for room, or for nodes that are large enough.
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

class WaitingJobs : public Gang {
 protected:
  static constexpr char kOfTwo[] = R"({"workersSpec":{"minReplicas":2,"maxReplicas":2}})";
  static constexpr char kGatedOfTwo[] = R"({"workersSpec":{"minReplicas":2,"maxReplicas":2,"template":{"spec":{
      "schedulingGates":[{"name":"example.com/admission"}]}}}})";

  // As the other controller does.
  void RemoveOthersGates(const std::string& job) {
    for (const PodPtr& pod : Workers(job)) {
      Patch<kube::Pod>(pod->metadata.name, R"({"spec":{"schedulingGates":[{"name":"scheduling.x-k8s.io/gang"}]}})");
    }
  }
  // Events about the job, not about its PodGroup, which has the same name.
  int Told(const std::string& job, const std::string& reason) const {
    const auto events = world().List<kube::Event>(ns());
    return static_cast<int>(std::ranges::count_if(events, [&](const auto& event) {
      return event->regarding.kind == "ElasticHorovodJob" && event->regarding.name == job && event->reason == reason;
    }));
  }
  void End(const std::string& job) { SetOutcome(LauncherPod(job)->metadata.name, "succeed"); }
};

TEST_F(WaitingJobs, OneThatOthersGateKeepsItsPlaceInTheQueueAndNoGpus) {
  AddNode(2);
  Create(kGatedOfTwo, "gated");
  ASSERT_TRUE(Await("it says why it waits", [&] { return ReasonOf("Ready", "gated") == "GatedByOthers"; }));
  ASSERT_TRUE(Await("its workers are there", [&] { return Workers("gated").size() == 2; }));
  EXPECT_THAT(MessageOf("Ready", "gated"), HasSubstr("its scheduling gate example.com/admission"));
  const PodList workers = Workers("gated");

  Create(kOfTwo, "second");
  ASSERT_TRUE(AwaitTrains(2, "second"));
  Create(kOfTwo, "third");
  ASSERT_TRUE(Await("the third waits", [&] { return ReasonOf("Ready", "third") == "WaitingForRoom"; }));
  RemoveOthersGates("gated");
  ASSERT_TRUE(Await("it waits for room", [&] { return ReasonOf("Ready", "gated") == "WaitingForRoom"; }));
  EXPECT_TRUE(Stays(
      "its workers do not go to the scheduler",
      [&] { return Where(Workers("gated"), IsGated).size() == 2 && Trains(2, "second"); }, kQuiet));

  End("second");
  EXPECT_TRUE(AwaitTrains(2, "gated"));
  EXPECT_TRUE(AllSurvive(workers, Workers("gated")));
  EXPECT_EQ(ReasonOf("Ready", "third"), "WaitingForRoom");
  EXPECT_EQ(Told("gated", "GatedByOthers"), 1);
  EXPECT_EQ(Told("gated", "WaitingForRoom"), 1);

  End("gated");
  EXPECT_TRUE(AwaitTrains(2, "third"));
}

TEST_F(WaitingJobs, OneThatNoNodeCanHoldIsStalledAndToldOnce) {
  AddNode(8);
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":1,"gpusPerWorker":9}})");
  ASSERT_TRUE(Await("it is stalled", [&] { return ReasonOf("Stalled") == "CannotFit" && IsTrue("Stalled"); }));
  EXPECT_FALSE(IsTrue("Reconciling"));
  EXPECT_TRUE(Await("it says what helps", [&] {
    return Says("Ready", "no node can hold a worker that asks for 9 nvidia.com/gpu; check its resources");
  }));
  ASSERT_TRUE(Await("an event says so", [&] { return HasEvent(kName, "CannotFit"); }));
  EXPECT_TRUE(Stays(
      "it is said once", [&] { return Events(kName, "CannotFit").size() == 1; }, kQuiet));

  AddNode(9);
  EXPECT_TRUE(AwaitTrains(1));
  EXPECT_FALSE(IsTrue("Stalled"));
}

}  // namespace
}  // namespace grus::testing
