// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/resources.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace grus {
namespace {

Resources Of(std::int64_t milli_cpu, std::int64_t memory, std::int64_t pods, std::int64_t gpus) {
  Resources resources;
  resources.milli_cpu = milli_cpu;
  resources.memory_bytes = memory;
  resources.pods = pods;
  if (gpus != 0) resources.AddExtended(kGpuResource, gpus);
  return resources;
}

TEST(Resources, AddAndSubtractEveryComponent) {
  Resources sum = Of(1000, 10, 1, 2);
  sum.AddExtended("example.com/fpga", 1);

  sum += Of(500, 5, 1, 6);
  EXPECT_EQ(sum.milli_cpu, 1500);
  EXPECT_EQ(sum.memory_bytes, 15);
  EXPECT_EQ(sum.pods, 2);
  EXPECT_EQ(sum.Extended(kGpuResource), 8);
  EXPECT_EQ(sum.Extended("example.com/fpga"), 1);

  sum -= Of(500, 5, 1, 6);
  EXPECT_EQ(sum.milli_cpu, 1000);
  EXPECT_EQ(sum.memory_bytes, 10);
  EXPECT_EQ(sum.pods, 1);
  EXPECT_EQ(sum.Extended(kGpuResource), 2);
}

TEST(Resources, SumsStopAtWhatANumberHolds) {
  constexpr std::int64_t kMost = INT64_MAX;
  Resources sum = Of(kMost, kMost, kMost, kMost);
  sum += Of(1, kMost, 1, kMost);
  EXPECT_EQ(sum, Of(kMost, kMost, kMost, kMost));

  Resources rest = Of(-2, -2, -2, -2);
  for (int i = 0; i < 2; ++i) rest -= Of(kMost, kMost, kMost, kMost);
  EXPECT_EQ(rest, Of(-kMost, -kMost, -kMost, -kMost));

  EXPECT_EQ(CopiesThatFit(Of(kMost, 1, 1, 8), Of(-kMost, -kMost, 0, 0), Of(1, 0, 0, 0), 3), 3);
  EXPECT_EQ(CopiesThatFit(Of(-kMost, 1, 1, 8), Of(kMost, 0, 0, 0), Of(1, 0, 0, 0), 3), 0);
  Resources raised = Of(0, 0, 0, -kMost);
  raised.RaiseTo(Of(0, 0, 0, kMost));
  EXPECT_EQ(raised.Extended(kGpuResource), kMost);
}

// A pod may ask for tens of thousands of resources, in any order.
TEST(Resources, ManyAreAddedAsFewAre) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, std::int64_t> expected;
    Resources sum;
    for (int part = 0; part < 4; ++part) {
      Resources more;
      const std::uint64_t count = random() % 20, sign = random() % 3;
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::string name = "a.b/" + std::to_string(random() % 12);
        const auto amount = static_cast<std::int64_t>(random() % 5) - 1;
        more.AddExtended(name, amount);
      }
      for (const auto& [name, amount] : more.extended) {
        auto& slot = expected[name];
        if (sign == 0) slot += amount;
        if (sign == 1) slot -= amount;
        if (sign == 2) slot = std::max(slot, amount);
      }
      if (sign == 0) sum += more;
      if (sign == 1) sum -= more;
      if (sign == 2) sum.RaiseTo(more);
    }
    std::erase_if(expected, [](const auto& entry) { return entry.second == 0; });
    EXPECT_EQ(sum.extended, decltype(sum.extended)(expected.begin(), expected.end())) << round;
    for (int i = 0; i < 12; ++i) {
      const std::string name = "a.b/" + std::to_string(i);
      EXPECT_EQ(sum.Extended(name), expected.contains(name) ? expected[name] : 0) << name;
    }
  }
}

TEST(Resources, WhatIsGivenBackLeavesNothingBehind) {
  Resources used = Of(1000, 10, 1, 2);
  used -= Of(1000, 10, 1, 2);
  EXPECT_EQ(used, Resources());
}

TEST(Resources, WhatIsNotNamedIsZero) { EXPECT_EQ(Of(1, 1, 1, 0).Extended(kGpuResource), 0); }

TEST(Resources, SubtractingWhatIsNotThereGoesBelowZero) {
  Resources none;
  none -= Of(0, 0, 0, 3);
  EXPECT_EQ(none.Extended(kGpuResource), -3);
}

TEST(Resources, RaiseToTakesTheLargerOfEachComponent) {
  Resources a = Of(1000, 30, 1, 2);
  a.RaiseTo(Of(500, 40, 1, 4));
  EXPECT_EQ(a.milli_cpu, 1000);
  EXPECT_EQ(a.memory_bytes, 40);
  EXPECT_EQ(a.Extended(kGpuResource), 4);

  a.RaiseTo(Of(0, 0, 0, 1));
  EXPECT_EQ(a.Extended(kGpuResource), 4);
}

TEST(CopiesThatFit, AreLimitedByTheScarcestComponent) {
  struct Case {
    const char* rule;
    Resources allocatable, used, request;
    int at_most, copies;
  };
  const Case kCases[] = {
      {"cpu", Of(4000, 100, 110, 8), {}, Of(1500, 1, 1, 1), 100, 2},
      {"memory", Of(4000, 100, 110, 8), {}, Of(1, 40, 1, 1), 100, 2},
      {"pods", Of(4000, 100, 3, 8), {}, Of(1, 1, 1, 1), 100, 3},
      {"GPUs", Of(4000, 100, 110, 8), {}, Of(1, 1, 1, 3), 100, 2},
      {"what is used is not there", Of(4000, 100, 110, 8), Of(0, 0, 0, 5), Of(1, 1, 1, 1), 100, 3},
      {"the caller's limit", Of(4000, 100, 110, 8), {}, Of(1, 1, 1, 1), 5, 5},
      {"what is not asked for does not count", Of(4000, 100, 110, 0), {}, Of(1000, 0, 1, 0), 100, 4},
      {"none of a resource the node lacks", Of(4000, 100, 110, 0), {}, Of(1, 1, 1, 1), 100, 0},
      {"an overcommitted node holds none", Of(4000, 100, 110, 8), Of(5000, 0, 0, 0), Of(1000, 0, 1, 1), 100, 0},
      {"nothing asked for fits as often as wanted", {}, {}, {}, 7, 7},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(CopiesThatFit(c.allocatable, c.used, c.request, c.at_most), c.copies) << c.rule;
  }
}

TEST(IsAccelerator, DevicesOfAClassAreButChannelsBetweenNodes) {
  EXPECT_TRUE(IsAccelerator("deviceclass.resource.kubernetes.io/gpu.nvidia.com"));
  EXPECT_FALSE(IsAccelerator("deviceclass.resource.kubernetes.io/compute-domain-default-channel.nvidia.com"));
}

}  // namespace
}  // namespace grus
