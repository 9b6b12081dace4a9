// SPDX-License-Identifier: Apache-2.0
// Calls of a scheduler, on an API server in this process; n1 has 8 whole GPUs.
#include "controllers/extender/extender.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <random>
#include <set>
#include <thread>

#include "crds/types/sharing_names.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ExtenderTest : public testing::ReconcilerFixture {
 protected:
  // Shut while another replica leads.
  struct Gate final : kube::WriteGate {
    kube::Status MayWrite(const kube::Kind&) const override {
      if (is_open) return {};
      return kube::Error(kube::ErrorCode::kCancelled, "another one leads");
    }
    bool is_open = true;
  };

  void SetUp() override {
    ReconcilerFixture::SetUp();
    client_.SetWriteGate(&gate_);
    extender_.refused_pods().FeedQueue(queue_);
    StartCaches();
    Settle();
  }
  // A node that shares so many GPUs by thousandths: a0, a1, ... of node a.
  void AddShared(const std::string& name, int gpus) {
    Json node = kit::MakeNode(name, 0);
    Json inventory = Json::MakeArray();
    for (int i = 0; i < gpus; ++i) {
      inventory.Append(Json::MakeObject(
          {{"uuid", name + std::to_string(i)}, {"memoryMiB", 80000}, {"milli", 1000}, {"mode", "milli"}}));
    }
    node["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(inventory);
    node["status"]["allocatable"][api::kGpuMilliResource] = std::to_string(1000 * gpus);
    Create("nodes", std::move(node));
    Settle();
  }
  void AddPod(const std::string& name, int milli, const std::string& gpu = {}, const std::string& node = {}) {
    Json pod = kit::MakePod(name, kit::PodSpec(milli, "{}", api::kGpuMilliResource), Json(), "team-a");
    Json& resources = (*pod["spec"]["containers"].AsArray())[0]["resources"];
    resources["requests"] = Json(resources["limits"]);
    if (!gpu.empty()) pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = gpu;
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    Create("pods", std::move(pod));
    Settle();
  }
  // What happens to pods from now on, their cache does not see.
  void FreezePods() {
    pods_.Stop();
    pods_.Join();
  }
  std::string Call(const std::string& pod, const std::string& more) {
    return R"({"Pod":)" + kube::ToText(*server_.Get("pods", {"team-a", pod})) + "," + more + "}";
  }
  std::string Filter(const std::string& pod, const std::string& names) {
    return Text(extender_.Filter(Call(pod, R"("NodeNames":)" + names)));
  }
  std::string Prioritize(const std::string& pod, const std::string& names) {
    return Text(extender_.Prioritize(Call(pod, R"("NodeNames":)" + names)));
  }
  std::string UidOf(const std::string& pod) { return std::string(Live<kube::Pod>({"team-a", pod})->metadata.uid); }
  // A member of an object of nodes: the pod would be ended there.
  std::string Victim(const std::string& pod, const std::string& node) {
    return '"' + node + R"(":{"Pods":[{"UID":")" + UidOf(pod) + R"("}],"NumPDBViolations":0})";
  }
  // `victims`: the members. PreemptionOf() is the answer that names these.
  std::string Preempt(const std::string& pod, const std::string& victims) {
    return Text(extender_.Preempt(Call(pod, R"("NodeNameToMetaVictims":{)" + victims + "}")));
  }
  static std::string PreemptionOf(const std::string& victims) {
    return R"({"NodeNameToMetaVictims":{)" + victims + "}}";
  }
  void Nominate(const std::string& pod, const std::string& node) {
    const auto nominate = [&](Json& live) { live["status"]["nominatedNodeName"] = node; };
    Edit("pods", {"team-a", pod}, nominate, "status");
  }
  std::string Bind(const std::string& pod, const std::string& node, const std::string& uid = {}) {
    const std::string own = UidOf(pod);
    return Text(extender_.Bind(R"({"PodName":")" + pod + R"(","PodNamespace":"team-a","PodUID":")" +
                               (uid.empty() ? own : uid) + R"(","Node":")" + node + R"("})"));
  }
  static std::string Text(const kube::Result<std::string>& answer) {
    return answer ? *answer : "bad: " + answer.error().message();
  }
  // A call that waits a little for the cache.
  std::string WhileTimePasses(const std::function<std::string()>& call) {
    std::string answer;
    std::atomic<bool> is_done = false;
    std::jthread caller([&] {
      answer = call();
      is_done = true;
    });
    while (!is_done) clock_.Advance(5ms);
    caller.join();
    return answer;
  }
  std::string PlannedGpu(const std::string& pod) {
    return std::string(Live<kube::Pod>({"team-a", pod})->metadata.Annotation(api::kPlannedGpuAnnotation));
  }

  Gate gate_;
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  ClusterAccount account_{nodes_, pods_, clock_};
  PodPlacer placer_{account_};
  kube::Registry metrics_;
  Extender extender_{client_, pods_, nodes_, account_, clock_, log_, metrics_};
};

