// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/lone_part.h"

#include <gtest/gtest.h>

#include <string>

#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/placement.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

NodeState SharedNode(const std::string& name, int gpus) {
  NodeState node = GpuNode(name, 0);
  for (int i = 0; i < gpus; ++i) {
    Resources gpu;
    gpu.AddExtended(api::kGpuMilliResource, kWholeDevice);
    node.allocatable += OnGpu(gpu, "GPU-" + name + std::to_string(i));
  }
  return node;
}

PodShape PartPod(std::int64_t milli) {
  PodShape shape = GpuPod(0);
  if (milli > 0) shape.request.AddExtended(api::kGpuMilliResource, milli);
  return shape;
}

class LonePart : public ::testing::Test {
 protected:
  void Hold(const std::string& node, std::int64_t milli, const std::string& gpus) {
    const PodShape shape = PartPod(milli);
    ledger_.Bind("pod-" + std::to_string(++pods_), node, OnGpu(shape.request, gpus), "", Shared(shape));
  }

  // Where the planner sends a gang of one; "-": nowhere.
  std::string Place(PodShape shape, PoolPlacement in_pool = PoolPlacement::kBinPack) {
    const std::vector<ShapePtr> members = {Shared(std::move(shape))};
    const std::vector<GangPart> parts = PartsOf(ledger_, members);
    const GangPlaces places =
        PlaceGang(ledger_, {.members = &members, .parts = &parts, .needed = 1, .placement = in_pool});
    if (places.nodes.empty()) return "-";
    const std::string& node = ledger_.NodeAt(places.nodes[0])->state.name;
    return places.gpus.empty() ? node : node + " " + places.gpus[0];
  }

  ClusterLedger ledger_;
  int pods_ = 0;
};

// Whoever comes asks for 700 most often, and finds it on b as long as that stays as it is.
TEST_F(LonePart, TakesWhatIsOfLeastUseToThoseThatComeOften) {
  ledger_.PutNode(SharedNode("a", 1));
  ledger_.PutNode(SharedNode("b", 1));
  Hold("a", 700, "GPU-a0");
  Hold("b", 100, "GPU-b0");
  for (int i = 0; i < 20; ++i) Hold("elsewhere", 700, "GPU-x" + std::to_string(i));

  EXPECT_EQ(Place(PartPod(200)), "a GPU-a0");
  EXPECT_EQ(Place(PartPod(300)), "a GPU-a0");
}

// Where 600 and 500 are free, one of 100 takes what is too much for one of 500. The fullest GPU would be b's.
TEST_F(LonePart, LeavesHalvesToThoseThatAskForThem) {
  ledger_.PutNode(SharedNode("a", 1));
  ledger_.PutNode(SharedNode("b", 1));
  Hold("a", 400, "GPU-a0");
  Hold("b", 500, "GPU-b0");
  for (int i = 0; i < 20; ++i) Hold("elsewhere", 500, "GPU-x" + std::to_string(i));

  EXPECT_EQ(Place(PartPod(100)), "a GPU-a0");
}

TEST_F(LonePart, WithoutThousandthsInUseGoesWhereItAlwaysDid) {
  ledger_.PutNode(SharedNode("a", 2));

  EXPECT_EQ(Place(PartPod(300)), "a GPU-a0");
  EXPECT_EQ(Place(PartPod(2000)), "a GPU-a0,GPU-a1");
}

TEST_F(LonePart, WholeGpusBreakUpNoNodeThatOthersCouldFill) {
  ledger_.PutNode(SharedNode("a", 4));
  ledger_.PutNode(SharedNode("b", 4));
  Hold("b", 1000, "GPU-b0");
  Hold("b", 300, "GPU-b1");
  for (int i = 0; i < 5; ++i) Hold("elsewhere", 4000, "GPU-x0,GPU-x1,GPU-x2,GPU-x3");

  EXPECT_EQ(Place(PartPod(2000)), "b GPU-b2,GPU-b3");
  EXPECT_EQ(Place(PartPod(3000)), "a GPU-a0,GPU-a1,GPU-a2");
  EXPECT_EQ(Place(PartPod(5000)), "-");
  EXPECT_EQ(Place(PartPod(1500)), "-") << "neither a part nor whole ones";
}

