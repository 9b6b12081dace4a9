// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_reconciler.h"

#include <gtest/gtest.h>

#include "controllers/policy/yield_words.h"
#include "tests/kit/conditions.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;
using kube::KindOf;
using std::chrono::seconds;

// Gangs on one node of 8 GPUs, beside an API server in this process.
class GangReconcilerTest : public testing::ReconcilerFixture {
 protected:
  static Json Text(std::string_view text) { return *kube::ParseJson(text); }

  // All of whose members are gated, and nominated for that node if there is one.
  void AddGang(const std::string& name, int members, int gpus, const std::string& node = {}) {
    Create("podgroups.scheduling.x-k8s.io", kit::MakePodGroup(name, members, "{}", "team-a"));
    for (int i = 0; i < members; ++i) {
      const std::string pod_name = name + "-" + std::to_string(i);
      Create("pods", kit::MakePod(pod_name, kit::Gated(kit::PodSpec(gpus)), kit::MemberOf(name), "team-a"));
      if (!node.empty()) Nominate(pod_name, node);
    }
  }
  void Nominate(const std::string& pod, const std::string& node) {
    kube::WriteOptions options;
    options.subresource = "status";
    Json patch = Json::MakeObject();
    patch["status"]["nominatedNodeName"] = node;
    ASSERT_TRUE(client_.Patch(KindOf<kube::Pod>(), {"team-a", pod}, kube::PatchType::kMerge, patch, options));
  }
  void Start() {
    gangs_.FeedQueue(queue_);
    StartCaches();
  }

  kube::Informer& groups_ = Cache<api::PodGroup>();
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  ClusterAccount account_{nodes_, pods_, clock_};
  GangReconciler gangs_{client_, KindOf<api::PodGroup>(), groups_, pods_, account_, {}, events_, clock_, log_};
};

TEST_F(GangReconcilerTest, WhatAnEarlierProcessHeldIsHeldBeforeAnythingElseIsPlanned) {
  AddGang("held", 4, 2, "n1");
  AddGang("other", 4, 2);
  Start();

  ASSERT_TRUE(gangs_.Reconcile({"team-a", "other"}, {}));

  EXPECT_EQ(account_.PlacesOf("team-a/held").size(), 4U);
  EXPECT_TRUE(account_.PlacesOf("team-a/other").empty());
}

// Without a nomination nobody knows where they are to go.
TEST_F(GangReconcilerTest, WhatAnEarlierProcessHasLetGoIsPlannedBeforeAnythingElse) {
  AddGang("begun", 4, 2);
  AddGang("other", 4, 2);
  Json lift = Text(R"({"spec":{"schedulingGates":null}})");
  lift["metadata"]["annotations"][api::kGangLiftedAnnotation] = kube::ToText(kube::Time{clock_.WallNow()});
  for (const char* pod : {"begun-0", "begun-1", "begun-2", "begun-3"}) {
    ASSERT_TRUE(client_.Patch(KindOf<kube::Pod>(), {"team-a", pod}, kube::PatchType::kMerge, lift, {}));
  }
  Start();

  ASSERT_TRUE(gangs_.Reconcile({"team-a", "other"}, {}));

  EXPECT_EQ(account_.PlacesOf("team-a/begun").size(), 4U);
  EXPECT_TRUE(account_.PlacesOf("team-a/other").empty());
}

// Rule: what a gate was lifted for stays kept, though another gate may not be lifted.
TEST_F(GangReconcilerTest, AGangOfWhichOnlySomeGatesMayBeLiftedKeepsItsPlaces) {
  struct Refusing final : kube::Transport {
    explicit Refusing(kube::Transport& its_server) : server(its_server) {}
    kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
      if (request.method == "PATCH" && request.target.find(refused) != std::string::npos)
        return kube::HttpResponse{403, {}, ""};
      return server.Send(request, stop);
    }
    kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
      return server.Open(request, stop);
    }
    kube::Transport& server;
    std::string refused = "/pods/begun-";
  } refusing(server_);
  kube::Client client(refusing, nullptr, clock_);
  GangReconciler gangs(client, KindOf<api::PodGroup>(), groups_, pods_, account_, {}, events_, clock_, log_);
  AddGang("begun", 4, 2);
  gangs.FeedQueue(queue_);
  StartCaches();

  ASSERT_TRUE(gangs.Reconcile({"team-a", "begun"}, {}));
  EXPECT_TRUE(account_.PlacesOf("team-a/begun").empty()) << "none was lifted: others may start";

  refusing.refused = "/pods/begun-2";
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  ASSERT_TRUE(gangs.Reconcile({"team-a", "begun"}, {}));
  EXPECT_EQ(account_.PlacesOf("team-a/begun").size(), 4U);
}

