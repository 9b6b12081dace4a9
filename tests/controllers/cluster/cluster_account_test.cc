// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/cluster_account.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <utility>

#include "tests/kit/reconciler_fixture.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using kube::KindOf;

// The ledger beside an API server in this process; no scheduler runs.
class ClusterAccountTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    account_.OnFreed([this] { ++freed_; });
    account_.OnStanding([this](const std::string& gang, bool is_urgent) {
      if (is_urgent) urgent_.push_back(gang);
    });
    StartCaches();
    Settle();
  }
  static Json Text(std::string_view text) { return *kube::ParseJson(text); }
  template <typename T>
  static void Must(const T& done) {
    ASSERT_TRUE(done) << done.error().message();
  }
  void AddNode(const std::string& name) {
    ReconcilerFixture::AddNode(name);
    Settle();
  }
  void AddPod(const std::string& name, int gpus, const std::string& node = {}, const std::string& gang = {}) {
    Json spec = kit::PodSpec(gpus);
    if (!node.empty()) spec["nodeName"] = node;
    Create("pods", kit::MakePod(name, std::move(spec), gang.empty() ? Json() : kit::MemberOf(gang), "team-a"));
    Settle();
  }
  void PatchStatus(const std::string& pod, std::string_view patch) {
    kube::WriteOptions options;
    options.subresource = "status";
    Must(client_.Patch(KindOf<kube::Pod>(), {"team-a", pod}, kube::PatchType::kMerge, Text(patch), options));
    Settle();
  }
  // PodScheduled is False, for this reason.
  void SetUnscheduled(const std::string& pod, const std::string& reason) {
    PatchStatus(pod,
                R"({"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":")" + reason + R"("}]}})");
  }
  // Of a gang whose places are held from now on.
  Safety Check(const std::vector<Place>& places, int priority) {
    return account_.Check("team-a/g", places, priority, clock_.Now());
  }
  static GangDemand Demand(const std::string& key, int members, int gpus) {
    GangDemand demand;
    demand.key = key;
    demand.needed = members;
    demand.members.assign(static_cast<std::size_t>(members), GpuShape(gpus));
    return demand;
  }

  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  ClusterAccount account_{nodes_, pods_, clock_};
  std::atomic<int> freed_{0};
  std::vector<std::string> urgent_;
};

TEST_F(ClusterAccountTest, BoundPodsHoldTheirNodeUntilTheyEnd) {
  AddPod("p", 5, "n1");
  EXPECT_EQ(account_.RoomFor("", GpuShape(1), 10).copies, 3);
  const int before = freed_;
  PatchStatus("p", R"({"status":{"phase":"Succeeded"}})");
  EXPECT_EQ(account_.RoomFor("", GpuShape(1), 10).copies, 8);
  EXPECT_GT(freed_.load(), before) << "those that wait are told";
}

// A pass that sees a pod bound gives its place up. Were the account to learn of it later, two would have the same room.
TEST_F(ClusterAccountTest, WhoSeesAPodBoundMakesTheAccountCountItAndItsEndIsStillSeen) {
  std::promise<void> seen, go_on;
  pods_.AddHandler([&, blocked = std::make_shared<bool>(false)](const kube::Change& change, bool) {
    if (!change.after || std::exchange(*blocked, true)) return;
    seen.set_value();
    go_on.get_future().wait();
  });
  ClusterAccount late(nodes_, pods_, clock_);  // Its events come behind those of the handler above.
  Create("pods", kit::MakePod(
                     "p",
                     [] {
                       Json spec = kit::PodSpec(5);
                       spec["nodeName"] = "n1";
                       return spec;
                     }(),
                     Json(), "team-a"));
  seen.get_future().wait();
  const auto pod = pods_.Get<kube::Pod>({"team-a", "p"});
  ASSERT_TRUE(pod);
  EXPECT_EQ(late.RoomFor("", GpuShape(1), 10).copies, 8) << "it has not heard of the pod";
  late.CatchUpWith({pod});
  EXPECT_EQ(late.RoomFor("", GpuShape(1), 10).copies, 3);
  go_on.set_value();
  Settle();
  EXPECT_EQ(late.RoomFor("", GpuShape(1), 10).copies, 3);
  PatchStatus("p", R"({"status":{"phase":"Succeeded"}})");
  EXPECT_EQ(late.RoomFor("", GpuShape(1), 10).copies, 8);
  late.CatchUpWith({pod});
  EXPECT_EQ(late.RoomFor("", GpuShape(1), 10).copies, 8) << "nobody would ever release a pod that has ended";
}