constexpr char kBound[] = R"({"Error":""})";

TEST_F(ExtenderTest, ANodeWithoutASingleGpuThatHasTheRoomIsRefused) {
  AddShared("a", 2);
  AddShared("b", 1);
  AddPod("x", 600, "a0", "a");
  AddPod("y", 500, "a1", "a");
  AddPod("p", 600);
  EXPECT_EQ(
      Filter("p", R"(["a","b"])"),
      R"({"NodeNames":["b"],"FailedNodes":{"a":"600 ai.centauruscloud.io/gpu-milli on one GPU: 500 are free at most"}})")
      << "900 are free on a, but of two GPUs";
}

TEST_F(ExtenderTest, WholeGpusOfASharedNodeAreThoseOfWhichNobodyHasAPart) {
  AddShared("a", 3);
  AddPod("x", 10, "a1", "a");
  AddPod("p", 3000);
  EXPECT_THAT(Filter("p", R"(["a"])"), HasSubstr("3000 ai.centauruscloud.io/gpu-milli: 2 whole GPUs are free"));
}

TEST_F(ExtenderTest, WhatItDoesNotKnowIsNotItsConcern) {
  AddShared("a", 1);
  AddPod("p", 600);
  EXPECT_EQ(Filter("p", R"(["elsewhere"])"), R"({"NodeNames":["elsewhere"],"FailedNodes":{}})");
  Create("pods", kit::MakePod("plain", kit::PodSpec(9), Json(), "team-a"));
  Settle();
  EXPECT_EQ(Filter("plain", R"(["n1","a"])"), R"({"NodeNames":["n1","a"],"FailedNodes":{}})")
      << "the scheduler counts whole devices itself";
}

TEST_F(ExtenderTest, BindingSaysWhichGpuAndCountsAtOnce) {
  AddShared("a", 2);
  AddPod("p", 600);
  AddPod("q", 600);
  AddPod("r", 600);
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(Bind("q", "a"), kBound) << "whether or not its cache has seen p bound";
  EXPECT_THAT(Bind("r", "a"), HasSubstr("node a has no room for 600 ai.centauruscloud.io/gpu-milli on one GPU"));
  EXPECT_EQ(Live<kube::Pod>({"team-a", "p"})->spec.node_name, "a");
  EXPECT_EQ(PlannedGpu("p") + PlannedGpu("q"), "a0a1");
  EXPECT_EQ(Live<kube::Pod>({"team-a", "r"})->spec.node_name, "");
}

TEST_F(ExtenderTest, APodThatCouldNotBeBoundHoldsNothing) {
  AddShared("a", 1);
  AddPod("p", 600);
  AddPod("q", 600);
  gate_.is_open = false;
  EXPECT_EQ(Bind("p", "a"), R"({"Error":"another one leads"})");
  EXPECT_EQ(Live<kube::Pod>({"team-a", "p"})->spec.node_name, "");
  gate_.is_open = true;
  EXPECT_EQ(Bind("q", "a"), kBound) << "p has given the room back";
}

TEST_F(ExtenderTest, ThePlanOfAPodIsFollowedIfItStillFits) {
  AddShared("a", 2);
  AddPod("p", 300, "a1");
  AddPod("q", 800, "a1");
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(PlannedGpu("p"), "a1");
  EXPECT_EQ(Bind("q", "a"), kBound);
  EXPECT_EQ(PlannedGpu("q"), "a0") << "a1 has 700 left";
}