TEST_F(GangReconcilerTest, WhenAGangMayAskForAReservationOnlyThatOneLooksAgain) {
  AddGang("held", 4, 2, "n1");
  AddGang("waits", 4, 2);
  Start();

  const auto waits = gangs_.Reconcile({"team-a", "waits"}, {});
  ASSERT_TRUE(gangs_.Reconcile({"team-a", "held"}, {}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  clock_.Advance(seconds(4));  // What it says of itself waits so long for company.
  const auto held = gangs_.Reconcile({"team-a", "held"}, {});

  ASSERT_TRUE(waits && held);
  EXPECT_LE(*waits->delay(), seconds(15));
  EXPECT_GT(*held->delay(), seconds(15));
}

TEST_F(GangReconcilerTest, AGroupThatIsGoneTakesItsPlacesAndNotThoseOfAJobOfItsName) {
  AddGang("held", 4, 1, "n1");
  Start();
  ASSERT_TRUE(gangs_.Reconcile({"team-a", "held"}, {}));
  ASSERT_EQ(account_.PlacesOf("team-a/held").size(), 4U);
  const Place place = account_.PlacesOf("team-a/held").front();
  account_.AddPlace("team-a/job", place);  // It makes its group later.
  ASSERT_TRUE(gangs_.Reconcile({"team-a", "job"}, {}));
  EXPECT_EQ(account_.PlacesOf("team-a/job").size(), 1U);

  ASSERT_TRUE(server_.Delete("podgroups.scheduling.x-k8s.io", {"team-a", "held"}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  ASSERT_TRUE(gangs_.Reconcile({"team-a", "held"}, {}));
  EXPECT_TRUE(account_.PlacesOf("team-a/held").empty());
}

TEST_F(GangReconcilerTest, APodIsToldThatItsGroupIsMissingOnlyIfTheGroupDoesNotFollowSoon) {
  Create("pods", kit::MakePod("early", kit::Gated(kit::PodSpec(1)), kit::MemberOf("late"), "team-a"));
  Start();

  const auto first = gangs_.Reconcile({"team-a", "late"}, {});
  Settle();
  ASSERT_TRUE(first && first->delay());
  EXPECT_TRUE(server_.List("events.events.k8s.io").empty());

  clock_.Advance(*first->delay());
  const auto second = gangs_.Reconcile({"team-a", "late"}, {});
  Settle();
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->delay());
  ASSERT_EQ(server_.List("events.events.k8s.io").size(), 1U);
  EXPECT_EQ(*server_.List("events.events.k8s.io").front()->Find("reason"), Json("NoPodGroup"));
}

TEST_F(GangReconcilerTest, AGroupIsLookedAtWhenAPodLeavesItByItsLabel) {
  AddGang("left", 1, 1);
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  while (queue_.counts().depth > 0) queue_.Done(queue_.Get()->key);

  const Json unlabel = Text(R"({"metadata":{"labels":{"scheduling.x-k8s.io/pod-group":null}}})");
  ASSERT_TRUE(client_.Patch(KindOf<kube::Pod>(), {"team-a", "left-0"}, kube::PatchType::kMerge, unlabel, {}));
  ASSERT_TRUE(clock_.AwaitWaiters(waiters_));

  ASSERT_EQ(queue_.counts().depth, 2U);
  EXPECT_EQ(queue_.Get()->key.name, "left");
  EXPECT_EQ(queue_.Get()->key.name, "") << "its pod still has the gate, and is told what it lacks";
}

// A process that stops in between leaves the rest to the next, which would not know why they went.
TEST_F(GangReconcilerTest, ARollBackIsWrittenBeforeTheFirstMemberGoes) {
  AddGang("late", 2, 8);
  Json lift = Text(R"({"metadata":{"finalizers":["example.com/hold"],"ownerReferences":[{"apiVersion":"batch/v1",
      "kind":"Job","name":"late","uid":"j","controller":true}]},"spec":{"schedulingGates":null}})");
  lift["metadata"]["annotations"][api::kGangLiftedAnnotation] =
      kube::ToText(kube::Time{clock_.WallNow() - seconds(90)});
  for (const char* pod : {"late-0", "late-1"}) {
    ASSERT_TRUE(client_.Patch(KindOf<kube::Pod>(), {"team-a", pod}, kube::PatchType::kMerge, lift, {}));
  }
  Start();

  ASSERT_TRUE(gangs_.Reconcile({"team-a", "late"}, {}));

  const std::string written(Live<api::PodGroup>({"team-a", "late"})->metadata.resource_version);
  for (const char* pod : {"late-0", "late-1"}) {
    const auto ended = Live<kube::Pod>({"team-a", pod});
    EXPECT_TRUE(ended->metadata.is_being_deleted());
    EXPECT_TRUE(kube::IsOlder(written, ended->metadata.resource_version)) << written;
  }
}