TEST_F(ClusterAccountTest, WhatIsPlacedIsHeldUntilItIsForgotten) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 4, 2)).is_placed);
  EXPECT_EQ(account_.PlacesOf("team-a/g").size(), 4U);
  EXPECT_FALSE(account_.Ask(Demand("team-a/h", 1, 1)).is_placed);
  EXPECT_EQ(account_.AnyWaiting(), "team-a/h");

  const int before = freed_;
  account_.Forget("team-a/g");
  EXPECT_GT(freed_.load(), before);
  EXPECT_TRUE(account_.Ask(Demand("team-a/h", 1, 1)).is_placed);
  EXPECT_EQ(account_.AnyWaiting(), "");
}

TEST_F(ClusterAccountTest, PodsThatKeepEachOtherAwayHaveRoomForOneANode) {
  AddNode("n2");
  PodShape on_host = *GpuShape(1);
  on_host.ns = "team-a";
  on_host.host_ports = {{2222, "TCP", ""}};
  const auto shape = std::make_shared<const PodShape>(on_host);
  EXPECT_EQ(account_.RoomFor("team-a/j", shape, 8).copies, 2);

  account_.KeepPlaces("team-a/j", shape, 2);
  EXPECT_EQ(account_.PlacesOf("team-a/j").size(), 2U);
  EXPECT_NE(account_.PlacesOf("team-a/j")[0].node, account_.PlacesOf("team-a/j")[1].node);
  EXPECT_EQ(account_.RoomFor("team-a/j", shape, 8).copies, 2) << "beside its own places there is no more";
  EXPECT_EQ(account_.RoomFor("team-a/other", shape, 8).copies, 0);
  EXPECT_EQ(account_.RoomFor("team-a/other", GpuShape(1), 100).copies, 14);

  account_.KeepPlaces("team-a/j", shape, 1);
  EXPECT_EQ(account_.RoomFor("team-a/other", shape, 8).copies, 1);
  account_.KeepPlaces("team-a/j", shape, 0);
  EXPECT_EQ(account_.RoomFor("team-a/other", shape, 8).copies, 2);
}

TEST_F(ClusterAccountTest, ADemandThatComesBackAfterItsPlacesWereGivenUpIsPlacedAnew) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 4, 2)).is_placed);
  account_.SetPlaces("team-a/g", {});
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 4, 2)).is_placed);
  EXPECT_EQ(account_.PlacesOf("team-a/g").size(), 4U);
}

TEST_F(ClusterAccountTest, AMemberThatIsBoundEndsAPlaceOfItsGang) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 2, 4)).is_placed);
  AddPod("g-0", 4, "n1", "g");
  EXPECT_EQ(account_.PlacesOf("team-a/g").size(), 1U);
  EXPECT_EQ(account_.RoomFor("", GpuShape(1), 10).copies, 0);
}

TEST_F(ClusterAccountTest, ForeignPodsThatAskForTheSameDeviceCompeteAndForTenMinutesAfterTheyAreGone) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 2, 1)).is_placed);
  AddPod("cpu", 0);
  AddPod("member", 1, "", "g");
  EXPECT_FALSE(account_.MustProtect("team-a/g"));
  AddPod("foreign", 1, "n1");
  EXPECT_TRUE(account_.MustProtect("team-a/g"));
  PatchStatus("foreign", R"({"status":{"phase":"Succeeded"}})");
  EXPECT_TRUE(account_.MustProtect("team-a/g"));
  clock_.Advance(10min);
  EXPECT_FALSE(account_.MustProtect("team-a/g"));
}

