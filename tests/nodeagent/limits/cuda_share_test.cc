// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/cuda_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr char kGpu[] = "GPU-4F2c0000-0000-0000-0000-0000000000a1";

std::vector<PartId> Ids(const std::string& gpu, int from, int count) {
  std::vector<PartId> ids;
  for (int i = 0; i < count; ++i) ids.push_back({gpu, from + i});
  return ids;
}

TEST(ShareName, IsOfTheseIdsAndThisResourceAndOfNoOthers) {
  EXPECT_THAT(ShareName(PartResource::kMilli, Ids(kGpu, 0, 300)), StartsWith(std::string(kGpu) + "-"));
  std::set<std::string> names;
  for (int from = 0; from < 100; ++from) {
    for (int count = 1; count <= 100; ++count) names.insert(ShareName(PartResource::kMilli, Ids(kGpu, from, count)));
    names.insert(ShareName(PartResource::kMemory, Ids(kGpu, from, 1)));
    names.insert(ShareName(PartResource::kMilli, Ids("GPU-1", from, 1)));
  }
  EXPECT_EQ(names.size(), 100 * 102);
  // The kubelet remembers paths with it, also when the agent that comes next is a later version.
  EXPECT_EQ(ShareName(PartResource::kMemory, {{"GPU-1", 7}}), "GPU-1-9f5d2205d25e7a65");
}

TEST(ShareName, IsToldFromOtherNames) {
  EXPECT_TRUE(IsShareName(ShareName(PartResource::kMilli, Ids(kGpu, 0, 300))));
  EXPECT_TRUE(IsShareName(ShareName(PartResource::kMilli, Ids("MIG-1", 0, 300))));
  for (const char* other : {"", "-", "GPU-", kGpu, "lost+found", "GPU-1-9f5d2205d25e7a6", "GPU-1-9F5D2205D25E7A65",
                            "GPU-1-9f5d2205d25e7a655", "gpu-9f5d2205d25e7a65", "GPU-/-9f5d2205d25e7a65"}) {
    EXPECT_FALSE(IsShareName(other)) << other;
  }
}

TEST(AddCudaMounts, OnlyTheAccountCanBeWrittenInTheContainer) {
  ContainerSetup setup;
  AddCudaMounts(CudaLibrary("", "/node/cuda"), "/node/shares/a", setup);
  EXPECT_THAT(setup.mounts,
              ElementsAre(PluginMount{"/node/cuda/libgrus-cuda.so", "/run/grus/cuda/libgrus-cuda.so", true},
                          PluginMount{"/node/shares/a/ld.so.preload", "/etc/ld.so.preload", true},
                          PluginMount{"/node/shares/a/limits", "/run/grus/cuda/limits", true},
                          PluginMount{"/node/shares/a/account", "/run/grus/cuda/account", false}));
}

TEST(ShareLimitsOf, IsWhatTheContainerHoldsOfAllItsResources) {
  const std::vector<SharedGpu> gpus = {{.uuid = kGpu, .memory_mib = 80'000}};
  const auto of = [&](const HeldParts& holder) { return ShareLimitsOf(holder, gpus, 300); };
  const auto thousandths = of({.ids = {{PartResource::kMilli, Ids(kGpu, 0, 300)}}});
  ASSERT_TRUE(thousandths);
  EXPECT_EQ(thousandths->gpu, kGpu);
  EXPECT_EQ(thousandths->memory_bytes, 24'000ULL << 20);
  EXPECT_EQ(thousandths->context_bytes, 300ULL << 20);
  EXPECT_EQ(thousandths->milli, 300);
  EXPECT_EQ(thousandths->rate_milli, 300);
  EXPECT_EQ(of({.ids = {{PartResource::kMilli, Ids(kGpu, 0, 300)}}, .memory_mib = 5000})->memory_bytes, 5000ULL << 20);

  HeldParts alnair{.ids = {{PartResource::kMemory, Ids(kGpu, 0, 2)}}};
  EXPECT_EQ(of(alnair)->memory_bytes, 2ULL << 30);
  EXPECT_EQ(of(alnair)->milli, 0) << "without compute, time is not limited";
  EXPECT_EQ(of(alnair)->rate_milli, 1000);
  alnair.ids[PartResource::kCompute] = Ids(kGpu, 0, 30);
  EXPECT_EQ(of(alnair)->milli, 300);
  EXPECT_EQ(of({.ids = {{PartResource::kGpuMem, Ids(kGpu, 0, 3)}}})->milli, 0);
}

TEST(ShareLimitsOf, HasWhatMayBePagedBesideTheMemoryOfItsPart) {
  const std::vector<SharedGpu> gpus = {{.uuid = kGpu, .memory_mib = 80'000}};
  HeldParts part{.ids = {{PartResource::kMilli, Ids(kGpu, 0, 300)}}};
  EXPECT_EQ(ShareLimitsOf(part, gpus, 0)->paged_bytes, 0U);
  part.paged_mib = 70'000;
  EXPECT_EQ(ShareLimitsOf(part, gpus, 0)->paged_bytes, 70'000ULL << 20);
  EXPECT_EQ(ShareLimitsOf(part, gpus, 0)->memory_bytes, 24'000ULL << 20);
  part.paged_mib = -1;
  EXPECT_EQ(ShareLimitsOf(part, gpus, 0)->paged_bytes, 0U);
}

TEST(ShareLimitsOf, IsNotKnownWithoutTheGpuAsNoMemoryWouldBeNoLimit) {
  EXPECT_FALSE(ShareLimitsOf({.ids = {{PartResource::kMilli, Ids(kGpu, 0, 300)}}}, {}, 0));
  EXPECT_FALSE(ShareLimitsOf({}, {}, 0));
}

}  // namespace
}  // namespace grus