TEST_F(GangReconcilerTest, AGangThatBorrowsTellsItsMembersAndGivesAllBackAtTheDeadline) {
  AddGang("lent", 2, 4);
  AddGang("owner", 2, 4);
  for (const char* name : {"lent", "owner"}) {
    Edit("podgroups.scheduling.x-k8s.io", {"team-a", name},
         [&](Json& group) { group["metadata"]["labels"][api::kQueueNameLabel] = std::string("queue-of-") + name; });
  }
  for (const char* pod : {"lent-0", "lent-1"}) {
    const Json lift =
        Text(R"({"metadata":{"finalizers":["example.com/hold"],"ownerReferences":[{"apiVersion":"batch/v1",
        "kind":"Job","name":"lent","uid":"j","controller":true}],"annotations":{
        "scheduling.ai.centauruscloud.io/lifted":"2026-01-01T00:00:00Z"}},"spec":{"schedulingGates":null}})");
    ASSERT_TRUE(client_.Patch(KindOf<kube::Pod>(), {"team-a", pod}, kube::PatchType::kMerge, lift, {}));
    ASSERT_TRUE(server_.Bind({"team-a", pod}, "n1"));
  }
  const PoolQuota all{.pool = kDefaultPool, .guaranteed_milli = 8 * kOneGpu};
  account_.SetQueues({.pools = {},
                      .queues = {{.name = "queue-of-lent"}, {.name = "queue-of-owner", .quotas = {all}}},
                      .namespaces = {}});
  Start();
  const auto pass = [&](const char* name) {
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
    ASSERT_TRUE(gangs_.Reconcile({"team-a", name}, {}));
  };
  const auto lent = [&](int member) { return Live<kube::Pod>({"team-a", "lent-" + std::to_string(member)}); };

  pass("owner");  // Before it, the account has heard of the other.
  ASSERT_TRUE(account_.YieldOf("team-a/lent"));
  pass("lent");
  const std::string deadline = kube::ToText(kube::Time{clock_.WallNow() + seconds(30)});
  for (const int member : {0, 1}) {
    EXPECT_EQ(lent(member)->metadata.Annotation(kPreemptionDeadlineAnnotation), deadline);
    EXPECT_FALSE(lent(member)->metadata.is_being_deleted());
  }

  clock_.Advance(seconds(30));
  pass("lent");
  for (const int member : {0, 1}) EXPECT_TRUE(lent(member)->metadata.is_being_deleted());
  EXPECT_EQ(kit::ReasonOf(Live<api::PodGroup>({"team-a", "lent"})), "Preempted");
}

}  // namespace
}  // namespace grus
