// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/held_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const auto kAlnair = ResourcesOf(SharingMode::kAlnair);

TEST(HeldParts, AreThoseOfTheResources) {
  const std::vector<HeldParts> parts =
      PartsOf({{"a", "p", "c", {{"alnair/vgpu-memory", {"G_10", "G_9", "nonsense"}}, {"other/thing", {"x_1"}}}},
               {"a", "q", "c", {{"nvidia.com/gpu", {"G"}}}}},
              kAlnair);

  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].pod, (kube::ObjectKey{"a", "p"}));
  EXPECT_THAT(parts[0].ids, ElementsAre(Pair(PartResource::kMemory, ElementsAre(PartId{"G", 9}, PartId{"G", 10}))));
  EXPECT_EQ(parts[0].amounts()[PartResource::kMemory], 2);
  EXPECT_THAT(parts[0].gpus(), ElementsAre("G"));
}

TEST(HeldParts, WholeGpusAreAllIdsOfTwoOrMore) {
  const auto of = [](std::initializer_list<std::pair<std::string, int>> counts) {
    HeldParts held;
    for (const auto& [gpu, count] : counts) {
      for (int i = 0; i < count; ++i) held.ids[PartResource::kMilli].push_back({gpu, i});
    }
    return held;
  };
  EXPECT_TRUE(of({{"A", 1000}, {"B", 1000}}).has_whole_gpus());
  EXPECT_FALSE(of({{"A", 1000}}).has_whole_gpus()) << "it is a part, of all";
  EXPECT_FALSE(of({{"A", 1000}, {"B", 500}}).has_whole_gpus());
  EXPECT_FALSE(of({{"A", 1000}, {"B", 500}, {"C", 500}}).has_whole_gpus());
  EXPECT_FALSE(HeldParts{}.has_whole_gpus());
  HeldParts twice = of({{"A", 1000}, {"B", 999}});
  twice.ids[PartResource::kMilli].push_back({"B", 998});
  EXPECT_FALSE(twice.has_whole_gpus());
  EXPECT_EQ(of({{"A", 1000}, {"B", 500}}).amounts_on("B")[PartResource::kMilli], 500);
}

TEST(HeldParts, WhatLiesOnEachGpuIsToldByIndexWithWhatIsClaimedElsewhere) {
  HeldParts held{.ids = {{PartResource::kMilli, {{"A", 0}, {"C", 0}, {"C", 1}}}},
                 .claimed = {{"B", 300, 3000}, {"C", 500, 5000}}};
  const std::vector<SharedGpu> gpus = {{"C", 0, 1000}, {"B", 1, 1000}};
  EXPECT_THAT(PartsByGpu(held, gpus), ElementsAre(GpuPart{"C", 2, 2}, GpuPart{"B", 300, 3000}, GpuPart{"A", 1, 0}))
      << "A is not there any more";
}

TEST(HeldParts, WhoHoldsAGpuByAnotherResourceIsNamed) {
  const std::vector<std::string> uuids = {"GPU-1", "GPU-2", "GPU-3", "GPU-4"};
  const auto holders = HeldOtherwise({{"a", "whole", "c", {{"nvidia.com/gpu", {"GPU-1"}}}},
                                      {"a", "replica", "c", {{"nvidia.com/gpu.shared", {"GPU-2::3"}}}},
                                      {"a", "before", "c", {{"ai.centauruscloud.io/gpu-milli", {"GPU-3_5"}}}},
                                      {"a", "own", "c", {{"alnair/vgpu-memory", {"GPU-4_5"}}}},
                                      {"a", "longer", "c", {{"nvidia.com/gpu", {"GPU-44"}}}}},
                                     kAlnair, uuids);
  EXPECT_THAT(holders, ElementsAre(Pair("GPU-1", "a/whole, container c, by nvidia.com/gpu"),
                                   Pair("GPU-2", "a/replica, container c, by nvidia.com/gpu.shared"),
                                   Pair("GPU-3", "a/before, container c, by ai.centauruscloud.io/gpu-milli")));
  EXPECT_THAT(HeldOtherwise({}, kAlnair, uuids), IsEmpty());
}

TEST(HeldParts, WhatAPodSaysOfPagedMemorySaysNothingForWholeGpus) {
  HeldParts part{.ids = {{PartResource::kMilli, {{"GPU-0", 1}}}}};
  EXPECT_EQ(part.paged_mib, std::nullopt);
  SetSaidPaging(500, part);
  EXPECT_EQ(part.paged_mib, 500);
  HeldParts whole;
  for (int i = 0; i < 2 * kMilliOfGpu; ++i) {
    whole.ids[PartResource::kMilli].push_back({i < kMilliOfGpu ? "GPU-0" : "GPU-1", i % kMilliOfGpu});
  }
  SetSaidPaging(500, whole);
  EXPECT_EQ(whole.paged_mib, 0);
}

TEST(HeldParts, WhoHasAnIdOfGpusharesOwnPluginHoldsAllGpusAsThatGaveAnyIdForAnyGpu) {
  const std::vector<std::string> uuids = {"GPU-1", "GPU-2"};
  const auto gpushare = ResourcesOf(SharingMode::kGpushare);
  const auto holders = HeldOtherwise({{"a", "old", "c", {{"aliyun.com/gpu-mem", {"GPU-1-_-0", "GPU-1-_-1"}}}},
                                      {"a", "new", "c", {{"aliyun.com/gpu-mem", {"GPU-2_0"}}}}},
                                     gpushare, uuids);
  const std::string holder = "a/old, container c, by aliyun.com/gpu-mem of another device plugin";
  EXPECT_THAT(holders, ElementsAre(Pair("GPU-1", holder), Pair("GPU-2", holder)));
  for (const SharingMode mode : {SharingMode::kMilli, SharingMode::kDra}) {
    EXPECT_THAT(HeldOtherwise({{"a", "old", "c", {{"aliyun.com/gpu-mem", {"GPU-1-_-0"}}}}}, ResourcesOf(mode), uuids),
                ElementsAre(Pair("GPU-1", holder), Pair("GPU-2", holder)))
        << "also where the node gives parts in another way now";
  }
  EXPECT_THAT(HeldOtherwise({{"a", "new", "c", {{"aliyun.com/gpu-mem", {"GPU-2_0"}}}}}, gpushare, uuids), IsEmpty());
}

}  // namespace
}  // namespace grus
