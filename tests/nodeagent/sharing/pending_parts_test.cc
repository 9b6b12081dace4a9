// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/pending_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "tests/kit/must.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::IsEmpty;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

PartAmounts AmountsOfText(const std::string& limits) {
  const auto pod = kit::Must(kube::Decode<NodePod>(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"limits":)" +
      limits + "}}]}}"));
  return AmountsOf(pod->spec.containers.at(0).resources.limits);
}

TEST(PartAmounts, AreTheLimitsOfTheContainer) {
  const PartAmounts amounts = AmountsOfText(
      R"({"alnair/vgpu-memory":"2","alnair/vgpu-compute":50,"ai.centauruscloud.io/gpu-milli":"1k","aliyun.com/gpu-mem":"3",
          "cpu":"500m"})");
  EXPECT_EQ(amounts[PartResource::kMemory], 2);
  EXPECT_EQ(amounts[PartResource::kCompute], 50);
  EXPECT_EQ(amounts[PartResource::kMilli], 1000);
  EXPECT_EQ(amounts[PartResource::kGpuMem], 3);
  EXPECT_TRUE(AmountsOfText(R"({"cpu":"1","nvidia.com/gpu":"1","alnair/vgpu-memory":"0"})").is_zero());
}

TEST(PartAmounts, ThatNoGpuCanGiveAreMoreThanAnyHas) {
  EXPECT_EQ(AmountsOfText(R"({"alnair/vgpu-memory":"1e9"})")[PartResource::kMemory], 1'000'000'000);
  for (const std::string text : {"500m", "1500m", "-1", "-1e9", "0.1"}) {
    EXPECT_EQ(AmountsOfText(R"({"alnair/vgpu-memory":")" + text + "\"}")[PartResource::kMemory], kNever) << text;
  }
  EXPECT_GE(AmountsOfText(R"({"alnair/vgpu-memory":"99999999999999999999"})")[PartResource::kMemory], 1L << 62);
}

class PendingPartsTest : public ::testing::Test {
 protected:
  void SetUp() override { kit::Must(server_.Create("namespaces", kit::FromText(R"({"metadata":{"name":"a"}})"))); }
  void AddPod(const std::string& name, const std::string& node, const std::string& spec,
              const std::string& annotations = "{}", const std::string& status = "{}") {
    Json pod = kit::FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"a"}})");
    pod["metadata"]["name"] = name;
    pod["metadata"]["annotations"] = kit::FromText(annotations);
    pod["spec"] = kit::FromText(spec);
    pod["spec"]["nodeName"] = node;
    Json made = *kit::Must(server_.Create("pods", std::move(pod)));
    made["status"] = kit::FromText(status);
    kit::Must(server_.Update("pods", std::move(made), "status"));
  }
  std::vector<PartAsk> Asks() {
    pods_.Start();
    EXPECT_TRUE(pods_.WaitForSync(clock_.Now() + std::chrono::seconds(20)));
    return NodePendingParts(pods_, clock_).Asks().value();
  }
  static std::string Container(const std::string& name, const std::string& memory) {
    return R"({"name":")" + name + R"(","image":"a","resources":{"limits":{"alnair/vgpu-memory":")" + memory + "\"}}}";
  }

  const kube::SystemClock clock_;
  kube::testing::FakeApiServer server_{clock_};
  const kube::Log log_{kube::LogLevel::kOff};
  kube::Client client_{server_, nullptr, clock_};
  NodePods pods_{client_, "node-1", clock_, log_};
};

TEST_F(PendingPartsTest, NothingIsKnownBeforeTheFirstList) { EXPECT_FALSE(NodePendingParts(pods_, clock_).Asks()); }

TEST_F(PendingPartsTest, AreContainersOfThisNodeThatAskForParts) {
  AddPod("p", "node-1",
         R"({"initContainers":[)" + Container("first", "4") + R"(],"containers":[{"name":"side","image":"a"},)" +
             Container("main", "2") + "]}",
         R"({"sharing.ai.centauruscloud.io/planned-gpu":"GPU-1"})",
         R"({"phase":"Running","containerStatuses":[
             {"name":"main","image":"a","imageID":"a","ready":true,"restartCount":0,"containerID":"containerd://1"}]})");
  AddPod("other-node", "node-2", R"({"containers":[)" + Container("main", "2") + "]}");
  AddPod("plain", "node-1", R"({"containers":[{"name":"main","image":"a"}]})");
  AddPod("ended", "node-1", R"({"containers":[)" + Container("main", "2") + "]}", "{}", R"({"phase":"Failed"})");

  const std::vector<PartAsk> asks = Asks();
  ASSERT_EQ(asks.size(), 2u);
  EXPECT_EQ(asks[0].pod, (kube::ObjectKey{"a", "p"}));
  EXPECT_EQ(asks[0].container, "first") << "as the kubelet takes them";
  EXPECT_EQ(asks[0].amounts[PartResource::kMemory], 4);
  EXPECT_TRUE(asks[0].is_init);
  EXPECT_FALSE(asks[0].has_started);
  EXPECT_EQ(asks[1].container, "main");
  EXPECT_EQ(asks[1].amounts[PartResource::kMemory], 2);
  EXPECT_THAT(asks[1].planned_gpus, ::testing::ElementsAre("GPU-1"));
  EXPECT_TRUE(asks[1].has_started);
}