// Its CPUs would leave the free GPUs of b without any.
TEST_F(LonePart, APodWithoutGpusStaysAwayFromFreeGpus) {
  for (const char* name : {"a", "b"}) {
    NodeState node = SharedNode(name, 1);
    node.allocatable.milli_cpu = 2000;
    ledger_.PutNode(node);
  }
  Hold("a", 1000, "GPU-a0");
  for (int i = 0; i < 5; ++i) Hold("elsewhere", 500, "GPU-x" + std::to_string(i));
  PodShape cpu_only = PartPod(0);

  EXPECT_EQ(Place(cpu_only), "a");
  cpu_only.request.milli_cpu = 2000;
  EXPECT_EQ(Place(cpu_only), "b") << "a has no room for it";
}

// Typical pods are those that tolerate the taint of the nodes with GPUs, as all that run there do.
TEST_F(LonePart, ATaintOfTheNodesChangesNothing) {
  const std::vector<kube::Toleration> tolerations = {{.key = "nvidia.com/gpu", .op = "Exists"}};
  for (const char* name : {"a", "b"}) {
    NodeState node = SharedNode(name, 1);
    node.taints = {{.key = "nvidia.com/gpu", .value = "", .effect = "NoSchedule"}};
    ledger_.PutNode(node);
  }
  PodShape tolerant = PartPod(500);
  tolerant.tolerations = tolerations;
  for (int i = 0; i < 20; ++i) {
    ledger_.Bind("typical-" + std::to_string(i), "elsewhere", tolerant.request, "", Shared(tolerant));
  }
  Hold("a", 400, "GPU-a0");
  Hold("b", 500, "GPU-b0");
  PodShape small = PartPod(100);
  small.tolerations = tolerations;

  EXPECT_EQ(Place(small), "a GPU-a0");
}

// Half of the pods can only use b: what is free on a counts for the other half.
TEST_F(LonePart, WhoMayNotUseANodeDoesNotCountThere) {
  ledger_.PutNode(SharedNode("a", 2));
  ledger_.PutNode(SharedNode("b", 2));
  PodShape bound_to_b = PartPod(1000);
  bound_to_b.node_selector = {{"kubernetes.io/hostname", "b"}};
  for (int i = 0; i < 20; ++i) {
    ledger_.Bind("fixed-" + std::to_string(i), "elsewhere", OnGpu(bound_to_b.request, "GPU-x" + std::to_string(i)), "",
                 Shared(bound_to_b));
  }

  EXPECT_EQ(Place(PartPod(400)), "a GPU-a0");
}

TEST_F(LonePart, IsSpreadIfItOrItsPoolOrItsNodeSaysSo) {
  ledger_.PutNode(SharedNode("a", 2));
  Hold("a", 700, "GPU-a0");
  ASSERT_EQ(Place(PartPod(300)), "a GPU-a0");

  PodShape spread = PartPod(300);
  spread.placement = PoolPlacement::kSpread;
  EXPECT_EQ(Place(spread), "a GPU-a1");
  NodeState labelled = SharedNode("a", 2);
  labelled.labels = {{"kubernetes.io/hostname", "a"}, {api::kPartPlacementKey, "spread"}};
  ledger_.PutNode(labelled);
  EXPECT_EQ(Place(PartPod(300)), "a GPU-a1");
  EXPECT_EQ(Place(PartPod(300), PoolPlacement::kSpread), "a GPU-a1");
}