TEST_F(ClusterAccountTest, APodThatCameToTolerateMoreIsForgottenAsAnyOther) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 2, 1)).is_placed);
  AddPod("foreign", 1, "n1");
  Must(client_.Patch(KindOf<kube::Pod>(), {"team-a", "foreign"}, kube::PatchType::kJson,
                     Text(R"([{"op":"add","path":"/spec/tolerations/-","value":{"key":"a","operator":"Exists"}}])"),
                     {}));
  Settle();
  PatchStatus("foreign", R"({"status":{"phase":"Succeeded"}})");
  clock_.Advance(10min);
  EXPECT_FALSE(account_.MustProtect("team-a/g"));
}

TEST_F(ClusterAccountTest, AMemberThatNobodyGatedCompetesWithOtherGangs) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 2, 1)).is_placed);
  AddPod("h-0", 1, "", "h");
  EXPECT_TRUE(account_.MustProtect("team-a/g"));
  EXPECT_EQ(urgent_, std::vector<std::string>{"team-a/g"}) << "it is being started, and hears of it";
  clock_.Advance(10min);
  EXPECT_TRUE(account_.MustProtect("team-a/g"));
  EXPECT_TRUE(account_.Ask(Demand("team-a/h", 1, 1)).is_placed);
  EXPECT_FALSE(account_.MustProtect("team-a/g")) << "it has a place of its own";
}

TEST_F(ClusterAccountTest, GangsOfOtherShapesThatAreOnTheirWayCompeteToo) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 2, 1)).is_placed);
  EXPECT_TRUE(account_.Ask(Demand("team-a/alike", 2, 1)).is_placed);
  EXPECT_FALSE(account_.MustProtect("team-a/g")) << "pods that are alike only swap places";
  EXPECT_TRUE(account_.Ask(Demand("team-a/other", 1, 4)).is_placed);
  EXPECT_TRUE(account_.MustProtect("team-a/g"));
  account_.Forget("team-a/other");
  EXPECT_FALSE(account_.MustProtect("team-a/g"));
}

TEST_F(ClusterAccountTest, AGangSharesNodesThatItDoesNotFill) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/first", 3, 1)).is_placed);
  EXPECT_TRUE(account_.SharesNodes("team-a/first")) << "there is room for others";
  EXPECT_TRUE(account_.Ask(Demand("team-a/second", 5, 1)).is_placed);
  EXPECT_TRUE(account_.SharesNodes("team-a/second")) << "it fills the node of another";
  EXPECT_FALSE(account_.SharesNodes("team-a/nobody"));

  account_.Forget("team-a/first");
  account_.Forget("team-a/second");
  EXPECT_TRUE(account_.Ask(Demand("team-a/whole", 2, 4)).is_placed);
  EXPECT_FALSE(account_.SharesNodes("team-a/whole"));
  ClusterAccount never(nodes_, pods_, clock_, Nominations::kNever);
  EXPECT_FALSE(never.SharesNodes("team-a/first"));
}

// Pods that are never made bring no event of theirs.
TEST_F(ClusterAccountTest, PlacesThatAreGivenUpAreRoomForOthers) {
  account_.KeepPlaces("team-a/job", GpuShape(1), 8);
  const int before = freed_;
  account_.KeepPlaces("team-a/job", GpuShape(1), 8);
  EXPECT_EQ(freed_, before);
  account_.KeepPlaces("team-a/job", GpuShape(1), 0);
  EXPECT_GT(freed_, before);
}

TEST_F(ClusterAccountTest, ALauncherThatIsLostKeepsItsRoomUntilItsJobSaysOtherwise) {
  account_.KeepRoomOfLostLaunchers();
  const auto add_launcher = [&] {
    AddPod("l", 4, "n1");
    Must(client_.Patch(KindOf<kube::Pod>(), {"team-a", "l"}, kube::PatchType::kMerge, Text(R"({"metadata":{"labels":{
        "ai.centauruscloud.io/job-name":"job","ai.centauruscloud.io/role":"launcher"}}})"),
                       {}));
    Settle();
  };
  add_launcher();
  Must(server_.Delete("pods", {"team-a", "l"}, Text(R"({"gracePeriodSeconds":0})")));
  Settle();
  EXPECT_EQ(account_.PlacesOf("team-a/job/launcher").size(), 1U);
  EXPECT_EQ(account_.RoomFor("team-a/other", GpuShape(1), 10).copies, 4);

  account_.Forget("team-a/job/launcher");
  add_launcher();
  PatchStatus("l", R"({"status":{"phase":"Succeeded"}})");
  EXPECT_TRUE(account_.PlacesOf("team-a/job/launcher").empty()) << "no other one comes";
}

