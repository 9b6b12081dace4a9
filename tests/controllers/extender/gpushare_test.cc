// SPDX-License-Identifier: Apache-2.0
// Pods that ask for aliyun.com/gpu-mem, by the calls of a scheduler, on an API server in this process.
#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <thread>

#include "controllers/cluster/pod_devices.h"
#include "controllers/extender/extender.h"
#include "crds/types/gpushare_names.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr char kBound[] = R"({"Error":""})";

class GpushareExtenderTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    extender_.refused_pods().FeedQueue(queue_);
    StartCaches();
    Settle();
  }
  // A node that offers GPUs of so many GiB: a0, a1, ... of node a, in this order.
  void AddShared(const std::string& name, const std::vector<int>& gibs) {
    Json node = kit::MakeNode(name, 0);
    Json inventory = Json::MakeArray();
    int sum = 0;
    for (std::size_t i = 0; i < gibs.size(); sum += gibs[i++]) {
      inventory.Append(Json::MakeObject(
          {{"uuid", name + std::to_string(i)}, {"memoryMiB", gibs[i] * 1024}, {"milli", 1000}, {"mode", "gpushare"}}));
    }
    node["metadata"]["annotations"][api::kGpuInventoryAnnotation] = kube::ToText(inventory);
    node["status"]["allocatable"][api::kGpuMemResource] = std::to_string(sum);
    Create("nodes", std::move(node));
    Settle();
  }
  // One container for each amount.
  static Json Pod(const std::string& name, const std::vector<std::string>& gibs) {
    Json pod = kit::MakePod(name, kit::PodSpec(1, "{}", api::kGpuMemResource), Json(), "team-a");
    Json::Array& containers = *pod["spec"]["containers"].AsArray();
    const Json container = containers[0];
    containers.clear();
    for (std::size_t i = 0; i < gibs.size(); ++i) {
      Json& one = containers.emplace_back(container);
      one["name"] = "c" + std::to_string(i);
      one["resources"]["limits"][api::kGpuMemResource] = gibs[i];
      one["resources"]["requests"] = Json(one["resources"]["limits"]);
    }
    return pod;
  }
  void AddPod(const std::string& name, const std::vector<std::string>& gibs) {
    Create("pods", Pod(name, gibs));
    Settle();
  }
  std::string Filter(const std::string& pod, const std::string& names) {
    return FilterText(kube::ToText(*server_.Get("pods", {"team-a", pod})), names);
  }
  std::string FilterText(const std::string& pod, const std::string& names) {
    return Text(extender_.Filter(R"({"Pod":)" + pod + R"(,"NodeNames":)" + names + "}"));
  }
  std::string Bind(const std::string& pod, const std::string& node) {
    return Text(extender_.Bind(R"({"PodName":")" + pod + R"(","PodNamespace":"team-a","Node":")" + node + R"("})"));
  }
  static std::string Text(const kube::Result<std::string>& answer) {
    return answer ? *answer : "bad: " + answer.error().message();
  }
  std::map<std::string, std::string> AnnotationsOf(const std::string& pod) {
    return Live<kube::Pod>({"team-a", pod})->metadata.annotations;
  }
  std::string IndexOf(const std::string& pod) { return AnnotationsOf(pod)[api::kGpushareIndex]; }

  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  kube::Informer& config_maps_ = Cache<UnhealthyGpus>();
  kube::Informer &claims_ = Cache<kube::ResourceClaim>(), &templates_ = Cache<kube::ResourceClaimTemplate>(),
                 &classes_ = Cache<kube::DeviceClass>(), &slices_ = Cache<kube::ResourceSlice>();
  PodDevices devices_{{claims_, templates_, classes_, slices_, &config_maps_}, log_};
  ClusterAccount account_{nodes_, pods_, clock_, Nominations::kAuto, nullptr, &devices_};
  kube::Registry metrics_;
  Extender extender_{client_, pods_, nodes_, account_, clock_, log_, metrics_};
};

