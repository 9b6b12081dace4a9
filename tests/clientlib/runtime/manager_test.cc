// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>

#include "clientlib/base/wait.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"
#include "tests/clientlib/cache/map_answers.h"
#include "tests/clientlib/runtime/fake_lease_server.h"
#include "tests/kit/event.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kMapLine =
    R"({"type":"ADDED","object":{"kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"5"}}})"
    "\n";
constexpr const char* kInitialEnd =
    R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}})"
    "\n";

class FakeReconciler final : public Reconciler {
 public:
  std::function<void(std::stop_token)> pass = [](auto) {};
  std::atomic<int> passes = 0;
  Event called;

  Result<Action> Reconcile(const ObjectKey&, std::stop_token stop) override {
    ++passes;
    called.Set();
    pass(std::move(stop));
    return Action::AwaitChange();
  }
};

class ManagerTest : public ::testing::Test {
 protected:
  ManagerTest() : maps_(transport_.ExpectStream("/api/v1/configmaps?watch=1")) {}
  ~ManagerTest() override {
    stop_.request_stop();
    // A test that failed may have left somebody waiting for the clock.
    while (run_.valid() && run_.wait_for(100ms) != std::future_status::ready) clock_.Advance(1h);
  }

  // An informer of ConfigMaps, each of which is a key of a controller.
  void AddMaps() {
    Controller& controller = manager_.AddController(reconciler_, {.name = "maps", .threads = 1});
    manager_.AddInformer(KindOf<ConfigMap>()).AddHandler([&controller](const Change& change, bool is_initial) {
      controller.queue().Add(change.Any().metadata.Key(), is_initial ? Priority::kLow : Priority::kNormal);
    });
  }
  void Run(LeaderElector* elector = nullptr) {
    run_ = std::async(std::launch::async, [this, elector] { return manager_.Run(stop_.get_token(), elector); });
  }
  // What Run() returned, "ok" or a message; waits for that.
  std::string Returned() {
    if (run_.wait_for(20s) != std::future_status::ready) return "(still running)";
    const Status status = run_.get();
    return status ? "ok" : status.error().message();
  }

  FakeClock clock_;
  FakeTransport transport_{clock_};
  FakeStream maps_;
  Client client_{transport_, nullptr, clock_};
  Log log_{LogLevel::kOff};
  Registry registry_;
  FakeReconciler reconciler_, second_;
  Manager manager_{client_, clock_, log_, registry_};
  std::stop_source stop_;
  std::future<Status> run_;
};

TEST_F(ManagerTest, I5NoReconcileBeforeAllCachesAreSynced) {
  FakeStream nodes = transport_.ExpectStream("/api/v1/nodes?watch=1");
  AddMaps();
  manager_.AddInformer(KindOf<Node>());
  Run();
  maps_.Push(std::string(kMapLine) + kInitialEnd);
  ASSERT_TRUE(maps_.AwaitDrained());
  ASSERT_TRUE(clock_.AwaitWaiters(3));  // Both reflectors, and Run() itself.
  EXPECT_EQ(reconciler_.passes, 0);
  EXPECT_FALSE(manager_.IsReady());

  nodes.Push(kInitialEnd);

  ASSERT_TRUE(reconciler_.called.Wait());
  EXPECT_TRUE(manager_.IsReady());
  stop_.request_stop();
  EXPECT_EQ(Returned(), "ok");
  EXPECT_FALSE(manager_.IsReady());
}

TEST_F(ManagerTest, I5CachesThatDoNotSyncInTimeAreAnError) {
  AddMaps();
  Run();
  maps_.Push(kMapLine);
  ASSERT_TRUE(maps_.AwaitDrained());
  ASSERT_TRUE(clock_.AwaitWaiters(2));
  clock_.Advance(2min);
  EXPECT_THAT(Returned(), StartsWith("the cache of configmaps did not sync"));
  EXPECT_EQ(reconciler_.passes, 0);
}

TEST_F(ManagerTest, I5TheErrorSaysWhyACacheDidNotSync) {
  transport_.Expect("GET", "/api/v1/nodes", StatusAnswer(403, "Forbidden", "nodes is forbidden"));
  manager_.AddInformer(KindOf<Node>());
  Run();
  ASSERT_TRUE(transport_.AwaitRequests(1));
  ASSERT_TRUE(clock_.AwaitWaiters(2));
  transport_.Expect("GET", "/api/v1/nodes", StatusAnswer(403, "Forbidden", "nodes is forbidden"));
  clock_.Advance(2min);
  EXPECT_EQ(Returned(), "the cache of nodes did not sync: watch nodes: nodes is forbidden");
}

TEST_F(ManagerTest, E5AStopWhileCachesSyncIsNoErrorAndNoWorkBegins) {
  AddMaps();
  Run();
  maps_.Push(kMapLine);
  ASSERT_TRUE(maps_.AwaitDrained());
  stop_.request_stop();
  EXPECT_EQ(Returned(), "ok");
  EXPECT_EQ(reconciler_.passes, 0);
}