TEST_F(ClusterAccountTest, WorkersThatCouldTakeTheLaunchersRoomAreHeldToTheirPlaces) {
  AddNode("n2");
  const auto start = [&](int gpus_of_launcher) {
    account_.Forget("team-a/job");
    account_.Forget("team-a/job/launcher");
    GangDemand demand = Demand("team-a/job", 2, 2);
    demand.members.push_back(GpuShape(gpus_of_launcher));
    demand.companion = {2, "team-a/job/launcher"};
    demand.needed = 3;
    return account_.Ask(demand).is_placed;
  };
  ASSERT_TRUE(start(4));
  EXPECT_FALSE(account_.MustProtect("team-a/job")) << "wherever they go, it fits";
  ASSERT_TRUE(start(7));
  EXPECT_TRUE(account_.MustProtect("team-a/job")) << "one on each node would shut it out";
}

TEST_F(ClusterAccountTest, RoomThatIsReservedIsKeptFromAllWhoCouldTakeIt) {
  AddPod("running", 2, "n1");
  GangDemand large = Demand("team-a/large", 1, 8);
  large.waiting_since = 0;
  ASSERT_TRUE(account_.Ask(large).has_reservation);
  EXPECT_EQ(account_.ReservedFrom("team-a/job", *GpuShape(1)), "team-a/large");
  EXPECT_EQ(account_.ReservedFrom("team-a/job", *GpuShape(7)), "") << "such a pod finds no room there";
  EXPECT_EQ(account_.ReservedFrom("team-a/large", *GpuShape(1)), "");

  AddNode("n2");
  EXPECT_TRUE(account_.Ask(large).is_placed);
  EXPECT_EQ(account_.ReservedFrom("team-a/job", *GpuShape(1)), "");
}

TEST_F(ClusterAccountTest, PlacesAreHeldByPinningWhereNominationsAreNotHonouredOrNotWanted) {
  EXPECT_FALSE(account_.Pins());
  account_.SetNominationsHonoured(false);
  EXPECT_TRUE(account_.Pins());
  account_.SetNominationsHonoured(true);
  EXPECT_FALSE(account_.Pins());

  ClusterAccount pinning(nodes_, pods_, clock_, Nominations::kPin);
  EXPECT_TRUE(pinning.Pins());
  EXPECT_TRUE(pinning.MustProtect("team-a/g"));
}

TEST_F(ClusterAccountTest, PlacesAreUnsafeWhileTheSchedulerMayBeAtAForeignPod) {
  const std::vector<Place> places = {{"n1", GpuShape(1)}};
  EXPECT_EQ(Check(places, 0), Safety::kSafe);
  AddPod("foreign", 1);
  EXPECT_EQ(Check(places, 0), Safety::kUndecided);
  EXPECT_EQ(Check(places, 1), Safety::kSafe) << "it is less important than the gang";
  SetUnscheduled("foreign", "Unschedulable");
  EXPECT_EQ(Check(places, 0), Safety::kSafe);
}

TEST_F(ClusterAccountTest, AForeignPodWhoseGateWasLiftedIsUndecidedThoughItsConditionStillTellsOfTheGate) {
  AddPod("foreign", 1);
  SetUnscheduled("foreign", "SchedulingGated");
  EXPECT_EQ(Check({{"n1", GpuShape(1)}}, 0), Safety::kUndecided);
}

