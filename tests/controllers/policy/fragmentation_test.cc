// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/fragmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr GpuModels kT4 = 1 << 0, kV100 = 1 << 1;
constexpr GpuRequest kHalf{1000, 1, 500};
constexpr GpuRequest kOne{1000, 1, kWholeDevice};
constexpr GpuRequest kTwo{1000, 2, kWholeDevice};
constexpr GpuRequest kCpuOnly{1000, 0, 0};

// 8 CPUs and these thousandths, of model 0.
FreeGpus Free(std::vector<int> device_milli) { return {8000, std::move(device_milli), 0}; }

std::vector<TypicalPod> Only(const GpuRequest& request) { return {{request, 1}}; }

TEST(Fragmentation, IsWhatATypicalPodCannotUse) {
  struct Case {
    const char* what;
    GpuRequest typical;
    std::vector<int> free;
    double want;
  };
  for (const Case& c : {
           Case{"devices with too little", kHalf, {499, 1000, 200}, 699},
           Case{"a part that fits exactly", kHalf, {500, 500}, 0},
           Case{"a part of a device is no whole one", kOne, {999, 1000}, 999},
           Case{"as many devices as it asks for", kTwo, {300, 1000, 1000}, 300},
           Case{"too few devices strand all", kTwo, {300, 1000}, 1300},
           Case{"too little on every device strands all", kHalf, {400, 400}, 800},
           Case{"too little CPU strands all", {8001, 1, 500}, {300, 1000}, 1300},
           Case{"just enough CPU", {8000, 1, 500}, {300, 1000}, 300},
           Case{"another model strands all", {1000, 1, 500, kV100}, {300, 1000}, 1300},
           Case{"one of its models", {1000, 1, 500, kT4 | kV100}, {300, 1000}, 300},
           Case{"a pod without GPUs uses none", kCpuOnly, {300, 1000}, 1300},
           Case{"nothing is free", kTwo, {0, 0}, 0},
           Case{"no device", kTwo, {}, 0},
       }) {
    EXPECT_DOUBLE_EQ(Fragmentation(Free(c.free), Only(c.typical)), c.want) << c.what;
  }
}

TEST(Fragmentation, IsTheMeanOverTypicalPodsByShare) {
  const std::vector<TypicalPod> typical = {{kHalf, 0.75}, {kTwo, 0.25}};

  EXPECT_DOUBLE_EQ(Fragmentation(Free({300, 1000}), typical), 0.75 * 300 + 0.25 * 1300);
}

TEST(TypicalPods, AreTheMostFrequentThatCoverTheShare) {
  const std::vector<GpuRequest> pods = {kTwo, kHalf, kOne, kHalf, kHalf, kOne, kHalf, kHalf, kHalf, kOne};  // 6, 3, 1
  struct Case {
    double coverage;
    std::vector<std::pair<GpuRequest, double>> want;
  };
  for (const Case& c :
       {Case{0.5, {{kHalf, 1}}}, Case{0.6, {{kHalf, 1}}}, Case{0.61, {{kHalf, 6.0 / 9}, {kOne, 3.0 / 9}}},
        Case{1, {{kHalf, 0.6}, {kOne, 0.3}, {kTwo, 0.1}}}, Case{0, {}}}) {
    std::vector<std::pair<GpuRequest, double>> got;
    for (const TypicalPod& pod : TypicalPods(pods, c.coverage)) got.emplace_back(pod.request, pod.share);
    EXPECT_EQ(got, c.want) << "coverage " << c.coverage;
  }
  EXPECT_THAT(TypicalPods({}, 1), IsEmpty());
}

TEST(DeviceChoices, AreOnePerFreeAmountOrTheFirstFreeDevices) {
  struct Case {
    const char* what;
    GpuRequest pod;
    std::vector<int> free;
    std::vector<std::vector<int>> want;
  };
  for (const Case& c : {
           Case{"a part: each amount once", kHalf, {400, 700, 1000, 700, 500}, {{1}, {2}, {4}}},
           Case{"one whole device: all are the same", kOne, {999, 1000, 1000}, {{1}}},
           Case{"several whole devices", kTwo, {1000, 10, 1000, 1000}, {{0, 2}}},
           Case{"no GPU: one choice, of none", kCpuOnly, {1000}, {{}}},
           Case{"too few devices", kTwo, {1000, 999}, {}},
           Case{"too little CPU", {8001, 0, 0}, {1000}, {}},
           Case{"another model", {1000, 1, 500, kV100}, {1000}, {}},
       }) {
    EXPECT_EQ(DeviceChoices(Free(c.free), c.pod), c.want) << c.what;
  }
}

