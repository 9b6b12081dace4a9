// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/gpushare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "crds/types/gpushare_names.h"
#include "nodeagent/sharing/part_plugins.h"
#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::uint64_t kGib = 1 << 30;

kube::ObjectMeta PodWith(std::initializer_list<std::pair<std::string, std::string>> annotations) {
  kube::ObjectMeta pod;
  for (const auto& [key, value] : annotations) pod.annotations[key] = value;
  return pod;
}

TEST(GpushareAssumption, IsTheIndexThatTheExtenderHasWrittenAndWhen) {
  EXPECT_EQ(AssumptionOf(PodWith({{api::kGpushareIndex, "3"}, {api::kGpushareAssumeTime, "1610364333371132383"}})),
            (GpushareAssumption{3, 1610364333371132383}));
  EXPECT_EQ(AssumptionOf(PodWith({{api::kGpushareIndex, "0"}})), (GpushareAssumption{0, 0}));
  EXPECT_EQ(AssumptionOf(PodWith({{api::kGpushareIndex, "0"}, {api::kGpushareAssumeTime, "yesterday"}})),
            (GpushareAssumption{0, 0}));
}

TEST(GpushareAssumption, ThatMakesNoSenseIsNone) {
  EXPECT_EQ(AssumptionOf({}), std::nullopt);
  for (const char* text : {"", "-1", "64", "1.5", "0x1", " 1", "1 ", "GPU-1", "99999999999999999999"}) {
    EXPECT_EQ(AssumptionOf(PodWith({{api::kGpushareIndex, text}})), std::nullopt) << text;
  }
}

// Two GPUs, of 8 and of 16 GiB.
class GpushareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    NodeSample look = testing::GpusOf(2, 8);
    look.gpus[1].sample->memory_total_bytes = 16 * kGib + kGib / 2;
    parts_.Look(look);
  }
  DevicePlugin& Memory() { return *parts_.plugins().at(0); }
  DevicePlugin& Count() { return *parts_.plugins().at(1); }
  // A container of a pod that the kubelet has not admitted yet, and for which GPU `assumed` is, if it is one.
  void Ask(const std::string& pod, std::int64_t gib, std::optional<GpushareAssumption> assumed = {},
           const std::string& container = "c") {
    PartAsk ask{.pod = {"a", pod}, .container = container, .assumed = assumed};
    ask.amounts[PartResource::kGpuMem] = gib;
    pending_.asks->push_back(ask);
  }
  // The kubelet admits this container; its environment. Empty: refused, with the reason in why_.
  std::map<std::string, std::string> Admit(const std::string& pod, int gib, const std::string& container = "c") {
    auto& held = holders_.held;
    const auto is_it = [&](const HeldDevices& one) { return one.pod == pod && one.container == container; };
    if (std::ranges::none_of(held, is_it)) held.push_back({"a", pod, container, {}});
    std::vector<std::string> free;
    for (const PluginDevice& device : Memory().Devices()) {
      if (!taken_.contains(device.id)) free.push_back(device.id);
    }
    const auto preferred = Memory().Prefer(free, {}, gib);
    why_ = preferred ? "" : preferred.error().message();
    if (!preferred) return {};
    const auto setup = Memory().Allocate(*preferred);
    why_ = setup ? "" : setup.error().message();
    if (!setup) return {};
    for (const std::string& id : *preferred) EXPECT_TRUE(taken_.insert(id).second) << id << " was given twice";
    std::ranges::find_if(held, is_it)->ids["aliyun.com/gpu-mem"] = *preferred;
    return setup->environment;
  }

  kube::testing::ManualClock clock_;
  const kube::Log log_;
  testing::FakeHolders holders_;
  testing::FakePending pending_;
  PartPlugins parts_{holders_, pending_, {.mode = SharingMode::kGpushare}, clock_, log_};
  std::set<std::string> taken_;
  std::string why_;
};

TEST_F(GpushareTest, OffersTheGibOfEachGpuByItsOwnMemoryAndHowManyThereAre) {
  EXPECT_EQ(Memory().resource(), "aliyun.com/gpu-mem");
  EXPECT_THAT(Memory().Devices(), SizeIs(8 + 16));
  EXPECT_EQ(Count().resource(), "aliyun.com/gpu-count");
  EXPECT_THAT(Count().Devices(), SizeIs(2));
}