TEST_F(ExtenderTest, APodThatIsNoLongerThatOneIsNotBound) {
  AddShared("a", 1);
  AddPod("p", 600);
  for (const char* pod : {"p", "none"}) {
    const std::string body =
        std::string(R"({"PodName":")") + pod + R"(","PodNamespace":"team-a","PodUID":"another","Node":"a"})";
    EXPECT_THAT(WhileTimePasses([&] { return Text(extender_.Bind(body)); }), HasSubstr("does not know this pod"));
  }
  EXPECT_EQ(Bind("p", "a"), kBound);
  Settle();
  AddShared("b", 1);
  EXPECT_THAT(Bind("p", "b"), HasSubstr("already assigned"));
  EXPECT_EQ(Bind("p", "a"), kBound) << "the answer to the first call was lost";
  AddPod("q", 500);
  EXPECT_THAT(Filter("q", R"(["a"])"), HasSubstr("400 are free at most")) << "p counts once, and still";
}

TEST_F(ExtenderTest, APodOfWhichTheSchedulerHearsFirstIsBound) {
  AddShared("a", 1);
  Create("pods", kit::MakePod("p", kit::PodSpec(600, "{}", api::kGpuMilliResource), Json(), "team-a"));
  EXPECT_EQ(WhileTimePasses([&] { return Bind("p", "a"); }), kBound) << "as soon as the cache has it";
}

// Anybody may name a gang.
TEST_F(ExtenderTest, APodOfAGangWithoutPlacesCountsFromItsBindingOn) {
  AddShared("a", 1);
  for (const char* pod : {"p", "q"}) {
    Create("pods", kit::MakePod(pod, kit::PodSpec(600, "{}", api::kGpuMilliResource), kit::MemberOf("none"), "team-a"));
  }
  Settle();
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_THAT(Bind("q", "a"), HasSubstr("has no room")) << "before the cache hears of the first";
}

// Rule: room is given back only if it is certain that the pod has not got it.
TEST_F(ExtenderTest, ABindThatComesTwiceGivesNothingBackWhileTheCacheIsLate) {
  AddShared("a", 2);
  AddShared("b", 1);
  for (const char* pod : {"p", "q", "r", "s"}) AddPod(pod, 600);
  FreezePods();
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(Bind("q", "a"), kBound);
  EXPECT_EQ(Bind("p", "a"), kBound) << "the answer was lost";
  EXPECT_THAT(Bind("p", "b"), HasSubstr("already assigned to node a"));
  EXPECT_THAT(Bind("r", "a"), HasSubstr("no room"));
  EXPECT_EQ(PlannedGpu("p") + PlannedGpu("q"), "a0a1");
  EXPECT_EQ(Bind("s", "b"), kBound) << "p has taken nothing there";
}

TEST_F(ExtenderTest, APodThatAnotherReplicaHasBoundCountsWhereItIs) {
  AddShared("a", 2);
  for (const char* pod : {"p", "q", "r"}) AddPod(pod, 600);
  FreezePods();
  Edit("pods", {"team-a", "p"}, [](Json& pod) { pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = "a1"; });
  ASSERT_TRUE(server_.Bind({"team-a", "p"}, "a"));
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(Bind("q", "a"), kBound);
  EXPECT_EQ(PlannedGpu("q"), "a0") << "p has the other one";
  EXPECT_THAT(Bind("r", "a"), HasSubstr("no room"));
}

TEST_F(ExtenderTest, ANodeThatIsNotThereGetsNoPod) {
  AddShared("a", 1);
  AddPod("p", 600);
  ASSERT_TRUE(client_.Delete(kube::KindOf<kube::Node>(), {"", "a"}));
  Settle();
  EXPECT_THAT(Bind("p", "a"), HasSubstr("does not know node a"));
  EXPECT_EQ(Live<kube::Pod>({"team-a", "p"})->spec.node_name, "");
}

TEST_F(ExtenderTest, ANodeWhoseGpusAreAllSickGetsNoPod) {
  AddShared("a", 1);
  AddPod("p", 600);
  Edit("nodes", {"", "a"}, [](Json& node) {
    node["metadata"]["annotations"][api::kGpuInventoryAnnotation] =
        R"([{"uuid":"a0","memoryMiB":80000,"milli":1000,"mode":"milli","healthy":false}])";
  });
  Settle();
  EXPECT_THAT(Bind("p", "a"), HasSubstr("no GPU of node a is well")) << "though its kubelet offers it yet";
  EXPECT_EQ(Live<kube::Pod>({"team-a", "p"})->spec.node_name, "");
}

TEST_F(ExtenderTest, TheApiServersWishToWaitIsObeyed) {
  struct Busy final : kube::Transport {
    explicit Busy(kube::Transport& its_server) : server(its_server) {}
    kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
      if (request.target.find("/binding") != std::string::npos && ++binds == 1)
        return kube::HttpResponse{429, {{"retry-after", "7"}}, ""};
      return server.Send(request, stop);
    }
    kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
      return server.Open(request, stop);
    }
    kube::Transport& server;
    int binds = 0;
  } busy(server_);
  kube::Client client(busy, nullptr, clock_);
  kube::Registry metrics;
  Extender extender(client, pods_, nodes_, account_, clock_, log_, metrics);
  AddShared("a", 1);
  AddPod("p", 600);
  const auto bind = [&] { return Text(extender.Bind(R"({"PodName":"p","PodNamespace":"team-a","Node":"a"})")); };
  EXPECT_NE(bind(), kBound);
  EXPECT_THAT(bind(), HasSubstr("has asked to wait"));
  EXPECT_EQ(busy.binds, 1);
  clock_.Advance(7s);
  EXPECT_EQ(bind(), kBound);
}

