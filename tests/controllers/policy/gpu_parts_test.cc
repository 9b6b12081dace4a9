// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpu_parts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "controllers/policy/cluster_objects.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

kube::Node NodeWith(const std::string& inventory, const std::string& resource = api::kGpuMilliResource,
                    std::int64_t offered = 2000) {
  kube::Node node;
  node.metadata.name = "a";
  if (!inventory.empty()) node.metadata.annotations = {{api::kGpuInventoryAnnotation, inventory}};
  node.status.allocatable = {{"pods", kube::Quantity(110)}, {resource, kube::Quantity(offered)}};
  return node;
}

constexpr char kTwoGpus[] =
    R"([{"uuid":"GPU-1","memoryMiB":81000,"milli":1000,"mode":"milli"},{"uuid":"GPU-2","memoryMiB":81000,"milli":1000,"mode":"milli"}])";

Resources Parts(std::initializer_list<std::pair<std::string, std::int64_t>> amounts) {
  Resources resources;
  for (const auto& [name, amount] : amounts) resources.AddExtended(name, amount);
  return resources;
}
constexpr PoolPlacement kPack = PoolPlacement::kBinPack, kSpread = PoolPlacement::kSpread;
Resources Milli(std::int64_t amount) { return Parts({{api::kGpuMilliResource, amount}}); }

TEST(GpuParts, ANodeOffersTheGpusOfItsInventory) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;

  EXPECT_EQ(offered.Extended("ai.centauruscloud.io/gpu-milli"), 2000);
  EXPECT_EQ(offered.Extended("ai.centauruscloud.io/gpu-milli#GPU-1"), 1000);
  EXPECT_EQ(offered.Extended("ai.centauruscloud.io/gpu-milli#GPU-2"), 1000);
  EXPECT_EQ(TextOf(offered), "ai.centauruscloud.io/gpu-milli 2000");  // Users are told of the sum alone.
}

TEST(GpuParts, OfAGpuThatClaimsHavePartsOfNothingIsOffered) {
  Resources shared = StateOf(NodeWith(kTwoGpus)).allocatable, whole = Parts({{"nvidia.com/gpu", 2}});
  WithholdClaimedGpus({"gpu-2", "gpu-9"}, shared);
  EXPECT_EQ(shared.extended, Parts({{api::kGpuMilliResource, 1000},
                                    {"ai.centauruscloud.io/gpu-milli#GPU-1", 1000},
                                    {std::string(kSaidMemory) + "#GPU-1", 81000}})
                                 .extended);
  EXPECT_EQ(ChooseGpu(shared, {}, Milli(1000), kPack), "GPU-1");
  WithholdClaimedGpus({"gpu-1"}, shared);
  EXPECT_EQ(CopiesOnGpus(shared, {}, Milli(1), 10) * shared.Extended(api::kGpuMilliResource), 0);

  WithholdClaimedGpus({"gpu-1"}, whole);
  EXPECT_EQ(whole.Extended("nvidia.com/gpu"), 1);
  WithholdClaimedGpus({"gpu-1", "gpu-2"}, whole);
  EXPECT_EQ(whole.Extended("nvidia.com/gpu"), 0) << "never less than none";
}

TEST(GpuParts, AlnairsMemoryIsInGibAndItsComputeInPercent) {
  kube::Node node = NodeWith(R"([{"uuid":"GPU-1","memoryMiB":15900,"milli":1000,"mode":"alnair"}])");
  node.status.allocatable = {{"alnair/vgpu-compute", kube::Quantity(100)}, {"alnair/vgpu-memory", kube::Quantity(15)}};

  const Resources offered = StateOf(node).allocatable;

  EXPECT_EQ(offered.Extended("alnair/vgpu-memory#GPU-1"), 15);
  EXPECT_EQ(offered.Extended("alnair/vgpu-compute#GPU-1"), 100);
}