// What it has, the kubelet lists, and hands on to nobody.
TEST_F(PendingPartsTest, ASidecarIsNoInitContainer) {
  std::string sidecar = Container("side", "4");
  sidecar.insert(1, R"("restartPolicy":"Always",)");
  AddPod("p", "node-1",
         R"({"initContainers":[)" + Container("first", "1") + "," + sidecar + R"(],"containers":[)" +
             Container("main", "2") + "]}");

  const std::vector<PartAsk> asks = Asks();
  ASSERT_EQ(asks.size(), 3u);
  EXPECT_TRUE(asks[0].is_init);
  EXPECT_FALSE(asks[1].is_init);
  EXPECT_FALSE(asks[2].is_init);
}

TEST_F(PendingPartsTest, WholeGpusAreAPlanOfSeveralAndWhatThePodSaysOfMemoryIsNotOfThem) {
  AddPod("p", "node-1",
         R"({"containers":[{"name":"part","image":"a","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":"300"}}},
                           {"name":"whole","image":"a","resources":{"limits":{"ai.centauruscloud.io/gpu-milli":"2k"}}}]})",
         R"({"sharing.ai.centauruscloud.io/planned-gpu":"GPU-1,,GPU-2",
             "sharing.ai.centauruscloud.io/memory-mib":"5000"})");

  const std::vector<PartAsk> asks = Asks();
  ASSERT_EQ(asks.size(), 2u);
  EXPECT_THAT(asks[1].planned_gpus, ::testing::ElementsAre("GPU-1", "GPU-2"));
  EXPECT_EQ(asks[0].memory_mib, 5000);
  EXPECT_EQ(asks[1].memory_mib, 0);
  EXPECT_EQ(asks[1].amounts[PartResource::kMilli], 2000);
}

TEST_F(PendingPartsTest, APodSaysHowItsGpuIsChosenByAnnotationOrByOneOfAlnairsSchedulers) {
  const std::string main = R"("containers":[)" + Container("main", "2") + "]}";
  AddPod("a", "node-1", R"({"schedulerName":"alnair-cost-saving",)" + main);
  AddPod("b", "node-1", R"({"schedulerName":"alnair-high-performance",)" + main);
  AddPod("c", "node-1", "{" + main);
  AddPod("d", "node-1", "{" + main, R"({"sharing.ai.centauruscloud.io/placement":"spread"})");
  AddPod("e", "node-1", R"({"schedulerName":"alnair-high-performance",)" + main,
         R"({"sharing.ai.centauruscloud.io/placement":"pack"})");

  std::vector<std::optional<PartPlacement>> placements;
  for (const PartAsk& ask : Asks()) placements.push_back(ask.placement);
  constexpr PartPlacement kPack = PartPlacement::kPack, kSpread = PartPlacement::kSpread;
  EXPECT_THAT(placements, ::testing::ElementsAre(kPack, kSpread, std::nullopt, kSpread, kPack));
}

TEST_F(PendingPartsTest, APodThatTheKubeletHasHeardOfFirstIsAwaited) {
  EXPECT_THAT(Asks(), IsEmpty());
  AddPod("late", "node-1", R"({"containers":[)" + Container("main", "2") + "]}");
  const NodePendingParts pending(pods_, clock_);
  pending.Await({{"a", "late"}});
  EXPECT_EQ(pending.Asks().value().size(), 1U);
}

TEST_F(PendingPartsTest, APodThatNeverComesIsAwaitedForASecond) {
  const kube::TimePoint began = clock_.Now();
  NodePendingParts(pods_, clock_).Await({{"a", "late"}, {"a", "never"}});
  EXPECT_GE(clock_.Now() - began, std::chrono::seconds(1));
}

TEST_F(PendingPartsTest, AreNoneOnANodeWithoutSuchPods) { EXPECT_THAT(Asks(), IsEmpty()); }

}  // namespace
}  // namespace grus