TEST_F(GpushareExtenderTest, BindingWritesWhatTheContractHas) {
  AddShared("a", {8, 16});
  AddPod("p", {"10"});
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(Live<kube::Pod>({"team-a", "p"})->spec.node_name, "a");
  const auto now = std::chrono::nanoseconds(clock_.WallNow().time_since_epoch());
  const std::map<std::string, std::string> wanted = {{"ALIYUN_COM_GPU_MEM_IDX", "1"},
                                                     {"ALIYUN_COM_GPU_MEM_DEV", "16"},
                                                     {"ALIYUN_COM_GPU_MEM_POD", "10"},
                                                     {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
                                                     {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", std::to_string(now.count())},
                                                     {api::kPlannedGpuAnnotation, "a1"}};
  EXPECT_THAT(AnnotationsOf("p"), IsSupersetOf(wanted));
}

TEST_F(GpushareExtenderTest, EachGpuCountsByItsOwnMemory) {
  AddShared("a", {8, 16});
  AddShared("b", {12, 12});
  AddPod("p", {"14"});
  EXPECT_EQ(Filter("p", R"(["a","b"])"),
            R"({"NodeNames":["a"],"FailedNodes":{"b":"14 aliyun.com/gpu-mem on one GPU: 12 are free at most"}})");
}

TEST_F(GpushareExtenderTest, PodsOfEqualSizeThatComeTogetherAreNotSwapped) {
  AddShared("a", {8, 8});
  for (const char* pod : {"p", "q", "r"}) AddPod(pod, {"5"});
  EXPECT_EQ(Bind("q", "a"), kBound);
  EXPECT_EQ(Bind("p", "a"), kBound) << "whether or not its cache has seen q bound";
  EXPECT_THAT(Bind("r", "a"), HasSubstr("node a has no room for 5 aliyun.com/gpu-mem on one GPU: 3 are free at most"));
  EXPECT_EQ(IndexOf("q") + IndexOf("p"), "01");
  EXPECT_EQ(AnnotationsOf("q")[api::kPlannedGpuAnnotation], "a0") << "the agent goes by this name, not by an amount";
  EXPECT_EQ(AnnotationsOf("p")[api::kPlannedGpuAnnotation], "a1");
}

TEST_F(GpushareExtenderTest, ThePartsOfSeveralContainersLieOnOneGpu) {
  AddShared("a", {8, 16});
  AddPod("p", {"7", "5"});
  AddPod("q", {"9", "8"});
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(IndexOf("p"), "1");
  EXPECT_EQ(AnnotationsOf("p")[api::kGpusharePod], "12");
  EXPECT_THAT(Filter("q", R"(["a"])"), HasSubstr("17 aliyun.com/gpu-mem on one GPU: 8 are free at most"));
}

TEST_F(GpushareExtenderTest, WhatTheUserWroteIsNotBelieved) {
  AddShared("a", {8, 16});
  Json pod = Pod("p", {"4"});
  for (const char* key : {"ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD", "ALIYUN_COM_GPU_MEM_DEV"}) {
    pod["metadata"]["annotations"][key] = "1";
  }
  pod["metadata"]["annotations"][api::kGpushareAssigned] = "true";
  pod["metadata"]["annotations"][api::kGpushareAssumeTime] = "1";
  Create("pods", std::move(pod));
  Settle();
  AddPod("q", {"15"});
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(AnnotationsOf("p")[api::kGpushareDevice] + AnnotationsOf("p")[api::kGpusharePod] + IndexOf("p"), "840");
  EXPECT_EQ(AnnotationsOf("p")[api::kGpushareAssigned], "false");
  EXPECT_NE(AnnotationsOf("p")[api::kGpushareAssumeTime], "1");
  Edit("pods", {"team-a", "p"}, [](Json& bound) { bound["metadata"]["annotations"][api::kGpushareIndex] = "1"; });
  Settle();
  EXPECT_EQ(Bind("q", "a"), kBound) << "p holds what it was given, whatever it says later";
  EXPECT_EQ(IndexOf("q"), "1");
}

// Rule: between the decision and the news of it, what the pod was given counts.
TEST_F(GpushareExtenderTest, WhatTheUserWritesWhileAPodIsBoundMovesNothing) {
  AddShared("a", {8});
  AddPod("p", {"8"});
  AddPod("q", {"8"});
  const auto nominate = [](Json& pod) { pod["status"]["nominatedNodeName"] = "a"; };
  Edit("pods", {"team-a", "p"}, nominate, "status");
  Settle();
  PodPlacer placer(account_);
  ASSERT_TRUE(placer.Take(*pods_.Get<kube::Pod>({"team-a", "p"}), "a"));  // And its binding is on the way.
  Edit("pods", {"team-a", "p"}, [](Json& pod) {
    pod["metadata"]["labels"]["changed"] = "yes";
    pod["metadata"]["annotations"][api::kGpushareIndex] = "63";
    pod["metadata"]["annotations"][api::kPlannedGpuAnnotation] = "a7";
  });
  Settle();
  EXPECT_THAT(Bind("q", "a"), HasSubstr("no room"));
}

TEST_F(GpushareExtenderTest, AmountsThatMakeNoSenseAreNotGiven) {
  AddShared("a", {8, 16});
  AddPod("none", {"0"});
  AddPod("huge", {"17"});
  AddPod("vast", {"9223372036854775807", "9223372036854775807"});
  EXPECT_EQ(Filter("none", R"(["a"])"), R"({"NodeNames":["a"],"FailedNodes":{}})");
  EXPECT_EQ(Bind("none", "a"), kBound) << "it asks for nothing";
  EXPECT_EQ(IndexOf("none"), "");
  EXPECT_THAT(Filter("huge", R"(["a"])"), HasSubstr("17 aliyun.com/gpu-mem on one GPU: 16 are free at most"));
  EXPECT_THAT(Bind("huge", "a"), HasSubstr("node a has no room for 17 aliyun.com/gpu-mem"));
  EXPECT_THAT(Filter("vast", R"(["a"])"), HasSubstr(R"("NodeNames":[])"));
  EXPECT_THAT(Bind("vast", "a"), HasSubstr("node a has no room"));
  // The API server lets none of these through; whoever calls may send them.
  const std::map<std::string, std::string> answers = {
      {"-3", R"({"NodeNames":["a"],"FailedNodes":{}})"},
      {"-9223372036854775808", R"({"NodeNames":["a"],"FailedNodes":{}})"},
      {"1e30", R"({"NodeNames":[],"FailedNodes":{"a":"1125899906842624 aliyun.com/gpu-mem on one GPU: 16 are free at )"
               R"(most"}})"},
      {"many", R"(bad: Pod: spec.containers[0].resources.limits[aliyun.com/gpu-mem]: "many" is not a quantity)"},
      {"", R"(bad: Pod: spec.containers[0].resources.limits[aliyun.com/gpu-mem]: "" is not a quantity)"}};
  for (const auto& [amount, answer] : answers) {
    EXPECT_EQ(FilterText(kube::ToText(Pod("p", {amount})), R"(["a"])"), answer) << amount;
  }
  AddPod("p", {"16"});
  EXPECT_EQ(Bind("p", "a"), kBound) << "nothing of that counts";
}