TEST_F(ExtenderTest, PackedPodsComeToTheFullestNodeAndSpreadOnesToTheEmptiest) {
  for (const char* name : {"a", "b", "c"}) AddShared(name, 1);
  AddPod("x", 600, "a0", "a");
  AddPod("y", 200, "b0", "b");
  AddPod("p", 300);
  EXPECT_EQ(Prioritize("p", R"(["a","b","c"])").substr(0, 26), R"([{"Host":"a","Score":10},{)");
  Edit("pods", {"team-a", "p"}, [](Json& pod) { pod["metadata"]["annotations"][api::kPartPlacementKey] = "spread"; });
  Settle();
  EXPECT_THAT(Prioritize("p", R"(["a","b","c"])"),
              AllOf(HasSubstr(R"({"Host":"a","Score":0})"), HasSubstr(R"({"Host":"c","Score":10})")));
}

TEST_F(ExtenderTest, PreemptionKeepsTheNodesWhereItHelps) {
  AddShared("a", 2);
  AddShared("b", 1);
  AddPod("a-large", 700, "a0", "a");
  AddPod("a-small", 500, "a1", "a");
  AddPod("b-large", 900, "b0", "b");
  AddPod("p", 800);
  const std::string on_a = Victim("a-small", "a");
  EXPECT_EQ(Preempt("p", on_a + R"(,"b":{"Pods":[],"NumPDBViolations":0})"), PreemptionOf(on_a));
}

// Rule: a scheduler that hears first of the end of the pods that made room does not end others for the same pod.
TEST_F(ExtenderTest, WhileThoseThatWereEndedAreNotYetKnownToBeGoneNoOthersEnd) {
  AddShared("a", 1);
  AddShared("b", 1);
  AddPod("on-a", 900, "a0", "a");
  AddPod("on-b", 900, "b0", "b");
  AddPod("p", 800);
  const std::string on_a = Victim("on-a", "a"), on_b = Victim("on-b", "b");
  EXPECT_EQ(Preempt("p", on_a), PreemptionOf(on_a));
  EXPECT_EQ(Preempt("p", on_b), PreemptionOf(on_b)) << "it was not nominated: nobody has ended";
  EXPECT_EQ(Preempt("p", on_a), PreemptionOf(on_a));
  Nominate("p", "a");
  FreezePods();
  ASSERT_TRUE(server_.Delete("pods", {"team-a", "on-a"}));
  EXPECT_EQ(Preempt("p", on_b), PreemptionOf(""));
  Nominate("p", "");  // As the scheduler does then.
  clock_.Advance(9s);
  EXPECT_EQ(Preempt("p", on_b), PreemptionOf(""));
  clock_.Advance(2s);
  EXPECT_EQ(Preempt("p", on_b), PreemptionOf(on_b)) << "that was not what it lacked";
}