TEST(GpuParts, GpusharesMemoryIsInGibOfEachGpuAndCountsAsNoThousandths) {
  kube::Node node = NodeWith(
      R"([{"uuid":"GPU-1","memoryMiB":15900,"milli":1000,"mode":"gpushare"},
          {"uuid":"GPU-2","memoryMiB":40460,"milli":1000,"mode":"gpushare"}])");
  node.status.allocatable = {{"aliyun.com/gpu-mem", kube::Quantity(54)}, {"aliyun.com/gpu-count", kube::Quantity(2)}};

  const Resources offered = StateOf(node).allocatable;
  const Resources request = Parts({{"aliyun.com/gpu-mem", 20}});

  EXPECT_EQ(offered.Extended("aliyun.com/gpu-mem#GPU-1"), 15);
  EXPECT_EQ(offered.Extended("aliyun.com/gpu-mem#GPU-2"), 39);
  EXPECT_EQ(CopiesOnGpus(offered, {}, request, 10), 1);
  EXPECT_EQ(ChooseGpu(offered, {}, request, kPack), "GPU-2");
  EXPECT_EQ(MilliOfGpuParts(request), 0);
  EXPECT_FALSE(IsGpuPart("aliyun.com/gpu-count"));
}

TEST(GpuParts, AnInventoryThatMakesNoSenseAddsNothing) {
  const Resources plain = StateOf(NodeWith("")).allocatable;
  for (const char* text :
       {"no JSON", "{}", "[1, null, \"GPU-1\"]", R"([{"uuid":"","mode":"milli"}])",
        R"([{"uuid":"a#b","mode":"milli"}])", R"([{"uuid":7,"mode":"milli"}])", R"([{"uuid":"GPU-1"}])",
        R"([{"uuid":"GPU-1","mode":"whole"}])", R"([{"uuid":"GPU-1","mode":"alnair","memoryMiB":-5}])"}) {
    EXPECT_EQ(StateOf(NodeWith(text)).allocatable, plain) << text;
  }
  // What the kubelet does not offer is not there, whatever an annotation says.
  EXPECT_EQ(StateOf(NodeWith(kTwoGpus, "nvidia.com/gpu")).allocatable.extended.size(), 1U);
}

TEST(GpuParts, ASickGpuOffersNothing) {
  const Resources offered =
      StateOf(NodeWith(R"([{"uuid":"GPU-1","mode":"milli","healthy":false},{"uuid":"GPU-2","mode":"milli"}])"))
          .allocatable;
  EXPECT_EQ(offered.Extended("ai.centauruscloud.io/gpu-milli#GPU-1"), 0);
  EXPECT_EQ(offered.Extended("ai.centauruscloud.io/gpu-milli#GPU-2"), 1000);
}

TEST(GpuParts, AGpuThatIsListedTwiceCountsOnce) {
  const std::string twice = R"([{"uuid":"GPU-1","mode":"milli"},{"uuid":"GPU-1","mode":"milli"}])";
  EXPECT_EQ(StateOf(NodeWith(twice)).allocatable.Extended("ai.centauruscloud.io/gpu-milli#GPU-1"), 1000);
}

TEST(GpuParts, ACopyFitsOnOneGpuOrNotAtAll) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  Resources taken = OnGpu(Milli(500), "GPU-1");
  taken += OnGpu(Milli(500), "GPU-2");

  EXPECT_EQ(CopiesThatFit(offered, taken, Milli(500), 10), 2);
  EXPECT_EQ(CopiesThatFit(offered, taken, Milli(501), 10), 0);  // 1,000 thousandths are free, but of two GPUs.
  EXPECT_EQ(CopiesThatFit(offered, {}, Milli(300), 10), 6);
  EXPECT_EQ(CopiesThatFit(offered, {}, Milli(1001), 10), 0);
  EXPECT_EQ(CopiesThatFit(offered, Milli(1900), Milli(300), 10), 0);  // Whose GPU is not known still counts.
}

