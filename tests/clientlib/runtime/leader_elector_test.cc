// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/leader_elector.h"

#include <gmock/gmock.h>

#include <thread>

#include "clientlib/testing/fake_clock.h"
#include "tests/clientlib/runtime/fake_lease_server.h"
#include "tests/kit/event.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::Event;
using testing::FakeClock;
using testing::FakeLeaseServer;
using testing::FakeTransport;
using ::testing::HasSubstr;
using Fault = FakeLeaseServer::Fault;

// The longest wait of a follower between two looks at the lease: 2 s and its jitter.
constexpr Duration kLongestLook = 1700ms;

// A process that runs for leader. Its work lasts until its token stops, or until the test lets it end.
class Candidate {
 public:
  Candidate(std::string name, FakeLeaseServer& server, const FakeClock& clock, std::function<void()> work_tail = {})
      : transport_(clock), client_(transport_, nullptr, clock, {.timeout = 4s}), work_tail_(std::move(work_tail)) {
    server.Serve(transport_, fault_);
    elector_ = *LeaderElector::Create(client_, clock, log_, {{"system", "grus"}, std::move(name)});
  }
  ~Candidate() {
    if (thread_.joinable()) (void)Stop();
  }

  void Start() {
    thread_ = std::thread([this] {
      outcome_ = elector_->Run(stop_.get_token(), [this](std::stop_token stop, std::stop_token lost) {
        Event stopped;
        std::stop_callback on_stop(stop, [&] { stopped.Set(); });
        std::stop_callback on_lost(lost, [this] { lost_.Set(); });
        led_.Set();
        while (!stopped.Wait()) {
        }
        work_stopped_.Set();
        if (work_tail_) work_tail_();
      });
      ended_.Set();
    });
  }
  void RequestStop() { stop_.request_stop(); }
  Status Stop() {
    RequestStop();
    return Join();
  }
  Status Join() {
    EXPECT_TRUE(ended_.Wait()) << "Run() does not return";
    thread_.join();
    return outcome_;
  }

  [[nodiscard]] bool AwaitLead() { return led_.Wait(); }
  [[nodiscard]] bool AwaitWorkStopped() { return work_stopped_.Wait(); }
  [[nodiscard]] bool AwaitLost() { return lost_.Wait(); }
  bool IsLeader() const { return elector_->IsLeader(); }
  LeaderElector& elector() { return *elector_; }
  FakeTransport& transport() { return transport_; }
  void Set(Fault fault) { fault_ = fault; }

 private:
  Log log_{LogLevel::kOff};
  std::atomic<Fault> fault_{Fault::kNone};
  FakeTransport transport_;
  Client client_;
  std::function<void()> work_tail_;
  std::unique_ptr<LeaderElector> elector_;
  std::stop_source stop_;
  Event led_, work_stopped_, lost_, ended_;
  Status outcome_;
  std::thread thread_;
};

class LeaderElectorTest : public ::testing::Test {
 protected:
  // In steps, so that each thread acts at its own time. A leader has two threads that wait on the clock, a
  // follower one.
  [[nodiscard]] bool Pass(Duration time, int waiters) {
    for (; time > Duration::zero(); time -= 100ms) {
      clock_.Advance(std::min<Duration>(time, 100ms));
      if (!clock_.AwaitWaiters(waiters)) return false;
    }
    return true;
  }
  // And waits for its next renewal: from here on it keeps time with the test.
  [[nodiscard]] bool StartsLeading(Candidate& candidate) {
    candidate.Start();
    return candidate.AwaitLead() && clock_.AwaitWaiters(2);
  }
  // How long it takes until `candidate`, a follower and the only one that waits, leads.
  Duration TimeUntilLead(Candidate& candidate, Duration limit = 60s) {
    const TimePoint start = clock_.Now();
    while (!candidate.IsLeader() && clock_.Now() - start < limit) {
      clock_.Advance(100ms);
      EXPECT_TRUE(clock_.AwaitWaiters(1));
    }
    return clock_.Now() - start;
  }

  FakeClock clock_;
  FakeLeaseServer server_;
};

