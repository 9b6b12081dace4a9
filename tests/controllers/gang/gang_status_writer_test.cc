// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_status_writer.h"

#include <gtest/gtest.h>

#include "controllers/gang/gang_status.h"
#include "tests/kit/conditions.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;

constexpr char kGroups[] = "podgroups.scheduling.x-k8s.io", kLeases[] = "leases.coordination.k8s.io";
const kube::ObjectKey kKey{"team-a", "gang"};

// With a lease of scheduler-plugins' controllers that is held at first.
class GangStatusWriterTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    Create(kGroups, *kube::ParseJson(R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup",
                        "metadata":{"namespace":"team-a","name":"gang"},"spec":{"minMember":2}})"));
    Create(kLeases, *kube::ParseJson(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
                        "metadata":{"namespace":"kube-system","name":"sched-plugins-controllers"},
                        "spec":{"holderIdentity":"plugins","leaseDurationSeconds":15}})"));
    StartCaches();
    ASSERT_TRUE(plugins_.Start({}));
    ++waiters_;  // The watch of the lease.
    Settle();
  }
  void TearDown() override {
    plugins_.Stop();
    ReconcilerFixture::TearDown();
  }

  std::shared_ptr<const api::PodGroup> Group() const { return groups_.Get<api::PodGroup>(kKey); }
  GangView View() {
    GangView view;
    view.group = writer_.WithLastStatus(Group());
    view.key = kKey.ToString();
    view.now = kube::Time{clock_.WallNow()};
    return view;
  }
  void Say(GangReason reason, int scheduled) {
    const GangView view = View();
    api::PodGroupStatus status = BaseGangStatus(view);
    status.scheduled = scheduled;
    SetGangReason(status, view, kGangPending, reason, "so many: " + std::to_string(scheduled));
    const auto written = writer_.Write(view, status, {});
    ASSERT_TRUE(written) << written.error().message();
    Settle();
  }
  std::string ReasonInCluster() const {
    return Group()->status.observed_generation == 0 ? "" : kit::ReasonIn(Group()->status.conditions);
  }
  void DropLease() {
    ASSERT_TRUE(client_.Delete(KindOf<kube::Lease>(), {"kube-system", kSchedulerPluginsLease}));
    Settle();
  }

  kube::Informer& groups_ = Cache<api::PodGroup>();
  LeaseWatch plugins_{client_, {"kube-system"}, kSchedulerPluginsLease, clock_, log_};
  kube::WriteTracker writes_;
  GangStatusWriter writer_{client_, KindOf<api::PodGroup>(), groups_, &plugins_, writes_, events_, clock_, log_};
};

TEST_F(GangStatusWriterTest, WhileOthersLeadNothingIsWrittenAndTheNextPassKnowsWhatWasSaid) {
  Say(GangReason::kCannotFit, 0);

  EXPECT_EQ(ReasonInCluster(), "");
  EXPECT_EQ(GangReasonIn(View().group->status), "CannotFit");
  EXPECT_EQ(writer_.TimeUntilOthersLoseStatus(), 15s);
}

TEST_F(GangStatusWriterTest, OnceOthersAreGoneAllOfItIsWrittenAlsoWhatWasSaidBefore) {
  Say(GangReason::kCannotFit, 1);
  DropLease();

  Say(GangReason::kCannotFit, 1);

  EXPECT_EQ(ReasonInCluster(), "CannotFit");
  EXPECT_EQ(Group()->status.scheduled, 1);
}

TEST_F(GangStatusWriterTest, WhatOthersWroteMeanwhileIsSetRight) {
  Say(GangReason::kCannotFit, 1);
  kube::WriteOptions options;
  options.subresource = "status";
  const Json theirs = *kube::ParseJson(R"({"status":{"phase":"Scheduled","running":7,"occupiedBy":"them"}})");
  ASSERT_TRUE(client_.Patch(KindOf<api::PodGroup>(), kKey, kube::PatchType::kMerge, theirs, options));
  DropLease();

  Say(GangReason::kCannotFit, 1);

  EXPECT_EQ(Group()->status.phase, kGangPending);
  EXPECT_EQ(Group()->status.running, 0);
  EXPECT_EQ(Group()->status.occupied_by, "");
}

// The members go right after it: nobody would write it later.
TEST_F(GangStatusWriterTest, WhenExtrasAreTriedAgainIsWrittenHoweverMuchElseThereIsToSay) {
  DropLease();
  const auto running = [&](int attempts) {
    const GangView view = View();
    api::PodGroupStatus status = BaseGangStatus(view);
    SetGangReason(status, view, kGangRunning, GangReason::kRunning, "runs");
    status.attempts = attempts;
    if (attempts > 0) status.next_attempt_time = kube::Time{view.now.value + attempts * 60s};
    return writer_.Write(view, status, {});
  };
  ASSERT_TRUE(running(0));
  Settle();
  for (int attempt = 1; attempt <= 12; ++attempt) {  // More than there are turns.
    const auto written = running(attempt);
    ASSERT_TRUE(written);
    EXPECT_FALSE(*written) << "deferred at " << attempt;
    Settle();
    EXPECT_EQ(Group()->status.attempts, attempt);
  }
}

TEST_F(GangStatusWriterTest, ALeaseThatIsNotRenewedKeepsNobodySilent) {
  clock_.Advance(15s);

  Say(GangReason::kCannotFit, 0);

  EXPECT_EQ(ReasonInCluster(), "CannotFit");
}

}  // namespace
}  // namespace grus