TEST_F(ManagerTest, E5APlannedStopLetsPassesEnd) {
  Event may_end;
  std::atomic<bool> was_told = false;
  reconciler_.pass = [&](std::stop_token stop) {
    EXPECT_TRUE(may_end.Wait());
    was_told = stop.stop_requested();
  };
  AddMaps();
  Run();
  maps_.Push(std::string(kMapLine) + kInitialEnd);
  ASSERT_TRUE(reconciler_.called.Wait());

  stop_.request_stop();
  ASSERT_TRUE(clock_.AwaitWaiters(2));
  EXPECT_EQ(run_.wait_for(0s), std::future_status::timeout);
  may_end.Set();

  EXPECT_EQ(Returned(), "ok");
  EXPECT_FALSE(was_told);
}

TEST_F(ManagerTest, E5PassesThatDoNotEndInTimeAreToldToStop) {
  reconciler_.pass = [&](std::stop_token stop) { WaitFor(clock_, 1h, stop); };
  AddMaps();
  Run();
  maps_.Push(std::string(kMapLine) + kInitialEnd);
  ASSERT_TRUE(reconciler_.called.Wait());
  stop_.request_stop();
  ASSERT_TRUE(clock_.AwaitWaiters(4));  // Pass, its deadline, drain, reflector.
  clock_.Advance(30s);
  EXPECT_EQ(Returned(), "ok");
}

// Without a lease no controller may go on while another one ends.
TEST_F(ManagerTest, E4AllControllersStopAtOnce) {
  Event second_told;
  reconciler_.pass = [&](std::stop_token stop) {
    WaitFor(clock_, 1h, stop);
    EXPECT_TRUE(second_told.Wait());
  };
  second_.pass = [&](std::stop_token stop) {
    WaitFor(clock_, 1h, stop);
    second_told.Set();
  };
  AddMaps();
  manager_.AddController(second_, {.name = "second", .threads = 1}).queue().Add({"ns", "a"});
  Run();
  maps_.Push(std::string(kMapLine) + kInitialEnd);
  ASSERT_TRUE(reconciler_.called.Wait());
  ASSERT_TRUE(second_.called.Wait());
  stop_.request_stop();
  ASSERT_TRUE(clock_.AwaitWaiters(7));  // Of each: pass, its deadline, drain; and the reflector.
  clock_.Advance(30s);
  EXPECT_EQ(Returned(), "ok");
}

TEST_F(ManagerTest, E4ADrainIsCutShortWhenTheLeaseIsLostMeanwhile) {
  FakeLeaseServer leases;
  std::atomic<FakeLeaseServer::Fault> fault = FakeLeaseServer::Fault::kNone;
  leases.Serve(transport_, fault);
  const auto elector = *LeaderElector::Create(client_, clock_, log_, {{"system", "grus"}, "me"});
  reconciler_.pass = [&](std::stop_token stop) { WaitFor(clock_, 1h, stop); };
  AddMaps();
  Run(elector.get());
  maps_.Push(std::string(kMapLine) + kInitialEnd);
  ASSERT_TRUE(reconciler_.called.Wait());
  stop_.request_stop();
  ASSERT_TRUE(clock_.AwaitWaiters(6));  // Pass, its deadline, drain, reflector; renewal and its deadline.

  leases.Change([](Json& lease) { lease["spec"]["holderIdentity"] = "usurper"; });
  clock_.Advance(2s);

  EXPECT_THAT(Returned(), HasSubstr("the lease is held by usurper"));
}

TEST_F(ManagerTest, E6QueuesAreFedBeforeTheWorkBegins) {
  Controller& controller = manager_.AddController(reconciler_, {.name = "maps"});
  manager_.AddInformer(KindOf<ConfigMap>()).AddHandler([&controller](const Change& change, bool) {
    controller.queue().Add(change.Any().metadata.Key());
  });
  manager_.AddInformer(KindOf<Node>());  // Does not sync.
  Run();
  maps_.Push(std::string(kMapLine) + kInitialEnd);
  ASSERT_TRUE(maps_.AwaitDrained());
  EXPECT_EQ(controller.queue().counts().depth, 1u);
  EXPECT_EQ(reconciler_.passes, 0);
}

TEST_F(ManagerTest, ItEndsWithoutHavingRun) { AddMaps(); }

TEST_F(ManagerTest, L15WhatCannotBeReadIsCounted) {
  AddMaps();
  Run();
  maps_.Push(EventLine("ADDED", Unreadable("a", "5")) + kInitialEnd);
  ASSERT_TRUE(maps_.AwaitDrained());
  EXPECT_THAT(registry_.Text(), HasSubstr("reflector_skipped_total{group=\"\",kind=\"ConfigMap\"} 1\n"));
}

}  // namespace
}  // namespace kube::testing