TEST_F(LeaderElectorTest, E1RefusesTimesThatCannotKeepALease) {
  struct Case {
    Duration lease, renew, retry;
    bool want;
  };
  FakeTransport transport(clock_);
  Client client(transport, nullptr, clock_);
  Log log(LogLevel::kOff);
  for (const Case& c : {Case{15s, 10s, 2s, true}, Case{10s, 10s, 2s, false}, Case{9s, 10s, 2s, false},
                        Case{15s, 2400ms, 2s, false}, Case{15s, 2401ms, 2s, true}, Case{15s, 10s, 0s, false}}) {
    const auto elector = LeaderElector::Create(client, clock_, log, {{"ns", "l"}, "me", c.lease, c.renew, c.retry});
    EXPECT_EQ(elector.ok(), c.want) << c.lease.count() << " " << c.renew.count() << " " << c.retry.count();
    if (elector) continue;
    EXPECT_EQ(elector.error().code(), ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(LeaderElector::Create(client, clock_, log, {{"ns", "l"}, ""}));
  EXPECT_FALSE(LeaderElector::Create(client, clock_, log, {{"ns", ""}, "me"}));
}

TEST_F(LeaderElectorTest, E2TheFirstCandidateCreatesTheLeaseAndLeads) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));

  EXPECT_TRUE(a.IsLeader());
  EXPECT_EQ(a.elector().Holder(), "a");
  EXPECT_EQ(server_.Holder(), "a");
  EXPECT_EQ(server_.Transitions(), 0);
  EXPECT_EQ(*server_.lease().At({"spec", "leaseDurationSeconds"}), Json(15));
  EXPECT_EQ(server_.Text("acquireTime"), "2026-01-02T03:04:05.000000Z");
  EXPECT_EQ(server_.Text("renewTime"), "2026-01-02T03:04:05.000000Z");
}

TEST_F(LeaderElectorTest, E2OfTwoOnlyOneLeadsForAsLongAsItRenews) {
  Candidate a("a", server_, clock_), b("b", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  b.Start();

  ASSERT_TRUE(Pass(60s, 3));

  EXPECT_TRUE(a.IsLeader());
  EXPECT_FALSE(b.IsLeader());
  EXPECT_EQ(b.elector().Holder(), "a");
  EXPECT_EQ(server_.Transitions(), 0);
  EXPECT_EQ(server_.Text("acquireTime"), "2026-01-02T03:04:05.000000Z");
  EXPECT_EQ(server_.Text("renewTime"), "2026-01-02T03:05:05.000000Z");
}

TEST_F(LeaderElectorTest, E2ARenewalIsOneRequest) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  const std::size_t before = a.transport().requests().size();

  ASSERT_TRUE(Pass(10s, 2));

  const std::vector<HttpRequest> requests = a.transport().requests();
  ASSERT_EQ(requests.size(), before + 5);
  for (std::size_t i = before; i < requests.size(); ++i) EXPECT_EQ(requests[i].method, "PATCH");
}

TEST_F(LeaderElectorTest, E2RenewalsGoOnAfterSomebodyElseChangedTheLease) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  server_.Change([](Json& lease) { lease["metadata"]["labels"] = Json::MakeObject({{"x", "y"}}); });

  ASSERT_TRUE(Pass(30s, 2));

  EXPECT_TRUE(a.IsLeader());
  EXPECT_EQ(server_.Transitions(), 0);
  EXPECT_EQ(*server_.lease().At({"metadata", "labels", "x"}), Json("y"));
}

TEST_F(LeaderElectorTest, E2RenewalsGoOnAfterTheLeaseWasDeleted) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  server_.Change([](Json& lease) { lease = {}; });

  ASSERT_TRUE(Pass(30s, 2));

  EXPECT_TRUE(a.IsLeader());
  EXPECT_EQ(server_.Holder(), "a");
}