TEST(After, TakesCpuAndTheThousandthsOfEachDevice) {
  const FreeGpus part = After(Free({700, 1000}), kHalf, std::vector{0});
  const FreeGpus whole = After(Free({1000, 700, 1000}), kTwo, std::vector{0, 2});

  EXPECT_EQ(part.milli_cpu, 7000);
  EXPECT_THAT(part.device_milli, ElementsAre(200, 1000));
  EXPECT_THAT(whole.device_milli, ElementsAre(0, 700, 0));
}

TEST(PlacePod, TakesTheDeviceThatStrandsLeast) {
  struct Case {
    const char* what;
    GpuRequest typical, pod;
    std::vector<int> free, want;
  };
  const GpuRequest part{1000, 1, 300};
  for (const Case& c : {
           Case{"a rest that is of use, though the other device is fuller", kHalf, part, {600, 1000}, {1}},
           Case{"no new device is opened where whole ones are wanted", kOne, part, {600, 1000}, {0}},
           Case{"what is stranded already", kHalf, part, {1000, 400}, {1}},
           Case{"an exact fit", {1000, 1, 300}, {1000, 1, 400}, {600, 400, 1000}, {1}},
       }) {
    const auto placement = PlacePod(Free(c.free), c.pod, Only(c.typical));
    ASSERT_TRUE(placement) << c.what;
    EXPECT_EQ(placement->devices, c.want) << c.what;
  }
}

TEST(PlacePod, RefusesWhatDoesNotFit) {
  EXPECT_FALSE(PlacePod(Free({1000, 999}), kTwo, Only(kHalf)));
  EXPECT_FALSE(PlacePod(Free({}), kOne, Only(kHalf)));
}

TEST(PlacePod, TellsTheSmallestDifferencesApart) {
  // One pod in a hundred wants half a device. Both nodes have as much free, before and after.
  const std::vector<TypicalPod> typical = {{kHalf, 0.01}, {{1000, 1, 1}, 0.99}};
  const GpuRequest pod{1000, 1, 10};

  const auto better = PlacePod(Free({490, 510}), pod, typical);  // Takes 10 from what is stranded.
  const auto worse = PlacePod(Free({500, 500}), pod, typical);   // Strands 490 more.

  ASSERT_TRUE(better && worse);
  EXPECT_NEAR(better->score - worse->score, 0.01 * (10 + 490), 1e-9);
}

TEST(PlacePod, ScoresTheDropLessAPenaltyForWhatStaysFree) {
  struct Case {
    const char* what;
    FreeGpus node;
    GpuRequest pod;
    double want;
  };
  for (const Case& c : {
           // 7 CPUs stay free at 60/128 each, and one GPU at 60/8; nothing is stranded before or after.
           Case{"no drop", {8000, {1000, 1000}, 0}, kOne, -7 * 60.0 / 128 - 60.0 / 8},
           Case{"a drop", {1000, {300}, 0}, {1000, 1, 300}, 300},
           Case{"a growth", {1000, {1000}, 0}, {1000, 1, 300}, -700 - 0.7 * 60.0 / 8},
       }) {
    EXPECT_NEAR(PlacePod(c.node, c.pod, Only(kOne))->score, c.want, 1e-9) << c.what;
  }
}

TEST(PlacePod, PrefersTheFullerNodeAmongThoseThatAreAsGood) {
  const std::vector<TypicalPod> typical = Only(kOne);
  struct Case {
    const char* what;
    FreeGpus fuller, emptier;
  };
  for (const Case& c : {
           Case{"in GPUs", {8000, {1000, 1000}, 0}, {8000, {1000, 1000, 1000}, 0}},
           Case{"in CPU", {7000, {1000, 1000}, 0}, {8000, {1000, 1000}, 0}},
       }) {
    EXPECT_GT(PlacePod(c.fuller, kOne, typical)->score, PlacePod(c.emptier, kOne, typical)->score) << c.what;
  }
}

}  // namespace
}  // namespace grus
