// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/lease_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;

class LeaseWatchTest : public testing::ReconcilerFixture {
 protected:
  static constexpr char kNamespace[] = "kube-system";

  void SetUp() override {
    ReconcilerFixture::SetUp();
    Create("namespaces", Named("v1", "Namespace", "elsewhere"));
    Create("namespaces", Named("v1", "Namespace", "of-schedulers"));
    waiters_ += 2;  // The watches.
    watch_.OnChange([this] { ++changes_; });
  }
  // Ends the watch before what it tells.
  void TearDown() override {
    watch_.Stop();
    ReconcilerFixture::TearDown();
  }

  void Start() {
    const kube::Result<bool> found = watch_.Start({});
    ASSERT_TRUE(found) << found.error().message();
    has_found_ = *found;
    Settle();
  }

  static Json Spec(const std::string& holder, int renewals) {
    Json spec = Json::MakeObject({{"leaseDurationSeconds", 15}});
    spec["holderIdentity"] = holder;
    spec["leaseTransitions"] = renewals;  // Any field: what counts is that the record changes.
    return spec;
  }
  void AddLease(const std::string& name, const std::string& holder, const std::string& ns = kNamespace) {
    Json lease = Named("coordination.k8s.io/v1", "Lease", name, ns);
    lease["spec"] = Spec(holder, renewals_++);
    Create("leases.coordination.k8s.io", std::move(lease));
  }
  void Renew(const std::string& holder) {
    Json patch = Json::MakeObject({{"spec", Spec(holder, renewals_++)}});
    ASSERT_TRUE(client_.Patch(KindOf<kube::Lease>(), {kNamespace, "them"}, kube::PatchType::kMerge, patch));
    Settle();
  }

  LeaseWatch watch_{client_, {kNamespace, "of-schedulers"}, "them", clock_, log_};
  std::atomic<int> changes_{0};
  bool has_found_ = false;
  int renewals_ = 1;
};

TEST_F(LeaseWatchTest, KnowsWhoHoldsTheLeaseOnceItHasStarted) {
  AddLease("them", "a");

  Start();

  EXPECT_TRUE(has_found_);
  EXPECT_EQ(watch_.holder(), "a");
  EXPECT_EQ(watch_.held_until(), clock_.Now() + 15s);
}

TEST_F(LeaseWatchTest, LeasesOfOtherNamesAreNotSeen) {
  AddLease("node-1", "a");

  Start();

  EXPECT_FALSE(has_found_);
  EXPECT_EQ(watch_.holder(), "");
  EXPECT_EQ(watch_.held_until(), std::nullopt);
}

TEST_F(LeaseWatchTest, ALeaseCountsInEachOfTheNamedNamespaces) {
  AddLease("them", "a", "of-schedulers");

  Start();

  EXPECT_TRUE(has_found_);
  EXPECT_EQ(watch_.holder(), "a");
}

// Whoever may create leases in a namespace of his own would silence gangs in the whole cluster.
TEST_F(LeaseWatchTest, ALeaseInAnotherNamespaceIsNotSeen) {
  AddLease("them", "tenant", "elsewhere");

  Start();

  EXPECT_FALSE(has_found_);
  EXPECT_EQ(watch_.holder(), "");
  EXPECT_EQ(watch_.held_until(), std::nullopt);
}

TEST_F(LeaseWatchTest, OfTwoLeasesTheOneThatExpiresLastTellsWhoHolds) {
  AddLease("them", "old", "of-schedulers");
  Start();
  clock_.Advance(1s);
  AddLease("them", "new");
  Settle();
  EXPECT_EQ(watch_.holder(), "new");
}

TEST_F(LeaseWatchTest, NoLeaseIsHeldForLongerThanAMinuteWithoutARenewal) {
  Json lease = Named("coordination.k8s.io/v1", "Lease", "them", kNamespace);
  lease["spec"] =
      Json::MakeObject({{"holderIdentity", "a"}, {"leaseDurationSeconds", std::numeric_limits<std::int32_t>::max()}});
  Create("leases.coordination.k8s.io", std::move(lease));
  Start();

  EXPECT_EQ(watch_.held_until(), clock_.Now() + 60s);
  clock_.Advance(60s);
  EXPECT_EQ(watch_.held_until(), std::nullopt);
}

TEST_F(LeaseWatchTest, ItIsAChangeWhenAnotherOneHoldsItAndNotWhenItIsRenewed) {
  AddLease("them", "a");
  Start();
  const int before = changes_;

  Renew("a");
  EXPECT_EQ(changes_, before);
  Renew("b");

  EXPECT_EQ(changes_, before + 1);
  EXPECT_EQ(watch_.holder(), "b");
}

TEST_F(LeaseWatchTest, AHoldThatIsNotRenewedEndsAfterItsDurationOnOurClock) {
  AddLease("them", "a");
  Start();

  clock_.Advance(10s);
  Renew("a");
  clock_.Advance(14s);
  EXPECT_TRUE(watch_.held_until().has_value());
  clock_.Advance(1s);

  EXPECT_EQ(watch_.held_until(), std::nullopt);
  EXPECT_EQ(watch_.holder(), "a") << "who held it last";
}

TEST_F(LeaseWatchTest, ALeaseThatIsGivenBackOrDeletedIsHeldByNobody) {
  AddLease("them", "a");
  Start();
  Renew("");
  EXPECT_EQ(watch_.held_until(), std::nullopt);
  Renew("a");
  EXPECT_TRUE(watch_.held_until().has_value());
  const int before = changes_;

  ASSERT_TRUE(client_.Delete(KindOf<kube::Lease>(), {kNamespace, "them"}));
  Settle();

  EXPECT_EQ(watch_.held_until(), std::nullopt);
  EXPECT_EQ(changes_, before + 1);
}

TEST(LeaseWatch, ALeaseThatIsHiddenFromUsIsAskedForOnce) {
  kube::testing::FakeClock clock;
  kube::testing::FakeTransport transport(clock);
  transport.Handle("GET", "/apis/coordination.k8s.io/v1/", [](const kube::HttpRequest&, const std::stop_token&) {
    return kube::testing::StatusAnswer(403, "Forbidden", "leases are hidden");
  });
  kube::Client client(transport, nullptr, clock);
  const kube::Log log(kube::LogLevel::kOff);
  LeaseWatch watch(client, {"kube-system", "elsewhere"}, "them", clock, log);

  const kube::Result<bool> started = watch.Start({});

  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), kube::ErrorCode::kForbidden);
  EXPECT_EQ(transport.requests().size(), 1U);
  EXPECT_EQ(watch.holder(), "");
}

}  // namespace
}  // namespace grus