TEST_F(GpushareTest, ASickGpuCountsAndItsMemoryIsNotGiven) {
  NodeSample look = testing::GpusOf(2, 8);
  look.gpus[0].sample.reset();
  parts_.Look(look);
  EXPECT_THAT(Count().Devices(), ElementsAre(PluginDevice{"number-0"}, PluginDevice{"number-1"}));
  Ask("p", 2, GpushareAssumption{0});
  EXPECT_EQ(Admit("p", 2)["ALIYUN_COM_GPU_MEM_IDX"], "1") << why_;
}

TEST_F(GpushareTest, AContainerGetsTheAssumedGpuAndIsToldAsByTheOriginal) {
  Ask("p", 3, GpushareAssumption{1, 5});
  EXPECT_THAT(Admit("p", 3),
              ElementsAre(Pair("ALIYUN_COM_GPU_MEM_CONTAINER", "3"), Pair("ALIYUN_COM_GPU_MEM_DEV", "16"),
                          Pair("ALIYUN_COM_GPU_MEM_IDX", "1"), Pair("ALIYUN_COM_GPU_MEM_POD", "3"),
                          Pair("GRUS_GPU_MEMORY_MIB", "3072"), Pair("NVIDIA_VISIBLE_DEVICES", "GPU-1")));
}

TEST_F(GpushareTest, TheGpuThatGrusHasChosenGoesBeforeTheNumber) {
  Ask("p", 3, GpushareAssumption{0, 5});
  pending_.asks->back().planned_gpus = {"GPU-1"};
  EXPECT_EQ(Admit("p", 3)["ALIYUN_COM_GPU_MEM_IDX"], "1");
}

TEST_F(GpushareTest, WithoutAnExtenderTheFullestGpuWithRoomIsTaken) {
  Ask("p", 3);
  EXPECT_EQ(Admit("p", 3)["ALIYUN_COM_GPU_MEM_IDX"], "0");
  Ask("q", 6);
  EXPECT_EQ(Admit("q", 6)["ALIYUN_COM_GPU_MEM_IDX"], "1") << "on the first, 5 are left";
}

TEST_F(GpushareTest, EqualPodsAreNotSwapped) {
  Ask("first", 3, GpushareAssumption{0, 1});
  Ask("second", 3, GpushareAssumption{1, 2});
  EXPECT_EQ(Admit("second", 3)["ALIYUN_COM_GPU_MEM_IDX"], "1") << "the kubelet lists it, and not the other";
  EXPECT_EQ(Admit("first", 3)["ALIYUN_COM_GPU_MEM_IDX"], "0");
}

TEST_F(GpushareTest, WithoutPodResourcesTheOneThatWasAssumedFirstComesFirst) {
  holders_.is_available = false;
  Ask("late", 3, GpushareAssumption{0, 9});
  Ask("early", 3, GpushareAssumption{1, 2});
  Ask("unplanned", 3);
  EXPECT_EQ(Admit("early", 3)["ALIYUN_COM_GPU_MEM_IDX"], "1");
}

TEST_F(GpushareTest, AnAssumptionWithoutRoomIsNotFollowed) {
  Ask("large", 7, GpushareAssumption{0});
  EXPECT_EQ(Admit("large", 7)["ALIYUN_COM_GPU_MEM_IDX"], "0");
  Ask("liar", 2, GpushareAssumption{0});
  EXPECT_EQ(Admit("liar", 2)["ALIYUN_COM_GPU_MEM_IDX"], "1") << "1 GiB is left on the first";
  Ask("nowhere", 2, GpushareAssumption{17});
  EXPECT_EQ(Admit("nowhere", 2)["ALIYUN_COM_GPU_MEM_IDX"], "1");
  Ask("huge", 17, GpushareAssumption{1});
  EXPECT_THAT(Admit("huge", 17), IsEmpty());
  EXPECT_THAT(why_, HasSubstr("17 aliyun.com/gpu-mem: a GPU of this node has 16"));
}

TEST_F(GpushareTest, WhatIsAssumedForOthersIsLeftToThem) {
  Ask("assumed", 6, GpushareAssumption{0});
  Ask("other", 4);
  EXPECT_EQ(Admit("other", 4)["ALIYUN_COM_GPU_MEM_IDX"], "1") << "though the first is the smaller";
  EXPECT_EQ(Admit("assumed", 6)["ALIYUN_COM_GPU_MEM_IDX"], "0");
}

