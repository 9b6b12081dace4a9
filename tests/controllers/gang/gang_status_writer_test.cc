// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_status_writer.h"

#include <gtest/gtest.h>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"
#include "controllers/gang/gang_status.h"
#include "crds/types/all_crds.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;

constexpr char kGroups[] = "podgroups.scheduling.x-k8s.io", kLeases[] = "leases.coordination.k8s.io";
const kube::ObjectKey kKey{"default", "gang"};

// Beside an API server in this process, with a lease of scheduler-plugins' controllers that is held at first.
class GangStatusWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const kube::CrdInfo& info : api::AllCrds()) {
      ASSERT_TRUE(server_.Create("customresourcedefinitions.apiextensions.k8s.io", kube::MakeCrd(info), "test"));
    }
    Create(kGroups, R"({"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup",
                        "metadata":{"namespace":"default","name":"gang"},"spec":{"minMember":2}})");
    Create(kLeases, R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease",
                        "metadata":{"namespace":"kube-system","name":"sched-plugins-controllers"},
                        "spec":{"holderIdentity":"plugins","leaseDurationSeconds":15}})");
    groups_.Start();
    ASSERT_TRUE(groups_.WaitForSync(clock_.Now() + 1h));
    ASSERT_TRUE(plugins_.Start({}));
    Settle();
  }
  void TearDown() override {
    plugins_.Stop();
    groups_.Stop();
    groups_.Join();
  }
  void Create(const char* resource, std::string_view text) {
    const auto made = server_.Create(resource, *kube::ParseJson(text), "test");
    ASSERT_TRUE(made) << made.error().message();
  }
  // Both watches have nothing more to tell, nor has the recorder of events.
  void Settle() { ASSERT_TRUE(clock_.AwaitWaiters(3)); }

  std::shared_ptr<const api::PodGroup> Group() const { return groups_.Get<api::PodGroup>(kKey); }
  GangView View() {
    GangView view;
    view.group = writer_.WithWhatWasSaid(Group());
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
    const auto* ready = kube::FindCondition(Group()->status.conditions, "Ready");
    return Group()->status.observed_generation == 0 || !ready ? "" : ready->reason;
  }
  void DropLease() {
    ASSERT_TRUE(client_.Delete(KindOf<kube::Lease>(), {"kube-system", kSchedulerPluginsLease}));
    Settle();
  }

  kube::testing::FakeClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  kube::Log log_{kube::LogLevel::kOff};
  kube::Client client_{server_, nullptr, clock_};
  kube::EventRecorder events_{client_, clock_, log_, {"test", "test"}};
  kube::Informer groups_{client_, KindOf<api::PodGroup>(), {}, clock_, log_};
  LeaseWatch plugins_{client_, "", kSchedulerPluginsLease, clock_, log_};
  kube::WriteTracker writes_;
  GangStatusWriter writer_{client_, KindOf<api::PodGroup>(), groups_, &plugins_, writes_, events_, clock_, log_};
};

TEST_F(GangStatusWriterTest, WhileOthersLeadNothingIsWrittenAndTheNextPassKnowsWhatWasSaid) {
  Say(GangReason::kCannotFit, 0);

  EXPECT_EQ(ReasonInCluster(), "");
  EXPECT_EQ(GangReasonBefore(View()), "CannotFit");
  EXPECT_EQ(writer_.IsOthersFor(), 15s);
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

TEST_F(GangStatusWriterTest, ALeaseThatIsNotRenewedKeepsNobodySilent) {
  clock_.Advance(15s);

  Say(GangReason::kCannotFit, 0);

  EXPECT_EQ(ReasonInCluster(), "CannotFit");
}

}  // namespace
}  // namespace grus