// Rule: who takes the room that was made for another makes it end others again.
TEST_F(ExtenderTest, RoomThatWasMadeForAPodAndTakenByAnotherIsMadeAgain) {
  AddShared("a", 1);
  AddShared("b", 1);
  AddPod("on-a", 900, "a0", "a");
  AddPod("on-b", 900, "b0", "b");
  AddPod("p", 800);
  const std::string on_b = Victim("on-b", "b");
  EXPECT_THAT(Preempt("p", Victim("on-a", "a")), HasSubstr("UID"));
  Nominate("p", "a");
  SetStatus("pods", {"team-a", "on-a"}, R"({"phase":"Succeeded"})");
  AddPod("thief", 500, "a0", "a");
  EXPECT_EQ(Preempt("p", on_b), PreemptionOf(on_b));
}

TEST_F(ExtenderTest, ARefusedPodIsChangedOnceThereIsRoom) {
  AddShared("a", 1);
  AddPod("x", 600, "a0", "a");
  AddPod("p", 600);
  const auto seen = [&] { return Live<kube::Pod>({"team-a", "p"})->metadata.Annotation(kRoomSeenAnnotation); };
  const auto look = [&] { ASSERT_TRUE(extender_.refused_pods().Reconcile({"", "refused-pods"}, {})); };
  EXPECT_THAT(Filter("p", R"(["a"])"), HasSubstr("400 are free at most"));
  look();
  EXPECT_EQ(seen(), "") << "there is no room";
  SetStatus("pods", {"team-a", "x"}, R"({"phase":"Succeeded"})");
  Settle();
  look();
  const std::string first(seen());
  EXPECT_NE(first, "");
  clock_.Advance(500ms);
  look();
  EXPECT_EQ(seen(), first) << "the scheduler needs a moment";
  clock_.Advance(2s);
  look();
  EXPECT_NE(seen(), first);
  EXPECT_EQ(Bind("p", "a"), kBound);
}

TEST_F(ExtenderTest, APodThatFitsSomewhereIsNotRefused) {
  AddShared("a", 1);
  AddShared("b", 1);
  AddPod("x", 600, "a0", "a");
  AddPod("p", 600);
  EXPECT_THAT(Filter("p", R"(["a","b"])"), HasSubstr("400 are free at most"));
  ASSERT_TRUE(extender_.refused_pods().Reconcile({"", "refused-pods"}, {}));
  EXPECT_EQ(Live<kube::Pod>({"team-a", "p"})->metadata.Annotation(kRoomSeenAnnotation), "");
}

TEST_F(ExtenderTest, APodThatFindsNoRoomWhenToldIsLeftAloneInTheEnd) {
  AddShared("a", 1);
  AddPod("p", 600);
  AddPod("x", 600, "a0", "a");
  EXPECT_THAT(Filter("p", R"(["a"])"), HasSubstr("400 are free at most"));
  SetStatus("pods", {"team-a", "x"}, R"({"phase":"Succeeded"})");
  Settle();
  std::set<std::string> told;
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(extender_.refused_pods().Reconcile({"", "refused-pods"}, {}));
    told.emplace(Live<kube::Pod>({"team-a", "p"})->metadata.Annotation(kRoomSeenAnnotation));
    clock_.Advance(5min);
  }
  EXPECT_EQ(told.size(), 8U) << "something else keeps it away";
}

TEST_F(ExtenderTest, WhatTheUserSaysItHasIsNotBelieved) {
  AddShared("a", 2);
  AddPod("p", 900);
  Edit("pods", {"team-a", "p"}, [](Json& pod) {
    pod["metadata"]["annotations"][api::kHeldGpusAnnotation] = R"({"c":{"gpu":"a1","more":[{"gpu":"a0"}]}})";
  });
  Settle();
  AddPod("q", 900);
  EXPECT_EQ(Bind("p", "a"), kBound);
  Settle();
  EXPECT_EQ(Bind("q", "a"), kBound) << "p has one GPU, not both";
}