TEST_F(LonePart, KnowsOfEachChangeOfTheNodes) {
  ledger_.PutNode(SharedNode("a", 1));
  ledger_.PutNode(SharedNode("b", 1));
  for (int i = 0; i < 100; ++i) Hold("elsewhere", 700, "GPU-x" + std::to_string(i));
  Hold("a", 700, "GPU-a0");
  const std::string first = "pod-" + std::to_string(pods_);
  const std::shared_ptr<const FitIndex> index = ledger_.IndexFor(PartPod(300));  // Keeps what was computed.
  ASSERT_EQ(Place(PartPod(300)), "a GPU-a0");

  ledger_.Release(first);
  Hold("b", 700, "GPU-b0");

  EXPECT_EQ(Place(PartPod(300)), "b GPU-b0");
}

// --- what is typical

Resources Asking(std::int64_t milli) { return PartPod(milli).request; }

TEST(PartMix, IsThoseThatHoldAnyNow) {
  PartMix mix;
  const NodeState node = SharedNode("a", 1);
  mix.Count(GpuPod(2).request, nullptr, 1);
  EXPECT_TRUE(mix.is_empty()) << "whole GPUs of others do not count";
  for (int i = 0; i < 3; ++i) mix.Count(Asking(500), nullptr, 1);
  mix.Count(Asking(2000), nullptr, 1);

  std::vector<TypicalPod> typical = mix.TypicalOn(0, node, 1);
  ASSERT_EQ(typical.size(), 2U);
  EXPECT_EQ(typical[0].request, (GpuRequest{1000, 1, 500}));
  EXPECT_DOUBLE_EQ(typical[0].share, 0.75);
  EXPECT_EQ(typical[1].request, (GpuRequest{1000, 2, kWholeDevice}));

  for (int i = 0; i < 3; ++i) mix.Count(Asking(500), nullptr, -1);
  typical = mix.TypicalOn(0, node, 1);
  ASSERT_EQ(typical.size(), 1U);
  EXPECT_EQ(typical[0].request.devices, 2);
  mix.Count(Asking(2000), nullptr, -1);
  EXPECT_TRUE(mix.is_empty());
}

TEST(PartMix, IsLookedAtAgainAfterOneChangeForEach64ThatAreHeld) {
  PartMix mix;
  for (int i = 0; i < 640; ++i) mix.Count(Asking(500), nullptr, 1);
  const std::uint64_t version = mix.version();
  for (int i = 0; i < 10; ++i) mix.Count(Asking(300), nullptr, 1);
  EXPECT_EQ(mix.version(), version);
  mix.Count(Asking(300), nullptr, 1);
  EXPECT_NE(mix.version(), version);
}

TEST(PartMix, PodsOfManyJobsThatAskForTheSameAreOneKind) {
  PartMix mix;
  for (int i = 0; i < 1000; ++i) {
    PodShape shape = PartPod(500);
    shape.ns = "team-" + std::to_string(i);
    shape.labels = {{"job", std::to_string(i)}};
    shape.request.memory_bytes = i;
    mix.Count(shape.request, &shape, 1);
  }
  EXPECT_EQ(mix.TypicalOn(0, SharedNode("a", 1), 1).size(), 1U);
}

TEST(PartMix, KnowsOfSixtyFourKindsAtMost) {
  PartMix mix;
  for (int i = 1; i <= 900; ++i) mix.Count(Asking(i), nullptr, 1);
  EXPECT_EQ(mix.TypicalOn(0, SharedNode("a", 1), 1).size(), 64U);
}

TEST(PartMix, MoreThanAGpuHasFitsNowhere) {
  for (const std::int64_t milli : {std::int64_t{1500}, std::int64_t{1} << 40, std::int64_t{4'000'000'000'000}}) {
    const GpuRequest asked = GpuRequestOf(Asking(milli));
    EXPECT_FALSE(Fits({64'000, {1000, 1000, 1000}, 0}, asked)) << milli;
  }
}

}  // namespace
}  // namespace grus