TEST(GpuParts, MemoryAndComputeLieOnTheSameGpu) {
  Resources offered;
  for (const char* gpu : {"#GPU-1", "#GPU-2"}) {
    offered += Parts({{"alnair/vgpu-memory", 16},
                      {"alnair/vgpu-compute", 100},
                      {std::string("alnair/vgpu-memory") + gpu, 16},
                      {std::string("alnair/vgpu-compute") + gpu, 100}});
  }
  const Resources asked = Parts({{"alnair/vgpu-memory", 10}, {"alnair/vgpu-compute", 60}});
  Resources taken = OnGpu(Parts({{"alnair/vgpu-memory", 12}, {"alnair/vgpu-compute", 10}}), "GPU-1");
  taken += OnGpu(Parts({{"alnair/vgpu-memory", 2}, {"alnair/vgpu-compute", 50}}), "GPU-2");

  EXPECT_EQ(CopiesThatFit(offered, {}, asked, 10), 2);
  EXPECT_EQ(CopiesThatFit(offered, taken, asked, 10), 0);  // Memory is free on the second, compute on the first.
  EXPECT_EQ(ChooseGpu(offered, taken, asked, kPack), "");
  EXPECT_EQ(ChooseGpu(offered, taken, Parts({{"alnair/vgpu-memory", 10}, {"alnair/vgpu-compute", 50}}), kPack),
            "GPU-2");
}

TEST(GpuParts, TheFullestGpuWithRoomIsChosen) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  const Resources taken = OnGpu(Milli(600), "GPU-2");

  EXPECT_EQ(ChooseGpu(offered, taken, Milli(400), kPack), "GPU-2");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(401), kPack), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(400), kPack, "GPU-1"), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(401), kPack, "GPU-2"), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(1001), kPack), "");
  EXPECT_EQ(ChooseGpu(offered, taken, GpuPod(1).request, kPack), "");
}

TEST(GpuParts, ToSpreadTheEmptiestGpuIsChosen) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  const Resources on_first = OnGpu(Milli(100), "GPU-1"), on_second = OnGpu(Milli(100), "GPU-2");

  EXPECT_EQ(ChooseGpu(offered, on_first, Milli(400), kSpread), "GPU-2");
  EXPECT_EQ(ChooseGpu(offered, on_second, Milli(400), kSpread), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, {}, Milli(400), kSpread), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, on_first, Milli(400), kSpread, "GPU-1"), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, on_second, Milli(400), kSpread, "GPU-2"), "GPU-2");
  EXPECT_EQ(ChooseGpu(offered, on_second, Milli(1001), kSpread), "");
}

TEST(GpuParts, APodSaysHowItsGpuIsChosenByAnnotationOrByOneOfAlnairsSchedulers) {
  kube::Pod pod;
  pod.spec.scheduler_name = "default-scheduler";
  EXPECT_EQ(PartPlacementOf(pod), std::nullopt);
  pod.spec.scheduler_name = "alnair-cost-saving";
  EXPECT_EQ(PartPlacementOf(pod), kPack);
  pod.spec.scheduler_name = "alnair-high-performance";
  EXPECT_EQ(PartPlacementOf(pod), kSpread);
  pod.metadata.annotations = {{api::kPartPlacementKey, "pack"}};
  EXPECT_EQ(PartPlacementOf(pod), kPack);  // It wins.
  pod.metadata.annotations = {{api::kPartPlacementKey, "Pack"}};
  EXPECT_EQ(PartPlacementOf(pod), kSpread);  // It is no such word.
}

TEST(GpuParts, OnlyPodsThatAskForPartsHaveAWish) {
  kube::Pod pod;
  pod.metadata.annotations = {{api::kPartPlacementKey, "spread"}};
  kube::Container& container = pod.spec.containers.emplace_back();
  container.resources.requests = {{kGpuResource, kube::Quantity(1)}};
  EXPECT_EQ(ShapeOf(pod).placement, std::nullopt);
  container.resources.requests = {{api::kGpuMilliResource, kube::Quantity(300)}};
  EXPECT_EQ(ShapeOf(pod).placement, kSpread);
}

TEST(GpuParts, ResourcesAreAlikeOnWhicheverGpu) {
  const Resources asked = Milli(300);
  EXPECT_TRUE(AreAlikeWithoutGpu(asked, asked));
  EXPECT_TRUE(AreAlikeWithoutGpu(OnGpu(asked, "GPU-1"), asked));
  EXPECT_TRUE(AreAlikeWithoutGpu(OnGpu(asked, "GPU-1"), OnGpu(asked, "GPU-2")));
  EXPECT_FALSE(AreAlikeWithoutGpu(OnGpu(Milli(301), "GPU-1"), asked));
  EXPECT_FALSE(AreAlikeWithoutGpu(OnGpu(asked, "GPU-1"), {}));
  EXPECT_FALSE(AreAlikeWithoutGpu(GpuPod(1).request, GpuPod(2).request));
  Resources with_cpu = asked;
  with_cpu.milli_cpu = 1;
  EXPECT_FALSE(AreAlikeWithoutGpu(with_cpu, asked));
  EXPECT_TRUE(IsOnGpu(OnGpu(asked, "GPU-1"), "GPU-1"));
  EXPECT_FALSE(IsOnGpu(OnGpu(asked, "GPU-1"), "GPU-2"));
  EXPECT_FALSE(IsOnGpu(asked, "GPU-1"));
}