// The holder's times are nonsense, and its clock may be anywhere: only that the record changes counts.
TEST_F(LeaderElectorTest, E1TakesOverAfterObservedSilenceWhateverTheTimesInTheRecord) {
  for (const char* renew_time : {"1970-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"}) {
    FakeLeaseServer server;
    const auto renew = [&](int i) {
      server.Change([&](Json& lease) {
        lease = *ParseJson(R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"grus",
            "namespace":"system"},"spec":{"holderIdentity":"other","leaseDurationSeconds":15,
            "leaseTransitions":4}})");
        lease["spec"]["renewTime"] = renew_time;
        lease["spec"]["acquireTime"] = "2026-01-01T00:00:0" + std::to_string(i) + ".000000Z";
      });
    };
    renew(0);
    Candidate b("b", server, clock_);
    b.Start();
    for (int i = 1; i < 6; ++i) {
      ASSERT_TRUE(Pass(10s, 1));
      renew(i);
    }
    EXPECT_FALSE(b.IsLeader());

    const Duration took = TimeUntilLead(b);

    EXPECT_GE(took, 15s);
    EXPECT_LE(took, 15s + kLongestLook + 100ms);  // Seen late, but taken at once.
    EXPECT_EQ(server.Holder(), "b");
    EXPECT_EQ(server.Transitions(), 5);
  }
}

TEST_F(LeaderElectorTest, E1AChangeOfLabelsIsNoSignOfLife) {
  Candidate b("b", server_, clock_);
  server_.Change([](Json& lease) {
    lease = *ParseJson(R"({"metadata":{"name":"grus","namespace":"system"},
        "spec":{"holderIdentity":"other","leaseDurationSeconds":15}})");
  });
  b.Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  for (int i = 0; i < 14; ++i) {
    ASSERT_TRUE(Pass(1s, 1));
    server_.Change([&](Json& lease) { lease["metadata"]["labels"] = Json::MakeObject({{"n", std::to_string(i)}}); });
  }
  EXPECT_LE(TimeUntilLead(b), 1s + kLongestLook + 100ms);
}

TEST_F(LeaderElectorTest, E1WaitsForAsLongAsTheHolderPromisedToLast) {
  server_.Change([](Json& lease) {
    lease = *ParseJson(R"({"metadata":{"name":"grus","namespace":"system"},
        "spec":{"holderIdentity":"other","leaseDurationSeconds":40}})");
  });
  Candidate b("b", server_, clock_);
  b.Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  const Duration took = TimeUntilLead(b);
  EXPECT_GE(took, 40s);
  EXPECT_LE(took, 40s + kLongestLook + 100ms);
}

TEST_F(LeaderElectorTest, E1LeadershipThatCannotBeRenewedIsLostAtTheDeadline) {
  for (const Fault fault : {Fault::kUnreachable, Fault::kHang}) {
    FakeLeaseServer server;
    Candidate a("a", server, clock_);
    ASSERT_TRUE(StartsLeading(a));
    ASSERT_TRUE(Pass(4s, 2));  // The last renewal.
    a.Set(fault);

    ASSERT_TRUE(Pass(9900ms, 2));
    EXPECT_TRUE(a.IsLeader());
    clock_.Advance(100ms);

    EXPECT_FALSE(a.IsLeader());
    EXPECT_TRUE(a.AwaitWorkStopped());
    const Status outcome = a.Join();
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().message(), HasSubstr("leadership lost: the lease was not renewed for 10 s"));
  }
}

TEST_F(LeaderElectorTest, E3OneHungRequestDoesNotLoseTheLease) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  for (const Fault fault : {Fault::kHang, Fault::kLosesAnswers}) {
    a.Set(fault);
    ASSERT_TRUE(Pass(3s, 2));  // It hangs for one second.
    a.Set(Fault::kNone);
    ASSERT_TRUE(Pass(30s, 2));
    EXPECT_TRUE(a.IsLeader());
  }
  EXPECT_EQ(server_.Transitions(), 0);
}

TEST_F(LeaderElectorTest, E3AfterATryThatHungTheNextComesAtOnce) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  a.Set(Fault::kHang);
  ASSERT_TRUE(Pass(3s, 2));  // The renewal of the second 2 hangs until the second 6.

  a.Set(Fault::kNone);
  ASSERT_TRUE(Pass(4200ms, 2));
  a.Set(Fault::kHang);
  ASSERT_TRUE(Pass(8700ms, 2));

  EXPECT_TRUE(a.IsLeader());  // In the second 15.9, of what was renewed in the second 6.
  a.Set(Fault::kNone);
}

