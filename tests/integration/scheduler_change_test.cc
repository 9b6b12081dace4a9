// SPDX-License-Identifier: Apache-2.0
// Another kube-scheduler takes over while nodes are held for a gang. It takes a cluster of its own: in that of
// the other tests the scheduler has no lease.
#include <algorithm>

#include "clientlib/model/coordination_v1.h"
#include "controllers/cluster/lease_watch.h"
#include "controllers/gang/gang_view.h"
#include "tests/integration/gang_fixture.h"
#include "tests/integration/own_cluster.h"

namespace grus::testing {
namespace {

class SchedulerChange : public Gang {
 protected:
  static void SetUpTestSuite() {
    cluster_ = std::make_unique<OwnCluster>("scheduler-change", "--scheduler-lease 6");
    StartWorld();
    if (!world().Await([] { return !Scheduler().empty(); })) throw std::runtime_error("no scheduler leads");
    StartManager({"--nominations", "always"});
  }
  static void TearDownTestSuite() {
    Gang::TearDownTestSuite();
    cluster_.reset();
  }

  // Empty while none leads.
  static std::string Scheduler() {
    const auto lease = client().Get<kube::Lease>({kSchedulerLeaseNamespace, kSchedulerLease});
    return lease ? (*lease)->spec.holder_identity.value_or("") : "";
  }
  // Returns when another one leads, which it tells in an Event: so Await() looks.
  void ChangeScheduler() {
    const std::string before = Scheduler();
    cluster_->RestartScheduler();
    ASSERT_TRUE(Await("another scheduler leads", [&] { return Scheduler() != before && !Scheduler().empty(); }));
  }
  // As long as it is undecided, no gate is lifted: its scheduler does not run.
  void CreateUndecided(const std::string& name) {
    kube::Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{}})");
    pod["metadata"]["name"] = name;
    pod["spec"] = PodSpec(1);
    pod["spec"].Erase("schedulingGates");
    pod["spec"]["schedulerName"] = "somebody-elses";
    world().Create(kube::KindOf<kube::Pod>(), ns(), pod);
  }
  int NominatedTo(const std::string& scheduler) const {
    const PodList members = Members();
    return static_cast<int>(std::count_if(members.begin(), members.end(), [&](const PodPtr& pod) {
      return IsGated(*pod) && !pod->status.nominated_node_name.empty() &&
             pod->metadata.Annotation(kGangNominatedToAnnotation) == scheduler;
    }));
  }

 private:
  static std::unique_ptr<OwnCluster> cluster_;
};

std::unique_ptr<OwnCluster> SchedulerChange::cluster_;

TEST_F(SchedulerChange, WhatIsHeldForAGangIsHeldByTheNextSchedulerToo) {
  AddNode(8);
  CreateUndecided("undecided");
  CreateGroup(2);
  CreateSet(2, 4);
  ASSERT_TRUE(Await("both are nominated", [&] { return NominatedTo(Scheduler()) == 2; }));

  ChangeScheduler();
  ASSERT_TRUE(Await("the next one is told", [&] { return NominatedTo(Scheduler()) == 2; }));
  CreateOutsider("outsider", 4);

  ASSERT_TRUE(
      Await("an outsider of the same priority is refused", [&] { return IsUnschedulable(*ThePod("outsider")); }));
  DeletePod("undecided");
  EXPECT_TRUE(Await("the gang runs", [&] { return Runs(2); }));
  EXPECT_FALSE(IsBound(*ThePod("outsider")));
}

}  // namespace
}  // namespace grus::testing