TEST(GpuParts, GpusWithRoomAreThoseOnWhichOneMoreFits) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  const auto with_room = [&](const Resources& taken, const Resources& request) {
    return GpusWithRoom(offered, taken, request);
  };
  EXPECT_EQ(with_room({}, Milli(300)), (std::vector<std::string>{"GPU-1", "GPU-2"}));
  EXPECT_EQ(with_room(OnGpu(Milli(800), "GPU-1"), Milli(300)), (std::vector<std::string>{"GPU-2"}));
  Resources taken = OnGpu(Milli(800), "GPU-1");
  taken += OnGpu(Milli(701), "GPU-2");
  EXPECT_TRUE(with_room(taken, Milli(300)).empty());
  EXPECT_TRUE(with_room({}, Milli(2000)).empty()) << "whole ones are no part of one";
  EXPECT_TRUE(with_room({}, GpuPod(1).request).empty());
}

TEST(GpuParts, AMultipleOfAThousandIsSoManyGpusOfWhichNobodyHasAny) {
  EXPECT_EQ(WholeGpusOf(Milli(2000)), 2);
  for (const std::int64_t parts : {0, 300, 1000, 1500, 2001}) EXPECT_EQ(WholeGpusOf(Milli(parts)), 0) << parts;
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  const Resources both = OnGpu(Milli(2000), "GPU-1,GPU-2");

  EXPECT_EQ(CopiesOnGpus(offered, {}, Milli(2000), 10), 1);
  EXPECT_EQ(CopiesOnGpus(offered, {}, Milli(3000), 10), 0);
  EXPECT_EQ(CopiesOnGpus(offered, {}, Milli(1500), 10), 0) << "neither a part nor whole ones";
  EXPECT_EQ(CopiesOnGpus(offered, OnGpu(Milli(1), "GPU-2"), Milli(2000), 10), 0) << "somebody has a part of one";
  EXPECT_EQ(CopiesOnGpus(offered, both, Milli(1), 10), 0);
  EXPECT_EQ(ChooseGpu(offered, {}, Milli(2000), kPack), "GPU-1,GPU-2");
  EXPECT_EQ(ChooseGpu(offered, OnGpu(Milli(1), "GPU-2"), Milli(2000), kSpread, "GPU-1,GPU-2"), "");
  EXPECT_EQ(both.Extended("ai.centauruscloud.io/gpu-milli#GPU-1"), 1000);
  EXPECT_EQ(both.Extended("ai.centauruscloud.io/gpu-milli#GPU-2"), 1000);
  EXPECT_EQ(both.Extended(api::kGpuMilliResource), 2000);
  EXPECT_TRUE(IsOnGpu(both, "GPU-2,GPU-1"));
  EXPECT_FALSE(IsOnGpu(both, "GPU-2,GPU-3"));
  EXPECT_TRUE(AreAlikeWithoutGpu(both, Milli(2000)));
}

TEST(GpuParts, OfWholeGpusThePlannedOnesComeFirst) {
  Resources offered = Milli(4000);
  for (const char* gpu : {"GPU-1", "GPU-2", "GPU-3", "GPU-4"}) {
    offered.AddExtended(std::string(api::kGpuMilliResource) + "#" + gpu, 1000);
  }

  EXPECT_EQ(ChooseGpu(offered, {}, Milli(2000), kPack, "GPU-4,GPU-2"), "GPU-2,GPU-4");
  EXPECT_EQ(ChooseGpu(offered, OnGpu(Milli(5), "GPU-2"), Milli(2000), kPack, "GPU-4,GPU-2"), "GPU-1,GPU-4");
  EXPECT_EQ(ChooseGpu(offered, {}, Milli(2000), kPack, "GPU-9"), "GPU-1,GPU-2");
}