TEST_F(ClusterAccountTest, AForeignPodThatNobodyDecidesAboutHoldsGangsUpForFiveMinutesOnly) {
  AddPod("foreign", 1);
  clock_.Advance(4min);
  PatchStatus("foreign", R"({"status":{"qosClass":"BestEffort"}})");
  EXPECT_EQ(Check({{"n1", GpuShape(1)}}, 0), Safety::kUndecided);
  clock_.Advance(1min);
  EXPECT_EQ(Check({{"n1", GpuShape(1)}}, 0), Safety::kSafe);
}

TEST_F(ClusterAccountTest, AGangWaitsForWhatTheSchedulerWasAtBeforeItsPlacesWereHeldAndForTwentySeconds) {
  const std::vector<Place> places = {{"n1", GpuShape(1)}};
  AddPod("before", 1);
  const kube::TimePoint held = clock_.Now();
  clock_.Advance(19s);
  EXPECT_EQ(account_.Check("team-a/g", places, 0, held), Safety::kUndecided);
  clock_.Advance(1s);
  EXPECT_EQ(account_.Check("team-a/g", places, 0, held), Safety::kSafe);
  SetUnscheduled("before", "Unschedulable");
  AddPod("after", 1);
  EXPECT_EQ(account_.Check("team-a/g", places, 0, clock_.Now() - 5s), Safety::kSafe)
      << "the scheduler keeps the places from it";
}

TEST_F(ClusterAccountTest, WhatTheSchedulerKeepsForAForeignPodIsNotFree) {
  AddPod("preemptor", 6);
  PatchStatus("preemptor", R"({"status":{"nominatedNodeName":"n1"}})");
  EXPECT_EQ(account_.RoomFor("team-a/g", GpuShape(1), 10).copies, 2);
  AddNode("n2");
  Must(server_.Bind({"team-a", "preemptor"}, "n2"));
  Settle();
  EXPECT_EQ(account_.RoomFor("team-a/g", GpuShape(8), 10).copies, 1) << "it went elsewhere";
  AddPod("other", 4);
  PatchStatus("other", R"({"status":{"nominatedNodeName":"n1"}})");
  const int freed = freed_;
  PatchStatus("other", R"({"status":{"nominatedNodeName":null}})");
  EXPECT_EQ(account_.RoomFor("team-a/g", GpuShape(8), 10).copies, 1);
  EXPECT_GT(freed_, freed);
}

TEST_F(ClusterAccountTest, AForeignPodWaitsForRoomOnceItIsFoundUnschedulableNotWhileItIsGated) {
  const auto nobody = [](const std::string&) { return false; };
  AddPod("foreign", 1);
  SetUnscheduled("foreign", "SchedulingGated");
  EXPECT_FALSE(account_.IsAnyoneWaiting(nobody));
  SetUnscheduled("foreign", "Unschedulable");
  EXPECT_TRUE(account_.IsAnyoneWaiting(nobody));
}

TEST_F(ClusterAccountTest, PlacesAreTakenWhenTheirNodeHoldsMoreThanItHasOrAcceptsNoMore) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 4, 2)).is_placed);
  const std::vector<Place> places = account_.PlacesOf("team-a/g");
  EXPECT_EQ(Check(places, 0), Safety::kSafe);
  AddPod("foreign", 1, "n1");
  EXPECT_EQ(Check(places, 0), Safety::kTaken);
  EXPECT_EQ(Check({{"nowhere", GpuShape(1)}}, 0), Safety::kTaken);
}

TEST_F(ClusterAccountTest, OfPlacesThatWereTakenThoseStayThatTheirNodeHasRoomFor) {
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 4, 2)).is_placed);
  AddPod("foreign", 1, "n1");
  ASSERT_EQ(Check(account_.PlacesOf("team-a/g"), 0), Safety::kTaken);

  account_.DropPlacesThatNoLongerFit("team-a/g");

  const std::vector<Place> left = account_.PlacesOf("team-a/g");
  EXPECT_EQ(Check(left, 0), Safety::kSafe);
  EXPECT_EQ(left.size(), 3U);
}

