// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gpu_parts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "controllers/policy/cluster_objects.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

kube::Node NodeWith(const std::string& inventory, const std::string& resource = kGpuMilliResource,
                    std::int64_t offered = 2000) {
  kube::Node node;
  node.metadata.name = "a";
  if (!inventory.empty()) node.metadata.annotations = {{kGpuInventoryAnnotation, inventory}};
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
Resources Milli(std::int64_t amount) { return Parts({{kGpuMilliResource, amount}}); }

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
  EXPECT_EQ(shared.extended,
            Parts({{kGpuMilliResource, 1000}, {"ai.centauruscloud.io/gpu-milli#GPU-1", 1000}}).extended);
  EXPECT_EQ(ChooseGpu(shared, {}, Milli(1000)), "GPU-1");
  WithholdClaimedGpus({"gpu-1"}, shared);
  EXPECT_EQ(CopiesOnGpus(shared, {}, Milli(1), 10) * shared.Extended(kGpuMilliResource), 0);

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
  EXPECT_EQ(ChooseGpu(offered, taken, asked), "");
  EXPECT_EQ(ChooseGpu(offered, taken, Parts({{"alnair/vgpu-memory", 10}, {"alnair/vgpu-compute", 50}})), "GPU-2");
}

TEST(GpuParts, TheFullestGpuWithRoomIsChosen) {
  const Resources offered = StateOf(NodeWith(kTwoGpus)).allocatable;
  const Resources taken = OnGpu(Milli(600), "GPU-2");

  EXPECT_EQ(ChooseGpu(offered, taken, Milli(400)), "GPU-2");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(401)), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(400), "GPU-1"), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(401), "GPU-2"), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, Milli(1001)), "");
  EXPECT_EQ(ChooseGpu(offered, taken, GpuPod(1).request), "");
}

TEST(GpuParts, ThePodsGpusAreThoseOfTheAgentElseThatOfThePlan) {
  using Gpus = std::vector<std::string>;
  kube::Pod pod;
  EXPECT_EQ(GpusOf(pod), Gpus());
  pod.metadata.annotations = {{kPlannedGpuAnnotation, "GPU-1"}};
  EXPECT_EQ(GpusOf(pod), Gpus({"GPU-1"}));
  pod.metadata.annotations = {{kPlannedGpuAnnotation, "GPU-1"},
                              {kHeldGpusAnnotation, R"({"c":{"gpu":"GPU-2","milli":300}})"}};
  EXPECT_EQ(GpusOf(pod), Gpus({"GPU-2"}));
  pod.metadata.annotations = {
      {kHeldGpusAnnotation, R"({"c":{"gpu":"GPU-2"},"d":{"gpu":"GPU-1"},"e":{"gpu":"GPU-2"}})"}};
  EXPECT_EQ(GpusOf(pod), Gpus({"GPU-2", "GPU-1"}));
  for (const char* nonsense : {"x", "[]", "{}", R"({"c":{"gpu":"a#b"}})", R"({"c":7})"}) {
    pod.metadata.annotations = {{kHeldGpusAnnotation, nonsense}};
    EXPECT_EQ(GpusOf(pod), Gpus()) << nonsense;
  }
  pod.metadata.annotations = {{kPlannedGpuAnnotation, std::string(300, 'x')}};
  EXPECT_EQ(GpusOf(pod), Gpus());
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
        const ShapePtr shape = Shared(PartPod(50 * (1 + below(20))));
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
      const PodShape probe = PartPod(50 * (1 + below(20)));
      int room = 0;
      for (NodeId id = 0; id < ledger.node_limit(); ++id) {
        const LedgerNode& node = *ledger.NodeAt(id);
        std::int64_t sum = 0;
        for (const auto& [name, offered] : node.state.allocatable.extended) {
          if (!name.starts_with("ai.centauruscloud.io/gpu-milli#")) continue;
          const std::int64_t used = node.used.Extended(name);
          ASSERT_LE(used, offered) << name << ", seed " << seed << ", step " << step;
          ASSERT_GE(used, 0) << name << ", seed " << seed;
          sum += used;
          room += static_cast<int>((offered - used) / probe.request.Extended(kGpuMilliResource));
        }
        ASSERT_EQ(sum, node.used.Extended(kGpuMilliResource)) << "seed " << seed;
      }
      ASSERT_EQ(ledger.RoomFor("me", probe, 1000).copies, room) << "seed " << seed;
      ASSERT_EQ(ledger.IndexFor(probe)->copies(), room) << "seed " << seed;
    }
    ASSERT_GT(started, 3) << "seed " << seed;
  }
}

}  // namespace
}  // namespace grus