// What two containers of 1000 say of memory is of each.
TEST(GpuParts, WholeGpusWithLessMemoryThanAContainerSaysDoNotDo) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  kube::Pod pod;
  for (int i = 0; i < 2; ++i) {
    pod.spec.containers.emplace_back().resources.requests = {{api::kGpuMilliResource, kube::Quantity(1000)}};
  }
  pod.metadata.annotations = {{api::kMemoryMiBAnnotation, "81000"}};
  EXPECT_EQ(CopiesOnGpus(offered, {}, RequestOf(pod), 5), 1);
  pod.spec.containers[1].resources.requests = {{api::kGpuMilliResource, kube::Quantity(2000)}};
  pod.metadata.annotations = {{api::kMemoryMiBAnnotation, "100000"}};
  EXPECT_EQ(ChooseGpu(StateOf(NodeWith(kTwoGpus, api::kGpuMilliResource, 3000)).allocatable, {}, RequestOf(pod), kPack),
            "")
      << "no GPU has what the first container says";
  pod.spec.containers[1].resources.requests = {{api::kGpuMilliResource, kube::Quantity(1000)}};
  for (const char* too_much : {"81001", "lots"}) {
    pod.metadata.annotations = {{api::kMemoryMiBAnnotation, too_much}};
    EXPECT_EQ(CopiesOnGpus(offered, {}, RequestOf(pod), 5), 0) << too_much;
    EXPECT_EQ(ChooseGpu(offered, {}, RequestOf(pod), kPack), "") << too_much;
  }
}

// memory-mib is of containers that ask for parts; whole GPUs come with all that they have.
TEST(GpuParts, WholeGpusHaveAllTheirMemory) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  kube::Pod pod;
  pod.metadata.annotations = {{api::kMemoryMiBAnnotation, "100"}};
  pod.spec.containers.resize(1);
  pod.spec.containers[0].resources.requests = {{api::kGpuMilliResource, kube::Quantity(2000)}};

  const Resources request = RequestOf(pod);

  EXPECT_EQ(request.Extended(kSaidMemory), 0);
  EXPECT_EQ(OnGpu(request, "GPU-1,GPU-2").Extended(std::string(kSaidMemory) + "#GPU-1"), 0);
  EXPECT_EQ(CopiesOnGpus(offered, {}, request, 5), 1);
}

TEST(GpuParts, AWholeGpuIsAThousandThousandths) {
  EXPECT_EQ(MilliOfGpuParts(Milli(300)), 300);
  EXPECT_EQ(MilliOfGpuParts(Parts({{"alnair/vgpu-memory", 2}, {"alnair/vgpu-compute", 50}})), 500);
  EXPECT_EQ(MilliOfGpuParts(GpuPod(2).request), 0);
}

// --- the ledger

NodeState SharedNode(const std::string& name, int gpus) {
  NodeState node = GpuNode(name, 0);
  node.allocatable.milli_cpu = 1'000'000;  // GPUs alone are to be scarce.
  node.allocatable.pods = 1000;
  for (int i = 0; i < gpus; ++i) node.allocatable += OnGpu(Milli(1000), "GPU-" + name + std::to_string(i));
  return node;
}
PodShape PartPod(std::int64_t milli) {
  PodShape shape = GpuPod(0);
  shape.request += Milli(milli);
  return shape;
}

TEST(SharedGpus, APlaceKeepsItsGpuUntilThePodIsBoundThere) {
  ClusterLedger ledger;
  ledger.PutNode(SharedNode("a", 2));
  ledger.AddPlace("team/g", "a", Shared(PartPod(600)));
  ledger.AddPlace("team/g", "a", Shared(PartPod(600)));

  ASSERT_EQ(ledger.PlacesOf("team/g").size(), 2U);
  EXPECT_NE(ledger.PlacesOf("team/g")[0].gpu, ledger.PlacesOf("team/g")[1].gpu);
  EXPECT_EQ(ledger.RoomFor("me", PartPod(500), 10).copies, 0);
  EXPECT_EQ(ledger.RoomFor("me", PartPod(400), 10).copies, 2);

  ledger.Bind("pod", "a", PartPod(600).request, "team/g");  // Of which GPU, nobody has said.
  EXPECT_EQ(ledger.RoomFor("me", PartPod(500), 10).copies, 0);
  EXPECT_EQ(ledger.RoomFor("me", PartPod(400), 10).copies, 2);

  ledger.DropPlaces("team/g");
  ledger.Release("pod");
  EXPECT_EQ(ledger.FindNode("a")->used, Resources{});
  EXPECT_EQ(ledger.RoomFor("me", PartPod(1000), 10).copies, 2);
}

