// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_checks.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

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

TEST(CheckMemory, OfGibsIsTheKubeletsMatter) {
  HeldParts part{.pod = {"a", "p"}, .container = "c"};
  part.ids[PartResource::kGpuMem] = {{"GPU-0", 0}};
  EXPECT_TRUE(CheckMemory(part, std::vector<HeldParts>{Holding("said", 100, 1000)}, kGpu).ok());
}

}  // namespace
}  // namespace grus