TEST_F(ClusterAccountTest, WhatIsReservedIsRoomForItsGangOnly) {
  AddPod("p", 5, "n1");
  EXPECT_TRUE(account_.Ask(Demand("team-a/g", 8, 1)).has_reservation);
  EXPECT_EQ(account_.RoomFor("team-a/g", GpuShape(1), 10).copies, 3);
  EXPECT_EQ(account_.RoomFor("team-a/other", GpuShape(1), 10).copies, 0);
}

TEST_F(ClusterAccountTest, AGangThatHasTheReservationHearsOfItWhoeverPlanned) {
  AddPod("p", 8, "n1");
  const auto demand = [since = kube::Time{clock_.WallNow()}](const std::string& key) {
    GangDemand one = Demand(key, 1, 8);
    one.waiting_since = std::chrono::duration_cast<std::chrono::seconds>(since.value.time_since_epoch()).count();
    return one;
  };
  EXPECT_FALSE(account_.Ask(demand("team-a/first")).has_reservation);
  clock_.Advance(1min);
  EXPECT_FALSE(account_.Ask(demand("team-a/second")).has_reservation);
  EXPECT_EQ(urgent_, std::vector<std::string>{"team-a/first"});
}

TEST_F(ClusterAccountTest, OthersHearOnceOfWhoWaitsNoLongerAndHisReservationIsRoom) {
  AddPod("p", 5, "n1");
  for (const auto give_up : {&ClusterAccount::StopAsking, &ClusterAccount::Forget}) {
    ASSERT_TRUE(account_.Ask(Demand("team-a/large", 8, 1)).has_reservation);
    ASSERT_EQ(account_.Ask(Demand("team-a/small", 1, 1)).blocked_by, "team-a/large");
    ASSERT_EQ(account_.ReservedFrom("team-a/job", *GpuShape(1)), "team-a/large");
    const int before = freed_;

    (account_.*give_up)("team-a/small");
    EXPECT_EQ(freed_, before + 1) << "who waits behind it may ask in its place";
    (account_.*give_up)("team-a/large");
    (account_.*give_up)("team-a/large");
    EXPECT_EQ(freed_, before + 2);
    EXPECT_EQ(account_.ReservedFrom("team-a/job", *GpuShape(1)), "");
  }
}

TEST_F(ClusterAccountTest, WhatWasReservedIsRoomForThoseWhoGrowOnceItsGangIsPlaced) {
  AddPod("p", 5, "n1");
  ASSERT_TRUE(account_.Ask(Demand("team-a/large", 8, 1)).has_reservation);
  Must(server_.Delete("pods", {"team-a", "p"}, Text(R"({"gracePeriodSeconds":0})")));
  Settle();
  const int before = freed_;

  EXPECT_TRUE(account_.Ask(Demand("team-a/large", 8, 1)).is_placed);
  EXPECT_EQ(freed_, before + 1);
}

TEST_F(ClusterAccountTest, APlaceThatIsLostIsToldToThoseWhoPlannedIt) {
  account_.AddPlace("team-a/job", {"n1", GpuShape(4)});
  AddPod("p", 5, "n1");
  urgent_.clear();

  account_.DropPlacesThatNoLongerFit("team-a/job");
  EXPECT_EQ(urgent_, std::vector<std::string>{"team-a/job"});
  account_.DropPlacesThatNoLongerFit("team-a/job");
  EXPECT_EQ(urgent_.size(), 1U) << "once";
}

TEST_F(ClusterAccountTest, PodsOfOneSetShareAShape) {
  kube::Pod a, b;
  a.metadata.ns = b.metadata.ns = "team-a";
  a.metadata.labels = {
      {"app", "x"}, {"statefulset.kubernetes.io/pod-name", "x-0"}, {"apps.kubernetes.io/pod-index", "0"}};
  b.metadata.labels = {
      {"app", "x"}, {"statefulset.kubernetes.io/pod-name", "x-1"}, {"apps.kubernetes.io/pod-index", "1"}};
  EXPECT_EQ(account_.ShapeOf(a), account_.ShapeOf(b));
  b.metadata.labels = {{"app", "y"}};
  EXPECT_NE(account_.ShapeOf(a), account_.ShapeOf(b));
}

}  // namespace
}  // namespace grus