TEST(SharedGpus, APodEndsThePlaceOnItsOwnGpu) {
  ClusterLedger ledger;
  ledger.PutNode(SharedNode("a", 2));
  for (const char* gpu : {"GPU-a0", "GPU-a1"}) ledger.AddPlace("team/g", "a", Shared(PartPod(600)), gpu);
  for (const char* gpu : {"GPU-a1", "GPU-a0"}) {
    ledger.Bind(std::string("pod-") + gpu, "a", OnGpu(PartPod(600).request, gpu), "team/g");
    for (const char* each : {"GPU-a0", "GPU-a1"}) {
      EXPECT_EQ(ledger.FindNode("a")->used.Extended(std::string("ai.centauruscloud.io/gpu-milli#") + each), 600);
    }
  }
  EXPECT_TRUE(ledger.PlacesOf("team/g").empty());
}

TEST(SharedGpus, WhatTheAgentSaysReplacesWhatWasPlanned) {
  ClusterLedger ledger;
  ledger.PutNode(SharedNode("a", 2));
  ledger.AddPlace("team/g", "a", Shared(PartPod(600)));
  const std::string planned = ledger.PlacesOf("team/g")[0].gpu, other = planned == "GPU-a0" ? "GPU-a1" : "GPU-a0";

  ledger.Bind("pod", "a", OnGpu(PartPod(600).request, other), "team/g");

  EXPECT_TRUE(ledger.PlacesOf("team/g").empty());
  EXPECT_EQ(ledger.FindNode("a")->used.Extended("ai.centauruscloud.io/gpu-milli#" + other), 600);
  EXPECT_EQ(ledger.FindNode("a")->used.Extended("ai.centauruscloud.io/gpu-milli#" + planned), 0);

  ledger.Bind("pod", "a", PartPod(600).request, "team/g");  // Its labels changed: the GPU stays what it was.
  EXPECT_EQ(ledger.FindNode("a")->used.Extended("ai.centauruscloud.io/gpu-milli#" + other), 600);
}

TEST(SharedGpus, WhatTheAgentSaysAfterTheBindReplacesWhatWasPlanned) {
  ClusterLedger ledger;
  ledger.PutNode(SharedNode("a", 2));
  ledger.AddPlace("team/g", "a", Shared(PartPod(600)), "GPU-a0");
  ledger.Bind("pod", "a", PartPod(600).request, "team/g");
  EXPECT_EQ(ledger.FindNode("a")->used.Extended("ai.centauruscloud.io/gpu-milli#GPU-a0"), 600);

  ledger.Bind("pod", "a", OnGpu(PartPod(600).request, "GPU-a1"), "team/g");
  EXPECT_EQ(ledger.FindNode("a")->used.Extended("ai.centauruscloud.io/gpu-milli#GPU-a0"), 0);
  EXPECT_EQ(ledger.FindNode("a")->used.Extended("ai.centauruscloud.io/gpu-milli#GPU-a1"), 600);
}

TEST(SharedGpus, AGangOfPartsThatFitsOnlyInSumWaits) {
  ClusterLedger ledger;
  GangPlanner planner(ledger, 60);
  ledger.PutNode(SharedNode("a", 2));
  planner.Put(Gang("team/g", 3, Shared(PartPod(600))));  // 1,800 of 2,000 thousandths, but on two GPUs.
  planner.Plan(0);
  EXPECT_FALSE(planner.StandingOf("team/g")->is_placed);

  ledger.PutNode(SharedNode("b", 1));
  planner.Plan(1);
  EXPECT_TRUE(planner.StandingOf("team/g")->is_placed);
  EXPECT_EQ(ledger.PlacesOf("team/g").size(), 3U);
}

