// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/nomination_probe.h"

#include <gtest/gtest.h>

#include "clientlib/model/core_v1.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/simulation/simulation.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;

constexpr char kNamespace[] = "default", kGuest[] = "grus-nomination-probe-guest";
constexpr char kRefused[] = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.";

TEST(JudgeProbe, GoesByWhatTheSchedulerMakesOfTheGuest) {
  struct Case {
    const char* what;
    std::string node, reason, message;
    std::optional<Honoured> want;
  };
  const Case kCases[] = {
      {"not looked at yet", "", "", "", std::nullopt},
      {"refused because of the pod that holds the node", "", "Unschedulable", kRefused, Honoured::kYes},
      {"refused for another reason", "", "Unschedulable", "0/1 nodes: 1 Too many pods.", Honoured::kUnknown},
      {"bound beside it", "node-0", "", "", Honoured::kNo},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    kube::Pod guest;
    guest.spec.node_name = c.node;
    if (!c.reason.empty()) {
      kube::CoreCondition scheduled;
      scheduled.type = "PodScheduled";
      scheduled.status = "False";
      scheduled.reason = c.reason;
      scheduled.message = c.message;
      guest.status.conditions.push_back(scheduled);
    }
    const auto verdict = JudgeProbe(guest);
    EXPECT_EQ(verdict ? std::optional(verdict->honoured) : std::nullopt, c.want);
  }
}

// In virtual time; the test plays the scheduler.
class NominationProbeTest : public ::testing::Test {
 protected:
  using Answer = std::function<void(NominationProbeTest&)>;

  void SetUp() override {
    server_.AddObserver([this](const kube::testing::ServerChange& change) {
      const bool is_guest = change.resource == "pods" && !change.before && change.after &&
                            *change.after->At({"metadata", "name"})->AsString() == kGuest;
      if (is_guest && scheduler_) simulation_.After(100ms, [this] { scheduler_(*this); });
    });
  }
  void Create(const char* resource, std::string_view text) {
    const auto made = server_.Create(resource, *kube::ParseJson(text));
    ASSERT_TRUE(made) << made.error().message();
  }
  void AddNode(std::string_view spec = "{}") {
    Create("nodes", R"({"apiVersion":"v1","kind":"Node",
                        "metadata":{"name":"node-0","labels":{"kubernetes.io/hostname":"node-0"}},
                        "spec":)" +
                        std::string(spec) + R"(,
                        "status":{"conditions":[{"type":"Ready","status":"True"}]}})");
  }
  // One pass of the probe: what it told.
  std::vector<Honoured> Probe() {
    bool has_ended = false;
    kube::Thread thread = simulation_.Spawn([&](std::stop_token stop) {
      nodes_.Start();
      nodes_.WaitForSync(simulation_.Now() + 1min);
      (void)probe_.Reconcile({kNamespace, "any"}, stop);
      nodes_.Stop();
      nodes_.Join();
      has_ended = true;
    });
    EXPECT_TRUE(simulation_.RunUntil([&] { return has_ended; }, simulation_.Now() + 10min));
    simulation_.RunFor(1s);
    return told_;
  }
  static void Refuse(NominationProbeTest& test) {
    Json guest = *test.server_.Get("pods", {kNamespace, kGuest});
    Json condition = *kube::ParseJson(R"({"type":"PodScheduled","status":"False","reason":"Unschedulable"})");
    condition["message"] = kRefused;
    guest["status"]["conditions"] = Json::MakeArray({std::move(condition)});
    (void)test.server_.Update("pods", std::move(guest), "status");
  }
  static void Bind(NominationProbeTest& test) { (void)test.server_.Bind({kNamespace, kGuest}, "node-0"); }

  kube::testing::Simulation simulation_{1};
  kube::testing::FakeApiServer server_{simulation_};
  kube::Log log_{kube::LogLevel::kOff};
  kube::Client client_{server_, nullptr, simulation_};
  kube::Informer nodes_{client_, KindOf<kube::Node>(), {}, simulation_, log_};
  Answer scheduler_;
  std::vector<Honoured> told_;
  NominationProbe probe_{client_, kNamespace, nodes_,
                         [this](const ProbeVerdict& verdict) { told_.push_back(verdict.honoured); }, simulation_};
};

TEST_F(NominationProbeTest, AGuestThatIsRefusedShowsThatTheNodeIsHeld) {
  AddNode();
  scheduler_ = Refuse;
  EXPECT_EQ(Probe(), std::vector{Honoured::kYes});
}

TEST_F(NominationProbeTest, AGuestThatIsBoundShowsThatItIsNot) {
  AddNode();
  scheduler_ = Bind;
  EXPECT_EQ(Probe(), std::vector{Honoured::kNo});
}

// As of one that lists all pods anew: the guest comes before the pod that holds the node.
TEST_F(NominationProbeTest, OneGuestThatIsBoundShowsNothingYet) {
  AddNode();
  scheduler_ = [guests = 0](NominationProbeTest& test) mutable { ++guests == 1 ? Bind(test) : Refuse(test); };
  EXPECT_EQ(Probe(), std::vector{Honoured::kYes});
  EXPECT_TRUE(server_.List("pods", kNamespace).empty());
}

TEST_F(NominationProbeTest, ASchedulerThatDoesNotDecideShowsNothing) {
  AddNode();
  EXPECT_EQ(Probe(), std::vector{Honoured::kUnknown});
}

TEST_F(NominationProbeTest, WithoutANodeThatTakesPodsNothingIsCreated) {
  AddNode(R"({"unschedulable":true})");
  EXPECT_EQ(Probe(), std::vector{Honoured::kUnknown});
  EXPECT_TRUE(server_.List("pods", kNamespace).empty());
}

TEST_F(NominationProbeTest, NothingOfItStays) {
  AddNode();
  scheduler_ = Refuse;
  Probe();
  EXPECT_TRUE(server_.List("pods", kNamespace).empty());
}

TEST_F(NominationProbeTest, WhatACrashHasLeftIsNotInTheWay) {
  AddNode();
  ASSERT_TRUE(server_.Create("pods", NominatedProbePod(kNamespace)));
  ASSERT_TRUE(server_.Create("pods", GuestProbePod(kNamespace, "elsewhere")));
  scheduler_ = Refuse;
  EXPECT_EQ(Probe(), std::vector{Honoured::kYes});
  EXPECT_TRUE(server_.List("pods", kNamespace).empty());
}

}  // namespace
}  // namespace grus