TEST_F(GpushareExtenderTest, ANodeThatSaysItHasNoGpusIsNotDivided) {
  Json node = kit::MakeNode("a", 0);
  node["status"]["allocatable"][api::kGpuMemResource] = "16";
  node["status"]["allocatable"][api::kGpushareCountResource] = "0";
  node["status"]["capacity"] = Json(node["status"]["allocatable"]);
  Create("nodes", std::move(node));
  Settle();
  EXPECT_EQ(Text(extender_.Inspect("a")), R"({"nodes":[{"name":"a","totalGPU":0,"usedGPU":0,"devs":[]}]})");
  EXPECT_EQ(Text(extender_.Inspect("")), R"({"nodes":[]})");
  AddPod("p", {"8"});
  EXPECT_THAT(Filter("p", R"(["a"])"), HasSubstr("0 are free at most")) << "nobody could tell it a GPU";
  EXPECT_THAT(Bind("p", "a"), HasSubstr("no room"));
}

TEST_F(GpushareExtenderTest, WhereItsOwnPluginRunsPodsGetANumber) {
  Json node = kit::MakeNode("a", 0);
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list][api::kGpuMemResource] = "16";
    node["status"][list][api::kGpushareCountResource] = "2";
  }
  Create("nodes", std::move(node));
  Json old = Pod("old", {"5"});  // Bound by gpushare's own extender.
  old["metadata"]["annotations"][api::kGpushareIndex] = "0";
  old["spec"]["nodeName"] = "a";
  Create("pods", std::move(old));
  AddPod("p", {"4"});
  AddPod("q", {"5"});
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(IndexOf("p") + " of " + AnnotationsOf("p")[api::kGpushareDevice], "1 of 8");
  EXPECT_EQ(Text(extender_.Inspect("")),
            R"({"nodes":[{"name":"a","totalGPU":16,"usedGPU":9,"devs":[)"
            R"({"id":0,"totalGPU":8,"usedGPU":5,"pods":[{"name":"old","namespace":"team-a","usedGPU":5}]},)"
            R"({"id":1,"totalGPU":8,"usedGPU":4,"pods":[{"name":"p","namespace":"team-a","usedGPU":4}]}]}]})");
  EXPECT_THAT(Filter("q", R"(["a"])"), HasSubstr("5 aliyun.com/gpu-mem on one GPU: 4 are free at most"));
  Edit("pods", {"team-a", "p"}, [](Json& bound) { bound["metadata"]["annotations"][api::kGpushareIndex] = "0"; });
  Settle();
  EXPECT_THAT(Filter("q", R"(["a"])"), HasSubstr("4 are free at most")) << "p is where grus has put it";
}