// How many GPUs the places of the owner lie on.
std::size_t GpusOf(const ClusterLedger& ledger, const std::string& owner) {
  std::set<std::string> gpus;
  for (const Place& place : ledger.PlacesOf(owner)) gpus.insert(place.node + "/" + place.gpu);
  return gpus.size();
}

PodShape Wishing(PodShape shape, PoolPlacement placement) {
  shape.placement = placement;
  return shape;
}

TEST(SharedGpus, AGangIsPackedOrSpreadAsItsPodsSayElseAsTheNodeSays) {
  for (const bool is_constrained : {false, true}) {
    for (const char* label : {"", "pack", "spread", "sideways"}) {
      for (const auto wish : {std::optional<PoolPlacement>(), std::optional(kPack), std::optional(kSpread)}) {
        ClusterLedger ledger;
        GangPlanner planner(ledger, 60);
        NodeState node = SharedNode("a", 4);
        if (*label != 0) node.labels[api::kPartPlacementKey] = label;
        ledger.PutNode(node);
        PodShape shape = PartPod(250);
        shape.placement = wish;
        if (is_constrained) shape.host_ports = {{80, "", ""}};  // Of the first alone.
        const PodShape other = [&] {
          PodShape without = shape;
          without.host_ports = {};
          return without;
        }();
        GangDemand gang = Gang("team/g", 1, Shared(shape));
        for (int i = 0; i < 3; ++i) gang.members.push_back(Shared(other));
        gang.needed = 4;
        planner.Put(gang);
        planner.Plan(0);

        const bool is_spread = wish ? *wish == kSpread : std::string(label) == "spread";
        ASSERT_EQ(ledger.PlacesOf("team/g").size(), 4U);
        EXPECT_EQ(GpusOf(ledger, "team/g"), is_spread ? 4U : 1U) << label << ", " << is_constrained;
      }
    }
  }
}

TEST(SharedGpus, MembersWithDifferentWishesEachGetTheirs) {
  ClusterLedger ledger;
  GangPlanner planner(ledger, 60);
  ledger.PutNode(SharedNode("a", 6));
  GangDemand gang = Gang("team/g", 3, Shared(Wishing(PartPod(200), kPack)));
  for (int i = 0; i < 3; ++i) gang.members.push_back(Shared(Wishing(PartPod(200), kSpread)));
  gang.needed = 6;
  planner.Put(gang);
  planner.Plan(0);

  std::map<std::string, int> packed, spread;
  for (const Place& place : ledger.PlacesOf("team/g")) ++(place.shape->placement == kPack ? packed : spread)[place.gpu];
  EXPECT_EQ(packed.size(), 1U);
  EXPECT_EQ(spread.size(), 3U);
  EXPECT_FALSE(spread.contains(packed.begin()->first));
}

TEST(SharedGpus, AGangThatSpreadsGoesToTheFreestNodes) {
  for (const PoolPlacement wish : {kPack, kSpread}) {
    ClusterLedger ledger;
    GangPlanner planner(ledger, 60);
    for (const char* name : {"a", "b"}) ledger.PutNode(SharedNode(name, 2));
    planner.Put(Gang("team/g", 2, Shared(Wishing(PartPod(200), wish))));
    planner.Plan(0);

    std::set<std::string> nodes;
    for (const Place& place : ledger.PlacesOf("team/g")) nodes.insert(place.node);
    EXPECT_EQ(nodes.size(), wish == kSpread ? 2U : 1U);
  }
}

TEST(SharedGpus, APlaceThatMovesIsSpreadOnItsNewNode) {
  ClusterLedger ledger;
  ledger.PutNode(SharedNode("a", 1));
  ledger.PutNode(SharedNode("b", 2));
  ledger.Bind("other", "b", OnGpu(PartPod(100).request, "GPU-b0"), "");
  ledger.AddPlace("team/g", "a", Shared(Wishing(PartPod(700), kSpread)));
  ledger.AddPlace("team/h", "b", Shared(PartPod(800)));
  ledger.Bind("pod", "a", PartPod(800).request, "team/h");  // The scheduler swapped them.

  ASSERT_EQ(ledger.PlacesOf("team/g").size(), 1U);
  EXPECT_EQ(ledger.PlacesOf("team/g")[0].node, "b");
  EXPECT_EQ(ledger.PlacesOf("team/g")[0].gpu, "GPU-b1");
}