TEST_F(GpushareTest, AnAssumptionThatCannotBeFollowedKeepsNothing) {
  Ask("liar", 9, GpushareAssumption{0});
  Ask("other", 4);
  EXPECT_EQ(Admit("other", 4)["ALIYUN_COM_GPU_MEM_IDX"], "0") << "9 GiB are more than it has";
}

TEST_F(GpushareTest, SeveralContainersOfAPodLieOnOneGpuThatHasRoomForAll) {
  Ask("p", 5, {}, "one");
  Ask("p", 5, {}, "two");
  Ask("p", 1, {}, "three");
  auto one = Admit("p", 5, "one");
  EXPECT_EQ(one["ALIYUN_COM_GPU_MEM_IDX"], "1") << "the first has room for one of them";
  EXPECT_EQ(one["ALIYUN_COM_GPU_MEM_POD"], "11");
  EXPECT_EQ(one["ALIYUN_COM_GPU_MEM_CONTAINER"], "5");
  EXPECT_EQ(Admit("p", 5, "two")["ALIYUN_COM_GPU_MEM_IDX"], "1");
  EXPECT_EQ(Admit("p", 1, "three")["ALIYUN_COM_GPU_MEM_IDX"], "1");
}

TEST_F(GpushareTest, SeveralContainersStartAlsoWhereNoGpuHasRoomForAll) {
  Ask("p", 15, {}, "one");
  Ask("p", 7, {}, "two");
  EXPECT_EQ(Admit("p", 15, "one")["ALIYUN_COM_GPU_MEM_IDX"], "1") << why_;
  EXPECT_EQ(Admit("p", 7, "two")["ALIYUN_COM_GPU_MEM_IDX"], "0") << why_;
  for (const HeldDevices& held : holders_.held) {
    EXPECT_TRUE(Memory().PreStart(held.ids.at("aliyun.com/gpu-mem")).ok());
  }
}

TEST_F(GpushareTest, WhileAPodOfTheOriginalPluginRunsNoGpuIsGivenAway) {
  holders_.held.push_back({"a", "old", "c", {{"aliyun.com/gpu-mem", {"GPU-0-_-4"}}}});
  Ask("p", 2);
  EXPECT_THAT(Admit("p", 2), IsEmpty());
  EXPECT_THAT(why_, HasSubstr("GPU-1 is held by a/old, container c, by aliyun.com/gpu-mem of another device plugin"));
}

TEST_F(GpushareTest, WhoHoldsAWholeGpuHasItAlone) {
  holders_.held.push_back({"a", "whole", "c", {{"nvidia.com/gpu", {"GPU-1"}}}});
  Ask("p", 2, GpushareAssumption{1});
  EXPECT_EQ(Admit("p", 2)["ALIYUN_COM_GPU_MEM_IDX"], "0");
}

TEST_F(GpushareTest, WhoAsksForTheCountBesideMemoryStartsAndGetsNothingForIt) {
  holders_.held.push_back(
      {"a", "p", "c", {{"aliyun.com/gpu-mem", {"GPU-0_0"}}, {"aliyun.com/gpu-count", {"number-0"}}}});
  const auto ids = Count().Prefer({"number-0", "number-1"}, {}, 1);
  ASSERT_TRUE(ids.ok());
  EXPECT_THAT(*ids, ElementsAre("number-0"));
  const auto setup = Count().Allocate(*ids);
  ASSERT_TRUE(setup.ok());
  EXPECT_THAT(setup->environment, IsEmpty());
  EXPECT_TRUE(Count().PreStart(*ids).ok());
  Ask("q", 2);
  EXPECT_EQ(Admit("q", 2)["ALIYUN_COM_GPU_MEM_IDX"], "0") << "whoever holds the count holds no GPU";
}

TEST_F(GpushareTest, WhoAsksForTheCountAloneDoesNotStart) {
  holders_.held.push_back({"a", "p", "c", {{"aliyun.com/gpu-count", {"number-0"}}}});
  const kube::Status started = Count().PreStart({"number-0"});
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(),
              HasSubstr("a/p, container c: it asks for aliyun.com/gpu-count, which only says how many GPUs a node has, "
                        "without aliyun.com/gpu-mem; add limits of that (GiB)"));
}

}  // namespace
}  // namespace grus