TEST_F(LeaderElectorTest, E3AfterATryThatFailedAtOnceTheNextComesSoon) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  ASSERT_TRUE(Pass(4s, 2));  // The last renewal.
  a.Set(Fault::kUnreachable);
  ASSERT_TRUE(Pass(9300ms, 2));

  a.Set(Fault::kNone);
  ASSERT_TRUE(Pass(800ms, 2));
  EXPECT_TRUE(a.IsLeader());  // In the second 14, of what was renewed in the second 13.5.
}

TEST_F(LeaderElectorTest, E4ALeaderThatSeesAnotherHolderIsLostAtOnce) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  server_.Change([](Json& lease) { lease["spec"]["holderIdentity"] = "usurper"; });

  clock_.Advance(2s);

  EXPECT_TRUE(a.AwaitWorkStopped());
  const Status outcome = a.Join();
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().message(), HasSubstr("usurper"));
  EXPECT_EQ(server_.Holder(), "usurper");  // Not given back: it is not ours.
}

TEST_F(LeaderElectorTest, E4APartitionedLeaderHasStoppedBeforeAnotherLeads) {
  Candidate a("a", server_, clock_), b("b", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  b.Start();
  ASSERT_TRUE(Pass(10s, 3));
  a.Set(Fault::kUnreachable);

  const TimePoint start = clock_.Now();
  while (!b.IsLeader() && clock_.Now() - start < 60s) {
    ASSERT_TRUE(Pass(100ms, 1));
    ASSERT_FALSE(a.IsLeader() && b.IsLeader());
  }

  EXPECT_TRUE(b.IsLeader());
  EXPECT_FALSE(a.Join());
  EXPECT_EQ(server_.Transitions(), 1);
}

TEST_F(LeaderElectorTest, E5APlannedStopGivesTheLeaseBackSoThatTheOtherLeadsAtItsNextLook) {
  Candidate a("a", server_, clock_), b("b", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  b.Start();
  ASSERT_TRUE(Pass(10s, 3));

  EXPECT_TRUE(a.Stop());

  EXPECT_FALSE(a.IsLeader());
  EXPECT_EQ(server_.Holder(), "");
  EXPECT_EQ(*server_.lease().At({"spec", "leaseDurationSeconds"}), Json(1));
  EXPECT_LE(TimeUntilLead(b), kLongestLook + 100ms);
  EXPECT_EQ(server_.Transitions(), 1);
  EXPECT_EQ(*server_.lease().At({"spec", "leaseDurationSeconds"}), Json(15));
}

TEST_F(LeaderElectorTest, E5TheLeaseIsKeptUntilTheWorkHasDrained) {
  Event may_end;
  Candidate a("a", server_, clock_, [&] { EXPECT_TRUE(may_end.Wait()); });
  ASSERT_TRUE(StartsLeading(a));
  a.RequestStop();
  ASSERT_TRUE(a.AwaitWorkStopped());

  ASSERT_TRUE(Pass(30s, 2));
  EXPECT_TRUE(a.IsLeader());
  EXPECT_EQ(server_.Text("renewTime"), "2026-01-02T03:04:35.000000Z");
  may_end.Set();

  EXPECT_TRUE(a.Join());
  EXPECT_EQ(server_.Holder(), "");
}

TEST_F(LeaderElectorTest, E4WorkThatStillDrainsIsToldThatTheLeaseIsLost) {
  Event may_end;
  Candidate a("a", server_, clock_, [&] { EXPECT_TRUE(may_end.Wait()); });
  ASSERT_TRUE(StartsLeading(a));
  a.RequestStop();
  ASSERT_TRUE(a.AwaitWorkStopped());

  server_.Change([](Json& lease) { lease["spec"]["holderIdentity"] = "usurper"; });
  clock_.Advance(2s);
  EXPECT_TRUE(a.AwaitLost());
  may_end.Set();

  EXPECT_FALSE(a.Join());
  EXPECT_EQ(server_.Holder(), "usurper");
}

TEST_F(LeaderElectorTest, E5GivingBackIsTriedAgainOnConflict) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  server_.ConflictNext(3);
  EXPECT_TRUE(a.Stop());
  EXPECT_EQ(server_.Holder(), "");
}

TEST_F(LeaderElectorTest, E5AStopWhileARenewalHangsStillGivesTheLeaseBack) {
  Candidate a("a", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  const std::size_t before = a.transport().requests().size();
  a.Set(Fault::kLosesAnswers);
  clock_.Advance(2s);
  ASSERT_TRUE(a.transport().AwaitRequests(before + 1));
  ASSERT_TRUE(clock_.AwaitWaiters(2));

  a.Set(Fault::kNone);
  EXPECT_TRUE(a.Stop());
  EXPECT_EQ(server_.Holder(), "");
}

TEST_F(LeaderElectorTest, E5AStopBeforeLeadershipNeverAcquires) {
  Candidate before_start("a", server_, clock_);
  before_start.RequestStop();
  before_start.Start();
  EXPECT_TRUE(before_start.Join());
  EXPECT_TRUE(server_.lease().is_null());

  Candidate a("a", server_, clock_), b("b", server_, clock_);
  ASSERT_TRUE(StartsLeading(a));
  b.Start();
  ASSERT_TRUE(Pass(10s, 3));
  EXPECT_TRUE(b.Stop());
  EXPECT_TRUE(a.Stop());
  EXPECT_EQ(server_.Holder(), "");
  EXPECT_EQ(server_.Transitions(), 0);
}

TEST_F(LeaderElectorTest, E5AStopWhileTheLeaseIsBeingAcquiredGivesItBack) {
  Candidate a("a", server_, clock_);
  server_.Change([](Json& lease) { lease = *ParseJson(R"({"metadata":{"name":"grus","namespace":"system"}})"); });
  a.transport().Expect("GET", FakeLeaseServer::kPath, testing::JsonAnswer(200, ToText(server_.lease())));
  a.Set(Fault::kLosesAnswers);  // Of the write.
  a.Start();
  ASSERT_TRUE(a.transport().AwaitRequests(2));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(server_.Holder(), "a");

  a.Set(Fault::kNone);
  EXPECT_TRUE(a.Stop());

  EXPECT_EQ(server_.Holder(), "");
}

TEST_F(LeaderElectorTest, ACandidateWaitsForAServerThatCannotBeReached) {
  Candidate a("a", server_, clock_);
  a.Set(Fault::kUnreachable);
  a.Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  ASSERT_TRUE(Pass(60s, 1));
  EXPECT_FALSE(a.IsLeader());

  a.Set(Fault::kNone);
  EXPECT_LE(TimeUntilLead(a), kLongestLook + 100ms);
}

TEST_F(LeaderElectorTest, E7WorkThatOutlivesItsLeaseIsUnhealthy) {
  Event may_end;
  Candidate a("a", server_, clock_, [&] { EXPECT_TRUE(may_end.Wait()); });
  EXPECT_TRUE(a.elector().CheckHealth(20s));  // A follower is healthy.
  ASSERT_TRUE(StartsLeading(a));
  ASSERT_TRUE(Pass(20s, 2));
  EXPECT_TRUE(a.elector().CheckHealth(20s));
  a.Set(Fault::kUnreachable);

  ASSERT_TRUE(Pass(9900ms, 2));
  clock_.Advance(100ms);
  ASSERT_TRUE(a.AwaitWorkStopped());
  clock_.Advance(25s);
  EXPECT_TRUE(a.elector().CheckHealth(20s));
  clock_.Advance(1s);
  EXPECT_FALSE(a.elector().CheckHealth(20s));

  may_end.Set();
  EXPECT_FALSE(a.Join());
  EXPECT_TRUE(a.elector().CheckHealth(20s));
}

TEST_F(LeaderElectorTest, WorkThatThrowsIsAnErrorAndTheLeaseIsGivenBack) {
  Candidate a("a", server_, clock_, [] { throw std::runtime_error("a bug"); });
  ASSERT_TRUE(StartsLeading(a));
  const Status outcome = a.Stop();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message(), "exception in the leader's work: a bug");
  EXPECT_EQ(server_.Holder(), "");
}

}  // namespace
}  // namespace kube