// Random gangs of several kinds come and go; of each GPU no more than all is ever held, and room is what is counted GPU
// by GPU.
TEST(SharedGpus, NoGpuIsEverOverfull) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    ClusterLedger ledger;
    GangPlanner planner(ledger, 60);
    const int nodes = 1 + below(4);
    for (int i = 0; i < nodes; ++i)
      ledger.PutNode(SharedNode(std::string(1, static_cast<char>('a' + i)), 1 + below(4)));
    std::vector<std::string> running;
    int started = 0;
    for (int step = 0; step < 60; ++step) {
      const std::string key = "team/g" + std::to_string(step);
      GangDemand gang;
      gang.key = key;
      const int kinds = 1 + below(3);
      for (int kind = 0; kind < kinds; ++kind) {
        PodShape wanted = PartPod(below(4) == 0 ? 1000 * (1 + below(3)) : 50 * (1 + below(20)));
        if (const int wish = below(3); wish > 0) wanted.placement = wish == 1 ? kPack : kSpread;
        const ShapePtr shape = Shared(std::move(wanted));
        for (int copies = 1 + below(3); copies > 0; --copies) gang.members.push_back(shape);
      }
      gang.needed = static_cast<int>(gang.members.size());
      gang.waiting_since = step;
      planner.Put(gang);
      for (const std::string& done : planner.Plan(step)) {
        if (!planner.StandingOf(done) || !planner.StandingOf(done)->is_placed) continue;
        const std::vector<Place> places = ledger.PlacesOf(done);
        planner.Remove(done);
        ++started;
        int pod = 0;
        for (const Place& place : places) {
          ASSERT_FALSE(place.gpu.empty()) << "seed " << seed;
          // The agent's word comes with the bind, later, or never.
          const bool is_told = below(2) == 0;
          ledger.Bind(done + "-" + std::to_string(pod++), place.node, is_told ? place.Request() : place.shape->request,
                      done);
        }
        for (int i = 0; i < pod; ++i) running.push_back(done + "-" + std::to_string(i));
      }
      while (!running.empty() && below(3) == 0) {
        std::swap(running[static_cast<std::size_t>(below(static_cast<int>(running.size())))], running.back());
        ledger.Release(running.back());
        running.pop_back();
      }
      const PodShape probe = PartPod(50 * (1 + below(20))), whole = PartPod(1000 * (2 + below(2)));
      int room = 0;
      std::int64_t whole_room = 0;
      for (NodeId id = 0; id < ledger.node_limit(); ++id) {
        const LedgerNode& node = *ledger.NodeAt(id);
        std::int64_t sum = 0, free_gpus = 0;
        for (const auto& [name, offered] : node.state.allocatable.extended) {
          if (!name.starts_with("ai.centauruscloud.io/gpu-milli#")) continue;
          const std::int64_t used = node.used.Extended(name);
          ASSERT_LE(used, offered) << name << ", seed " << seed << ", step " << step;
          ASSERT_GE(used, 0) << name << ", seed " << seed;
          sum += used;
          free_gpus += used == 0 ? 1 : 0;
          room += static_cast<int>((offered - used) / probe.request.Extended(api::kGpuMilliResource));
        }
        ASSERT_EQ(sum, node.used.Extended(api::kGpuMilliResource)) << "seed " << seed;
        whole_room += free_gpus / WholeGpusOf(whole.request);
      }
      ASSERT_EQ(ledger.RoomFor("me", probe, 1000).copies, room) << "seed " << seed;
      ASSERT_EQ(ledger.IndexFor(probe)->copies(), room) << "seed " << seed;
      ASSERT_EQ(ledger.RoomFor("me", whole, 1000).copies, whole_room) << "seed " << seed;
      ASSERT_EQ(ledger.IndexFor(whole)->copies(), whole_room) << "seed " << seed;
    }
    ASSERT_GT(started, 3) << "seed " << seed;
  }
}

}  // namespace
}  // namespace grus
