// SPDX-License-Identifier: Apache-2.0
// The memory that pods say for their thousandths of GPUs.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "controllers/policy/cluster_objects.h"
#include "controllers/policy/gang_planner.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

constexpr PoolPlacement kPack = PoolPlacement::kBinPack;
constexpr std::int64_t kMiBOfEach = 81'000;

// With GPU-1 and GPU-2 of 81,000 MiB.
NodeState NodeOfTwo(const std::string& name = "a") {
  kube::Node node;
  node.metadata.name = name;
  node.metadata.annotations = {
      {api::kGpuInventoryAnnotation,
       R"([{"uuid":"GPU-1","memoryMiB":81000,"milli":1000,"mode":"milli"},{"uuid":"GPU-2","memoryMiB":81000,"milli":1000,"mode":"milli"}])"}};
  node.status.allocatable = {{"cpu", kube::Quantity(1000)},
                             {"memory", kube::Quantity(std::int64_t{1} << 40)},
                             {"pods", kube::Quantity(110)},
                             {api::kGpuMilliResource, kube::Quantity(2000)}};
  return StateOf(node);
}

// `said`: empty for nothing.
kube::Pod PodOf(std::vector<std::int64_t> containers, const std::string& said) {
  kube::Pod pod;
  if (!said.empty()) pod.metadata.annotations = {{api::kMemoryMiBAnnotation, said}};
  for (const std::int64_t milli : containers) {
    kube::ResourceList& requests = pod.spec.containers.emplace_back().resources.requests;
    if (milli > 0) requests = {{api::kGpuMilliResource, kube::Quantity(milli)}};
  }
  return pod;
}
Resources Asked(std::int64_t milli, std::int64_t said = 0) {
  return RequestOf(PodOf({milli}, said == 0 ? "" : std::to_string(said)));
}

TEST(GpuMemory, EachContainerWithThousandthsHasWhatThePodSays) {
  EXPECT_EQ(RequestOf(PodOf({300}, "")).Extended(kSaidMemory), 0);
  EXPECT_EQ(RequestOf(PodOf({300}, "8192")).Extended(kSaidMemory), 8192);
  EXPECT_EQ(RequestOf(PodOf({300, 0, 200}, "8192")).Extended(kSaidMemory), 2 * 8192);
  EXPECT_EQ(RequestOf(PodOf({0}, "8192")).Extended(kSaidMemory), 0) << "it asks for no part";
  kube::Pod pod = PodOf({300}, "8192");
  pod.spec.init_containers = {pod.spec.containers.front()};
  EXPECT_EQ(RequestOf(pod).Extended(kSaidMemory), 8192) << "an init container has ended before";
  pod.spec.init_containers.front().restart_policy = "Always";
  EXPECT_EQ(RequestOf(pod).Extended(kSaidMemory), 2 * 8192) << "a sidecar has not";
  pod.spec.init_containers.push_back(pod.spec.containers.front());
  pod.spec.containers.clear();
  EXPECT_EQ(RequestOf(pod).Extended(kSaidMemory), 2 * 8192) << "an init container runs beside the sidecar";
  EXPECT_GT(RequestOf(PodOf({300}, "8Gi")).Extended(kSaidMemory), 1'000'000) << "senseless: it fits nowhere";
}

