// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using ::testing::HasSubstr;

const SharedGpu kGpu = {"GPU-0", 0, 1000, true};

HeldParts Holding(const std::string& pod, int milli, std::int64_t mib = 0, const std::string& gpu = "GPU-0") {
  HeldParts part{.pod = {"a", pod}, .container = "c"};
  for (int i = 0; i < milli; ++i) part.ids[PartResource::kMilli].push_back({gpu, i});
  part.memory_mib = mib;
  return part;
}

TEST(CheckMemory, WhatStartsHasItBesideThoseThatHaveStartedOnItsGpu) {
  const std::vector<HeldParts> started = {Holding("said", 100, 600), Holding("in-proportion", 200),
                                          Holding("elsewhere", 100, 900, "GPU-1")};
  EXPECT_TRUE(CheckMemory(Holding("p", 100, 200), started, kGpu).ok());
  EXPECT_TRUE(CheckMemory(Holding("p", 200), started, kGpu).ok());
  const kube::Status refused = CheckMemory(Holding("p", 100, 201), started, kGpu);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(
      refused.error().message(),
      "a/p, container c: it asks for 201 MiB of GPU-0, which has 200 left; it starts once others there have ended, "
      "or create the pod again with less (sharing.ai.centauruscloud.io/memory-mib)");
}

std::vector<std::string> Texts(const std::string& gpu, int count) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(ToText({gpu, i}));
  return ids;
}

TEST(CheckIds, TakesAllIdsOfSeveralGpusOrSomeOfOneAndNothingElse) {
  const std::vector<SharedGpu> gpus = {kGpu, {"GPU-1", 1, 1000, true}, {"GPU-2", 2, 1000, false}};
  const auto why_not = [&](std::vector<std::string> ids, const std::vector<std::string>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    const auto checked = CheckIds(PartResource::kMilli, ids, gpus);
    return checked ? std::string() : checked.error().message();
  };
  EXPECT_EQ(why_not(Texts("GPU-1", 1000), {}), "");
  EXPECT_EQ(why_not(Texts("GPU-1", 1000), Texts("GPU-0", 1000)), "");
  EXPECT_EQ(why_not(Texts("GPU-1", 1000), Texts("GPU-0", 500)),
            "1500 ai.centauruscloud.io/gpu-milli: ask for 1 to 1000, or for a multiple of 1000: whole GPUs");
  EXPECT_THAT(why_not(Texts("GPU-1", 500), Texts("GPU-0", 500)), HasSubstr("lie on several GPUs (GPU-0, GPU-1)"));
  EXPECT_THAT(why_not(Texts("GPU-1", 1000), Texts("GPU-2", 1000)), HasSubstr("GPU-2 is sick"));
  std::vector<std::string> twice = Texts("GPU-1", 999);
  twice.push_back("GPU-1_0");
  EXPECT_THAT(why_not(Texts("GPU-0", 1000), twice), HasSubstr("a device is named twice"));
  std::vector<std::string> torn = Texts("GPU-1", 999);
  torn.push_back("GPU-2_7");
  const std::vector<SharedGpu> all = {kGpu, {"GPU-1", 1, 1000, true}, {"GPU-2", 2, 1000, true}};
  const std::vector<std::string> first = Texts("GPU-0", 1000);
  torn.insert(torn.end(), first.begin(), first.end());
  const auto checked = CheckIds(PartResource::kMilli, torn, all);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message(),
            "2000 ai.centauruscloud.io/gpu-milli: the devices are not those of 2 whole GPUs, but of parts of GPU-0, "
            "GPU-1, GPU-2; create the pod again");
}

TEST(CheckHeld, LetsWholeGpusStartAndNoPartsOfSeveral) {
  HeldParts whole = Holding("p", 1000);
  for (int i = 0; i < 1000; ++i) whole.ids[PartResource::kMilli].push_back({"GPU-1", i});
  EXPECT_TRUE(CheckHeld(whole).ok());
  whole.ids[PartResource::kMilli].pop_back();
  EXPECT_FALSE(CheckHeld(whole).ok());
}

TEST(CheckMemory, OfWholeGpusIsAllOfEach) {
  HeldParts whole = Holding("p", 1000);
  for (int i = 0; i < 1000; ++i) whole.ids[PartResource::kMilli].push_back({"GPU-1", i});
  SetSaidMemory(10, whole);
  EXPECT_TRUE(CheckMemory(whole, {}, kGpu).ok());
  EXPECT_FALSE(CheckMemory(whole, std::vector<HeldParts>{Holding("q", 1)}, kGpu).ok());
  EXPECT_FALSE(CheckMemory(Holding("q", 1), std::vector<HeldParts>{whole}, kGpu).ok());
  EXPECT_FALSE(CheckMemory(Holding("q", 1, 0, "GPU-1"), std::vector<HeldParts>{whole}, {"GPU-1", 1, 1000, true}).ok());
}

TEST(CheckMemory, OfGibsIsTheKubeletsMatter) {
  HeldParts part{.pod = {"a", "p"}, .container = "c"};
  part.ids[PartResource::kGpuMem] = {{"GPU-0", 0}};
  EXPECT_TRUE(CheckMemory(part, std::vector<HeldParts>{Holding("said", 100, 1000)}, kGpu).ok());
}

}  // namespace
}  // namespace grus
