// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/claimed_gpus.h"

#include <gtest/gtest.h>

#include <climits>

#include "controllers/policy/cluster_ledger.h"
#include "controllers/policy/gpu_parts.h"

namespace grus {
namespace {

constexpr std::int64_t kGpuMiB = 81920;

Resources NodeOf(int gpus) {
  Resources node{.milli_cpu = 64'000, .memory_bytes = 1 << 30, .pods = 110, .extended = {}};
  for (int i = 0; i < gpus; ++i) AddClaimableGpu("gpu-" + std::to_string(i), kWholeGpuMilli, kGpuMiB, node);
  return node;
}

Resources Asking(std::initializer_list<ClaimedPart> parts) {
  Resources request{.milli_cpu = 0, .memory_bytes = 0, .pods = 1, .extended = {}};
  for (const ClaimedPart& part : parts) AddClaimedPart(part, request);
  return request;
}

ClaimedPart Part(std::int64_t milli, std::int64_t mib = 1, std::int64_t count = 1) { return {milli, mib, count}; }

// What a pod holds to which the scheduler gave a part of that GPU.
Resources Holding(const char* device, std::int64_t milli, std::int64_t mib) {
  ClaimedPart part = Part(milli, mib);
  part.device = device;
  part.given_mib = mib;
  return Asking({part});
}

TEST(ClaimedGpus, CopiesFitByTheRoomOnEachGpu) {
  struct Case {
    const char* what;
    Resources request, taken;
    int want;
  };
  Resources taken = Holding("gpu-0", 500, 1);
  for (const Case& c : {
           Case{"three of 600 on two", Asking({Part(600)}), {}, 2},
           Case{"of 300", Asking({Part(300)}), {}, 6},
           Case{"beside one that has half", Asking({Part(600)}), taken, 1},
           Case{"the sum would do", Asking({Part(400)}), taken, 3},
           Case{"two of each pod", Asking({Part(400, 1, 2)}), {}, 2},
           Case{"whole ones", Asking({ClaimedPart()}), {}, 2},
           Case{"a whole one beside a part", Asking({ClaimedPart()}), taken, 1},
           Case{"unequal ones", Asking({Part(700), Part(300)}), {}, 2},
           Case{"unequal ones, on two GPUs", Asking({Part(700), Part(600)}), {}, 1},
           Case{"memory", Asking({Part(100, 30'000)}), {}, 4},
           Case{"all memory, by a claim that names none", Asking({Part(100, kWholeGpuMemory)}), {}, 2},
           Case{"all memory, where some is taken", Asking({Part(100, kWholeGpuMemory)}), taken, 1},
           Case{"more than a GPU has", Asking({Part(1001)}), {}, 0},
           Case{"more than a node has", Asking({Part(1000, 1, 3)}), {}, 0},
       }) {
    EXPECT_EQ(CopiesThatFit(NodeOf(2), c.taken, c.request, 100), c.want) << c.what;
  }
}

TEST(ClaimedGpus, ANodeWithoutGpusForClaimsHasNoRoom) {
  EXPECT_EQ(CopiesThatFit(NodeOf(0), {}, Asking({Part(1)}), 100), 0);
}

TEST(ClaimedGpus, WhatIsPlannedTakesRoomOnTheFirstGpuThatHasItAndGivesItBack) {
  const Resources node = NodeOf(2), request = Asking({Part(600, 10), Part(300, 20)});
  const std::string first = ChooseGpu(node, {}, request, PoolPlacement::kBinPack);
  Resources taken = OnGpu(request, first);
  EXPECT_EQ(CopiesThatFit(node, taken, Asking({Part(700)}), 9), 1);
  EXPECT_EQ(CopiesThatFit(node, taken, Asking({Part(100)}), 99), 11);
  const Resources more = OnGpu(request, ChooseGpu(node, taken, request, PoolPlacement::kBinPack));
  taken += more;
  EXPECT_EQ(CopiesThatFit(node, taken, Asking({Part(200)}), 9), 0) << "100 are left of each";
  taken -= more;
  taken -= OnGpu(request, first);
  EXPECT_EQ(taken, Resources()) << "nothing is left behind";
}

TEST(ClaimedGpus, APodThatIsToldItsGpuIsAlikeToItsPlan) {
  EXPECT_TRUE(AreAlikeWithoutGpu(Holding("gpu-1", 300, 7), Asking({Part(300, 7)})));
  EXPECT_FALSE(AreAlikeWithoutGpu(Holding("gpu-1", 300, 7), Asking({Part(301, 7)})));
}

TEST(ClaimedGpus, WhatARequestDoesNotNameIsAllOfAGpu) {
  EXPECT_EQ(PartAskedBy(nullptr), ClaimedPart());
  const kube::ResourceList milli = {{"milli", kube::Quantity(300)}},
                           both = {{"memory", kube::Quantity((5 << 20) + 1)}, {"milli", kube::Quantity(300)}};
  EXPECT_EQ(PartAskedBy(&milli), Part(300, kWholeGpuMemory));
  EXPECT_EQ(PartAskedBy(&both), Part(300, 6));
}

TEST(ClaimedGpus, NumbersThatMakeNoSenseAreAtMostAGpuAndNeverNothing) {
  struct Case {
    std::int64_t milli, want_asked, want_given;
  };
  for (const Case& c : {Case{INT64_MAX, 99'999, 1000}, Case{1001, 1001, 1000}, Case{0, 1, 1}, Case{-1, 1, 1000},
                        Case{INT64_MIN, 1, 1000}}) {
    const kube::ResourceList list = {{"milli", kube::Quantity(c.milli)}};
    kube::DeviceAllocation given{.request = "r"};
    given.consumed_capacity = list;
    EXPECT_EQ(PartAskedBy(&list).milli, c.want_asked) << c.milli;
    EXPECT_EQ(PartGivenBy(given, kGpuMiB).milli, c.want_given) << c.milli;
  }
  Resources huge = Asking({Part(99'999, 1, INT64_MAX)});
  EXPECT_GT(MilliOfGpuParts(huge), 0);
  EXPECT_EQ(CopiesThatFit(NodeOf(8), {}, huge, 5), 0);
}

TEST(ClaimedGpus, AllMemoryThatTheSchedulerGaveIsAllAsItWasAsked) {
  kube::DeviceAllocation given{.request = "r"};
  given.consumed_capacity = {{"memory", kube::Quantity(kGpuMiB << 20)}, {"milli", kube::Quantity(300)}};
  const ClaimedPart part = PartGivenBy(given, kGpuMiB);
  EXPECT_EQ(part.memory_mib, kWholeGpuMemory);
  EXPECT_EQ(part.given_mib, kGpuMiB);
}

TEST(ClaimedGpus, TooManyClaimsFitNowhereAndCountAsARack) {
  Resources request;
  AddTooManyClaims(request);
  EXPECT_EQ(CopiesThatFit(NodeOf(100), {}, request, 1), 0);
  EXPECT_EQ(MilliOfGpuParts(request), 64'000);
}

TEST(ClaimedGpus, MessagesNameTheSumAlone) {
  EXPECT_EQ(TextOf(Holding("gpu-0", 300, 5)), "ai.centauruscloud.io/gpu-milli by claims 300");
}

// Of the ledger.
TEST(ClaimedGpus, APlaceHoldsRoomOnOneGpuUntilThePodSaysWhichItHas) {
  ClusterLedger ledger;
  NodeState node;
  node.name = "n";
  node.allocatable = NodeOf(2);
  ledger.PutNode(node);
  PodShape shape;
  shape.request = Asking({Part(600)});
  const auto shared = std::make_shared<const PodShape>(shape);
  const auto room = [&] { return ledger.RoomFor("other", shape, 10).copies; };
  ledger.AddPlace("gang", "n", shared);
  EXPECT_EQ(room(), 1);
  EXPECT_EQ(ledger.PlacesOf("gang").front().ToldGpu(), "") << "the scheduler chooses";

  ledger.Bind("pod", "n", shape.request, "gang");
  EXPECT_EQ(room(), 1) << "not told yet: as planned";
  ledger.Bind("pod", "n", Holding("gpu-1", 600, 1), "gang");
  ledger.Bind("second", "n", Holding("gpu-1", 400, 1), "");
  EXPECT_EQ(room(), 1) << "all on one GPU";
  ledger.Release("pod");
  EXPECT_EQ(room(), 2);
}

}  // namespace
}  // namespace grus