TEST(GpuMemory, SaidIsTakenOfOneGpu) {
  const Resources offered = NodeOfTwo().allocatable, request = Asked(300, 60'000);
  EXPECT_EQ(CopiesThatFit(offered, {}, request, 10), 2) << "of each GPU one, though thousandths would do for three";
  EXPECT_EQ(CopiesThatFit(offered, {}, Asked(300, 81'001), 10), 0);
  EXPECT_EQ(CopiesThatFit(offered, {}, Asked(300, 81'000), 10), 2);
  EXPECT_EQ(CopiesThatFit(offered, {}, Asked(300, 1), 10), 6);

  const Resources taken = OnGpu(request, "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, request, kPack), "GPU-2");
  EXPECT_EQ(ChooseGpu(offered, taken, Asked(300, 21'000), kPack), "GPU-1") << "just what is left there";
  EXPECT_EQ(ChooseGpu(offered, taken, Asked(300, 21'001), kPack), "GPU-2");
}

TEST(GpuMemory, InProportionFindsWhatIsLeftBesideWhatIsSaid) {
  const Resources offered = NodeOfTwo().allocatable, taken = OnGpu(Asked(10, 60'000), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, taken, Asked(259), kPack), "GPU-1") << "20,979 MiB of 21,000";
  EXPECT_EQ(ChooseGpu(offered, taken, Asked(260), kPack), "GPU-2") << "21,060 MiB";
  EXPECT_EQ(CopiesThatFit(offered, taken, Asked(100), 100), 2 + 10);
  // And the other way round.
  const Resources half = OnGpu(Asked(500), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, half, Asked(100, 40'500), kPack), "GPU-1");
  EXPECT_EQ(ChooseGpu(offered, half, Asked(100, 40'501), kPack), "GPU-2");
}

TEST(GpuMemory, OfAGpuThatIsSickOrClaimedNoneIsOffered) {
  NodeState node = NodeOfTwo();
  WithholdClaimedGpus({"gpu-2"}, node.allocatable);
  EXPECT_EQ(CopiesThatFit(node.allocatable, {}, Asked(300, 60'000), 10), 1);
}

TEST(GpuMemory, OfAGpuThatNobodyKnowsOfLimitsNothing) {
  NodeState node = NodeOfTwo();
  EXPECT_EQ(CopiesThatFit(node.allocatable, Asked(1, 99'999'999), Asked(300, 60'000), 10), 2)
      << "whoever holds so much, it is not known of which GPU, and the kubelet will refuse it";
  std::erase_if(node.allocatable.extended, [](const auto& amount) { return IsOnOneGpu(amount.first); });
  EXPECT_EQ(CopiesThatFit(node.allocatable, {}, Asked(300, 60'000), 10), 6) << "the agent has not written an inventory";
}

// What grus-node-agent lets start: rounded down for each pod, all of it at most what the GPU has.
std::int64_t AgentsMiB(std::int64_t milli, std::int64_t said) { return said > 0 ? said : kMiBOfEach * milli / 1000; }

TEST(GpuMemory, WhatIsPlannedTheAgentLetsStart) {
  int placed = 0, refused_for_memory = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
    const Resources offered = NodeOfTwo().allocatable;
    Resources taken;
    std::map<std::string, std::int64_t> mib, milli;
    for (int pod = 0; pod < 20; ++pod) {
      const std::int64_t wants = 1 + below(400), said = below(2) == 0 ? 0 : 1 + below(50'000);
      const Resources request = Asked(wants, said);
      const std::string gpu = ChooseGpu(offered, taken, request, kPack);
      ASSERT_EQ(CopiesThatFit(offered, taken, request, 1) == 1, !gpu.empty()) << seed;
      if (gpu.empty()) {
        for (const char* other : {"GPU-1", "GPU-2"}) {
          const bool has_milli = milli[other] + wants <= 1000;
          // Of each pod a fraction of a MiB may be rounded otherwise.
          const bool has_memory = mib[other] + AgentsMiB(wants, said) + pod <= kMiBOfEach;
          ASSERT_FALSE(has_milli && has_memory) << seed << ": there was room on " << other;
          refused_for_memory += has_milli ? 1 : 0;
        }
        continue;
      }
      ++placed;
      taken += OnGpu(request, gpu);
      milli[gpu] += wants;
      mib[gpu] += AgentsMiB(wants, said);
      ASSERT_LE(milli[gpu], 1000) << seed;
      ASSERT_LE(mib[gpu], kMiBOfEach) << seed;
    }
  }
  EXPECT_GT(placed, 1000);
  EXPECT_GT(refused_for_memory, 1000);
}

// Waits for all its members.
GangDemand GangOf(const std::string& key, std::vector<ShapePtr> members, std::int64_t waiting_since = 0) {
  GangDemand gang;
  gang.key = key;
  gang.needed = static_cast<int>(members.size());
  gang.waiting_since = waiting_since;
  gang.members = std::move(members);
  return gang;
}

TEST(GpuMemory, AGangWaitsUntilAllItsMembersHaveTheMemoryTheySay) {
  ClusterLedger ledger;
  GangPlanner planner(ledger);
  ledger.PutNode(NodeOfTwo());
  const ShapePtr shape = Shared(ShapeOf(PodOf({200}, "60000")));
  ledger.Bind("other", "a", OnGpu(Asked(200, 30'000), "GPU-2"), "team/other");
  planner.Put(GangOf("team/g", {shape, shape}));

  planner.Plan(0);
  ASSERT_FALSE(planner.StandingOf("team/g")->is_placed);
  EXPECT_EQ(planner.StandingOf("team/g")->fitting, 1);
  EXPECT_FALSE(planner.StandingOf("team/g")->can_never_fit);

  ledger.Release("other");
  planner.Plan(1);
  ASSERT_TRUE(planner.StandingOf("team/g")->is_placed);
  EXPECT_NE(ledger.PlacesOf("team/g")[0].gpu, ledger.PlacesOf("team/g")[1].gpu);
}

TEST(GpuMemory, KindsThatShareGpusOnlyInOneOrderArePlaced) {
  ClusterLedger ledger;
  GangPlanner planner(ledger);
  ledger.PutNode(NodeOfTwo());
  const ShapePtr large = Shared(ShapeOf(PodOf({400}, ""))), says = Shared(ShapeOf(PodOf({300}, "45000")));
  planner.Put(GangOf("team/g", {large, large, says, says}));

  planner.Plan(0);

  EXPECT_TRUE(planner.StandingOf("team/g")->is_placed) << "one of each on each GPU: 700 thousandths, 77,400 MiB";
}

TEST(GpuMemory, IsReservedForAGangThatWaits) {
  ClusterLedger ledger;
  GangPlanner planner(ledger);
  ledger.PutNode(NodeOfTwo());
  ledger.Bind("other", "a", OnGpu(Asked(500), "GPU-1"), "team/other");
  planner.Put(GangOf("team/waits", std::vector<ShapePtr>(2, Shared(ShapeOf(PodOf({100}, "70000"))))));
  planner.Plan(0);
  planner.Plan(20);
  ASSERT_TRUE(planner.StandingOf("team/waits")->has_reservation);

  planner.Put(GangOf("team/late", {Shared(ShapeOf(PodOf({300}, "")))}, 21));
  planner.Plan(21);
  EXPECT_FALSE(planner.StandingOf("team/late")->is_placed) << "24,300 MiB are free beside 70,000 on no GPU";

  ledger.Release("other");
  planner.Plan(22);
  EXPECT_TRUE(planner.StandingOf("team/waits")->is_placed);
}

// A gang that can be placed once all is free gets a reservation, too.
TEST(GpuMemory, IsReservedAlsoForKindsThatShareGpusOnlyInOneOrder) {
  ClusterLedger ledger;
  GangPlanner planner(ledger);
  ledger.PutNode(NodeOfTwo());
  for (const char* gpu : {"GPU-1", "GPU-2"}) ledger.Bind(gpu, "a", OnGpu(Asked(1000), gpu), "team/other");
  const ShapePtr large = Shared(ShapeOf(PodOf({400}, ""))), says = Shared(ShapeOf(PodOf({300}, "45000")));
  planner.Put(GangOf("team/g", {large, large, says, says}));

  planner.Plan(0);
  planner.Plan(20);

  EXPECT_TRUE(planner.StandingOf("team/g")->has_reservation);
}

TEST(GpuMemory, OfAGpuThatIsReservedNoneIsTakenIfAnotherHasRoom) {
  ClusterLedger ledger;
  GangPlanner planner(ledger);
  NodeState node = NodeOfTwo();
  node.allocatable.milli_cpu = 10'000;
  ledger.PutNode(node);
  Resources busy = OnGpu(Asked(300), "GPU-1");
  busy.milli_cpu = 9'000;
  ledger.Bind("busy", "a", busy, "team/other");
  ledger.Bind("says", "a", OnGpu(Asked(100, 60'000), "GPU-2"), "team/other");
  PodShape needs_cpu = ShapeOf(PodOf({100}, "50000"));
  needs_cpu.request.milli_cpu = 2'000;
  planner.Put(GangOf("team/waits", {Shared(needs_cpu)}));
  planner.Plan(0);
  planner.Plan(20);
  ASSERT_TRUE(planner.StandingOf("team/waits")->has_reservation);

  planner.Put(GangOf("team/late", {Shared(ShapeOf(PodOf({200}, "")))}, 21));
  planner.Plan(21);

  ASSERT_TRUE(planner.StandingOf("team/late")->is_placed);
  EXPECT_EQ(ledger.PlacesOf("team/late").front().gpu, "GPU-2") << "GPU-1 alone has 50,000 MiB for the one that waits";
}

TEST(GpuMemory, AGangThatNoClusterHoldsIsTold) {
  ClusterLedger ledger;
  GangPlanner planner(ledger);
  ledger.PutNode(NodeOfTwo());
  planner.Put(GangOf("team/g", std::vector<ShapePtr>(3, Shared(ShapeOf(PodOf({200}, "60000"))))));

  planner.Plan(0);
  const GangStanding& standing = *planner.StandingOf("team/g");
  EXPECT_TRUE(standing.can_never_fit);
  EXPECT_EQ(standing.capacity, 2);
}

}  // namespace
}  // namespace grus