TEST_F(ExtenderTest, APodThatIsNeverSeenBoundHoldsNothingOnceItHasGone) {
  AddShared("a", 1);
  AddPod("p", 600);
  AddPod("q", 600);
  ASSERT_TRUE(placer_.Take(*pods_.Get<kube::Pod>({"team-a", "p"}), "a"));
  EXPECT_THAT(Filter("q", R"(["a"])"), HasSubstr("400 are free at most"));
  ASSERT_TRUE(client_.Delete(kube::KindOf<kube::Pod>(), {"team-a", "p"}));
  Settle();
  EXPECT_THAT(Filter("q", R"(["a"])"), HasSubstr(R"("NodeNames":["a"])"));
}

TEST_F(ExtenderTest, AMemberOfAGangKeepsItsPlaceUntilItIsSeenBound) {
  AddShared("a", 2);
  Json member = kit::MakePod("m", kit::PodSpec(300, "{}", api::kGpuMilliResource), kit::MemberOf("g"), "team-a");
  Json& resources = (*member["spec"]["containers"].AsArray())[0]["resources"];
  resources["requests"] = Json(resources["limits"]);
  Create("pods", std::move(member));
  Settle();
  const auto pod = pods_.Get<kube::Pod>({"team-a", "m"});
  account_.AddPlace("team-a/g", {"a", account_.ShapeOf(*pod), "a1"});
  const auto gpus = placer_.Take(*pod, "a");
  ASSERT_TRUE(gpus) << gpus.error().message();
  EXPECT_EQ(*gpus, "a1") << "what was planned for its gang";
  EXPECT_EQ(account_.PlacesOf("team-a/g").size(), 1U) << "its controller has not seen it bound";
  placer_.GiveBack(*pod, "a");
  EXPECT_EQ(account_.PlacesOf("team-a/g").size(), 1U);
  EXPECT_EQ(Bind("m", "a"), kBound);
  Settle();
  EXPECT_EQ(account_.PlacesOf("team-a/g").size(), 0U);
}

TEST_F(ExtenderTest, MemoryDecidesTooWhichGpuAPackedPodGets) {
  AddShared("a", 2);
  AddPod("x", 100, "a0", "a");
  Edit("pods", {"team-a", "x"}, [](Json& pod) { pod["metadata"]["annotations"][api::kMemoryMiBAnnotation] = "70000"; });
  AddPod("y", 400, "a1", "a");
  AddPod("p", 500);
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(PlannedGpu("p"), "a1") << "10,000 MiB are left of a0";
}

// Rule: what is kept to answer faster changes no answer.
TEST_F(ExtenderTest, AnswersAreTheSameWithAndWithoutAnIndex) {
  std::minstd_rand random(7);
  const auto draw = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  for (int n = 0; n < 12; ++n) {
    const std::string node = "n" + std::to_string(n) + "x";
    AddShared(node, 1 + draw(2));
    const int milli = 100 * draw(10);
    if (milli > 0) AddPod("held-" + std::to_string(n), milli, node + "0", node);
  }
  for (const int milli : {100, 400, 700, 1000, 2000, 3000}) {
    const std::string name = "p" + std::to_string(milli);
    AddPod(name, milli);
    const auto answers = [&] {  // About a few nodes at a time: for many, an index is made.
      std::string all;
      for (const char* names : {R"(["n0x","n1x"])", R"(["n5x","n9x","unknown"])", R"(["n11x","n3x"])"}) {
        all += Filter(name, names) + Prioritize(name, names);
      }
      return all;
    };
    const std::string without = answers();
    (void)placer_.HasRoom(*pods_.Get<kube::Pod>({"team-a", name}));
    EXPECT_EQ(answers(), without) << milli;
  }
}

TEST_F(ExtenderTest, CallsAreMeasuredAndBadOnesAreTold) {
  EXPECT_THAT(Text(extender_.Filter("{}")), HasSubstr("bad: Pod: expected the pod to schedule"));
  EXPECT_THAT(metrics_.Text(), HasSubstr(R"(grus_extender_duration_seconds_count{verb="filter",result="bad"} 1)"));
}

}  // namespace
}  // namespace grus
