// SPDX-License-Identifier: Apache-2.0
// The controllers of kubernetes-sigs/scheduler-plugins lead in the cluster, as far as their lease says.
#include "clientlib/model/coordination_v1.h"
#include "controllers/cluster/lease_watch.h"
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kLeft[] = "StatusLeftToSchedulerPlugins";

class SchedulerPlugins : public Gang {
 protected:
  static void SetUpTestSuite() { StartWorld(); }
  void TearDown() override {
    DropLease();
    Gang::TearDown();
  }

  static void HoldLease(int seconds) {
    kube::Json lease = FromText(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{},
        "spec":{"holderIdentity":"plugins_1","acquireTime":"2026-01-01T00:00:00.000000Z",
                "renewTime":"2026-01-01T00:00:00.000000Z","leaseTransitions":1}})");
    lease["metadata"]["name"] = kSchedulerPluginsLease;
    lease["spec"]["leaseDurationSeconds"] = seconds;
    Must(client().Create(kube::KindOf<kube::Lease>(), "kube-system", lease));
  }
  static void DropLease() {
    Must(client().Delete(kube::KindOf<kube::Lease>(), {"kube-system", kSchedulerPluginsLease}));
  }
  bool IsStatusUntouched() const {
    const Writes writes = CountWrites();
    return Group()->status.observed_generation == 0 && !writes.contains("patch PodGroup");
  }
};

TEST_F(SchedulerPlugins, TheStatusIsTheirsAndTheGangStartsAllTheSame) {
  HoldLease(3600);
  StartManager();
  AddNode(8);
  CreateGroup(2);
  CreateSet(2, 4);

  ASSERT_TRUE(Await("it is bound", [&] { return Bound() == 2; }));
  ASSERT_TRUE(Await("an event says who writes the status", [&] { return HasEvent(kGroup, kLeft, "Normal"); }));
  EXPECT_TRUE(Stays(
      "no status comes", [&] { return Group()->status.observed_generation == 0; }, kQuiet));
  EXPECT_TRUE(IsStatusUntouched());
  EXPECT_THAT(manager().output(), HasSubstr("is left to the controllers of scheduler-plugins"));
}

}  // namespace
}  // namespace grus::testing