TEST_F(GpushareExtenderTest, InspectionTellsWhatIsBoundAtOnce) {
  AddShared("b", {12});
  AddShared("a", {8, 16});
  AddPod("p", {"10"});
  AddPod("q", {"3", "2"});
  EXPECT_EQ(Bind("p", "a"), kBound);
  EXPECT_EQ(Bind("q", "b"), kBound);
  const std::string a =
      R"({"name":"a","totalGPU":24,"usedGPU":10,"devs":[{"id":0,"totalGPU":8,"usedGPU":0,"pods":[]},)"
      R"({"id":1,"totalGPU":16,"usedGPU":10,"pods":[{"name":"p","namespace":"team-a","usedGPU":10}]}]})";
  const std::string b =
      R"({"name":"b","totalGPU":12,"usedGPU":5,"devs":[)"
      R"({"id":0,"totalGPU":12,"usedGPU":5,"pods":[{"name":"q","namespace":"team-a","usedGPU":5}]}]})";
  EXPECT_EQ(Text(extender_.Inspect("")), R"({"nodes":[)" + a + "," + b + "]}");
  Settle();
  EXPECT_EQ(Text(extender_.Inspect("a")), R"({"nodes":[)" + a + "]}") << "likewise once its cache has seen it";
  EXPECT_EQ(Text(extender_.Inspect("c")), R"({"nodes":[],"error":"there is no node c"})");
  SetStatus("pods", {"team-a", "p"}, R"({"phase":"Succeeded"})");
  Settle();
  EXPECT_THAT(Text(extender_.Inspect("a")), AllOf(HasSubstr(R"("usedGPU":0)"), Not(HasSubstr("team-a"))));
}

TEST_F(GpushareExtenderTest, AGpuThatSomebodyHasTakenOutOfUseIsGivenToNobody) {
  AddShared("a", {8, 16});
  AddPod("p", {"4"});
  AddPod("q", {"4"});
  AddPod("r", {"10"});
  const auto list = [&](const std::string& ns, const std::string& name, const std::string& gpus) {
    Json map = Named("v1", "ConfigMap", name, ns);
    map["data"]["gpus"] = gpus;
    Create("configmaps", std::move(map));
    Settle();
  };
  list("kube-system", "unhealthy-gpu-b", "1");
  list("team-a", "unhealthy-gpu-a", "0,1");
  EXPECT_EQ(Bind("p", "a"), kBound) << "tenants' ConfigMaps say nothing";
  EXPECT_EQ(IndexOf("p"), "0");
  list("kube-system", "unhealthy-gpu-a", "1");
  EXPECT_THAT(Filter("r", R"(["a"])"), HasSubstr("10 aliyun.com/gpu-mem on one GPU: 4 are free at most"));
  EXPECT_THAT(Bind("r", "a"), HasSubstr("node a has no room"));
  EXPECT_THAT(Text(extender_.Inspect("a")),
              HasSubstr(R"({"id":1,"totalGPU":16,"usedGPU":0,"healthy":false,"pods":[]})"));
  Edit("configmaps", {"kube-system", "unhealthy-gpu-a"}, [](Json& map) { map["data"]["gpus"] = "0,1"; });
  Settle();
  EXPECT_THAT(Filter("q", R"(["a"])"), HasSubstr("4 aliyun.com/gpu-mem on one GPU: 0 are free at most"));
  EXPECT_THAT(Text(extender_.Inspect("a")), HasSubstr(R"("usedGPU":4,"healthy":false,"pods":[{"name":"p")"))
      << "whoever runs there stays";
  ASSERT_TRUE(client_.Delete(kube::KindOf<UnhealthyGpus>(), {"kube-system", "unhealthy-gpu-a"}));
  Settle();
  EXPECT_EQ(Bind("q", "a") + Bind("r", "a"), std::string(kBound) + kBound);
  EXPECT_EQ(IndexOf("q") + IndexOf("r"), "01");
}

TEST_F(GpushareExtenderTest, AHundredParallelBindsOverfillNoCard) {
  AddShared("a", {8, 16, 24});  // Of 3 GiB each: 2, 5 and 8 pods.
  constexpr int kPods = 100, kThreads = 20;
  for (int i = 0; i < kPods; ++i) Create("pods", Pod("p" + std::to_string(i), {"3"}));
  Settle();
  std::atomic<int> next = 0, bound = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int pod = next++; pod < kPods; pod = next++) bound += Bind("p" + std::to_string(pod), "a") == kBound;
      });
    }
  }
  EXPECT_EQ(bound, 15) << "every one that fits, and no more";
  std::map<std::string, int> used;
  for (int i = 0; i < kPods; ++i) {
    const auto pod = Live<kube::Pod>({"team-a", "p" + std::to_string(i)});
    EXPECT_EQ(pod->spec.node_name.empty(), pod->metadata.Annotation(api::kGpushareIndex).empty());
    if (!pod->spec.node_name.empty()) used[std::string(pod->metadata.Annotation(api::kGpushareIndex))] += 3;
  }
  EXPECT_EQ(used, (std::map<std::string, int>{{"0", 6}, {"1", 15}, {"2", 24}}));
}

}  // namespace
}  // namespace grus
