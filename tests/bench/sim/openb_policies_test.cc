// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb_policies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace grus {
namespace {

constexpr GpuRequest kHalf{1000, 1, 500};
constexpr GpuRequest kOne{1000, 1, kWholeDevice};

std::optional<GpuPlacement> Place(std::string_view policy, const FreeGpus& node, const GpuRequest& pod,
                                  const GpuRequest& typical) {
  const std::vector<TypicalPod> pods = {{typical, 1}};
  return std::ranges::find(OpenbPolicies(), policy, &OpenbPolicy::name)->place(node, pod, pods);
}

TEST(OpenbFgd, ScoresTheDropOfFragmentationFrom0To100) {
  struct Case {
    const char* what;
    std::vector<int> free;
    GpuRequest pod, typical;
    double want;
  };
  for (const Case& c : {
           Case{"none: floor(100 * 1 / 2)", {1000, 1000}, kOne, kOne, 50},
           Case{"500 less: floor(100 / (1 + exp(-0.5)))", {500}, kHalf, kOne, 62},
           Case{"500 more: floor(100 / (1 + exp(0.5)))", {1000}, kHalf, kOne, 37},
           Case{"8000 less",
                {0, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000},
                {1000, 8, 1000},
                {8000, 1, 500, 2},
                99},
       }) {
    EXPECT_EQ(Place("fgd", {8000, c.free, 0}, c.pod, c.typical)->score, c.want) << c.what;
  }
}

TEST(OpenbFgd, TakesTheFirstDeviceWithTheBestScore) {
  EXPECT_EQ(Place("fgd", {8000, {1000, 500}, 0}, kHalf, kOne)->devices, std::vector{1});
  // Strands 499 or 495 more: the second is better, and both score 37.
  EXPECT_EQ(Place("fgd", {8000, {509, 505}, 0}, {1000, 1, 10}, kHalf)->devices, std::vector{0});
  EXPECT_EQ(Place("grus", {8000, {509, 505}, 0}, {1000, 1, 10}, kHalf)->devices, std::vector{1});
}

TEST(OpenbBestFit, ScoresWhatIsLeftOfTheLargestNode) {
  struct Case {
    std::int64_t milli_cpu;
    std::vector<int> free;
    double want;
  };
  for (const Case& c : {
           Case{1000, {1000}, 100},               // Nothing is left.
           Case{65'000, {1000}, 75},              // Half of 128 CPUs.
           Case{1000, {1000, 1000, 1000}, 87},    // Two of eight GPUs: 87.5.
           Case{33'000, {1000, 1000, 1000}, 75},  // Both.
       }) {
    EXPECT_EQ(Place("bestfit", {c.milli_cpu, c.free, 0}, kOne, kOne)->score, c.want) << c.milli_cpu;
  }
}

TEST(OpenbBestFit, TakesTheFullestDevice) {
  EXPECT_EQ(Place("bestfit", {8000, {1000, 500, 700, 400}, 0}, kHalf, kOne)->devices, std::vector{1});
}

TEST(OpenbPolicies, RefuseWhatDoesNotFit) {
  for (const OpenbPolicy& policy : OpenbPolicies()) {
    EXPECT_FALSE(Place(policy.name, {8000, {999}, 0}, kOne, kOne)) << policy.name;
    EXPECT_TRUE(Place(policy.name, {8000, {999}, 0}, {1000, 0, 0}, kOne)) << policy.name;
  }
}

}  // namespace
}  // namespace grus
