// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/whole_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "nodeagent/sharing/part_plugins.h"
#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr PartResource kMilli = PartResource::kMilli;
constexpr char kResource[] = "ai.centauruscloud.io/gpu-milli";

PartAsk Ask(const std::string& pod, std::int64_t milli, const std::vector<std::string>& planned = {}) {
  PartAsk ask{.pod = {"a", pod}, .container = "c" + std::to_string(milli), .planned_gpus = planned};
  ask.amounts[kMilli] = milli;
  return ask;
}
// GPUs with so many thousandths free, of 1000 MiB each.
ChooserView Call(std::int64_t milli, const std::vector<std::pair<std::string, std::int64_t>>& gpus) {
  ChooserView view{.resource = kMilli, .amount = milli, .held = {{}}, .asks = {{}}};
  for (const auto& [uuid, free] : gpus) {
    GpuRoom room{.uuid = uuid, .total_mib = 1000, .free_mib = free};
    room.total[kMilli] = 1000;
    room.free[kMilli] = free;
    view.gpus.push_back(room);
  }
  return view;
}
std::vector<std::string> Chosen(const ChooserView& view) {
  const kube::Result<GpuChoice> choice = ChooseGpu(view);
  return choice ? choice->gpus : std::vector<std::string>{choice.error().message()};
}

TEST(WholeGpus, AreThoseOfWhichNobodyHasAPartByIndex) {
  EXPECT_THAT(Chosen(Call(2000, {{"D", 999}, {"C", 1000}, {"B", 0}, {"A", 1000}})), ElementsAre("C", "A"));
  EXPECT_THAT(Chosen(Call(3000, {{"D", 1000}, {"C", 1000}, {"B", 1000}, {"A", 1000}})), ElementsAre("D", "C", "B"));
}

TEST(WholeGpus, AreThePlannedOnesIfAllAreFree) {
  ChooserView view = Call(2000, {{"A", 1000}, {"B", 1000}, {"C", 1000}, {"D", 1000}});
  view.asks = {{Ask("p", 2000, {"D", "B"})}};
  EXPECT_THAT(Chosen(view), ElementsAre("B", "D"));
  view.asks = {{Ask("p", 2000, {"D", "gone"})}};
  EXPECT_THAT(Chosen(view), ElementsAre("A", "B"));
  view.asks = {{Ask("p", 2000, {"D", "B"})}};
  view.gpus[1].free[kMilli] = 999;
  EXPECT_THAT(Chosen(view), ElementsAre("A", "C"));
}

TEST(WholeGpus, ThatArePlannedForOthersComeLast) {
  ChooserView view = Call(2000, {{"A", 1000}, {"B", 1000}, {"C", 1000}, {"D", 1000}});
  view.asks = {{Ask("others", 3000, {"A", "C", "E"}), Ask("part", 300, {"gone"})}};
  EXPECT_THAT(Chosen(view), ElementsAre("B", "D"));
  view.asks->back().planned_gpus = {"B"};
  EXPECT_THAT(Chosen(view), ElementsAre("A", "D"));
  view.asks->back().has_started = true;
  EXPECT_THAT(Chosen(view), ElementsAre("B", "D")) << "it has what it asked for";
  view.asks->back().has_started = false;
  view.held = {{HeldParts{.pod = {"a", "part"}, .container = "c300", .ids = {{kMilli, {{"E", 0}}}}}}};
  EXPECT_THAT(Chosen(view), ElementsAre("B", "D")) << "so it has here";
}

TEST(WholeGpus, OfSeveralThatMayBeAskingTheFirstWithAPlanDecides) {
  ChooserView view = Call(2000, {{"A", 1000}, {"B", 1000}, {"C", 1000}, {"D", 1000}});
  view.asks = {{Ask("old", 2000), Ask("p", 2000, {"C", "D"}), Ask("q", 2000, {"A", "B"})}};
  EXPECT_THAT(Chosen(view), ElementsAre("C", "D"));
  view.listed = {{"a", "q"}};
  EXPECT_THAT(Chosen(view), ElementsAre("A", "B")) << "the kubelet admits q";
  view.held = {{HeldParts{.pod = {"a", "p"}, .container = "c2000", .ids = {{kMilli, {{"A", 0}}}}}}};
  view.listed = {};
  view.gpus[0].free[kMilli] = view.gpus[1].free[kMilli] = 0;
  EXPECT_THAT(Chosen(view), ElementsAre("C", "D")) << "q's were given to p, which was planned here";
}

TEST(WholeGpus, WithoutAnAnswerOfApiServerAndKubeletAreStillFreeOnes) {
  ChooserView view = Call(2000, {{"A", 1000}, {"B", 999}, {"C", 1000}});
  view.asks.reset();
  view.held.reset();
  EXPECT_THAT(Chosen(view), ElementsAre("A", "C"));
}

TEST(WholeGpus, OtherAmountsThanMultiplesAreRefused) {
  for (const std::int64_t milli : {1001, 1500, 2999}) {
    EXPECT_THAT(Chosen(Call(milli, {{"A", 1000}, {"B", 1000}, {"C", 1000}})),
                ElementsAre(std::to_string(milli) + " " + kResource +
                            ": ask for 1 to 1000, or for a multiple of 1000: whole GPUs"));
  }
}

TEST(WholeGpus, WithoutSoManyFreeOnesSayWhatIsFree) {
  EXPECT_THAT(Chosen(Call(2000, {{"A", 1000}, {"B", 700}})),
              ElementsAre("2000 ai.centauruscloud.io/gpu-milli: 2 whole GPUs, and of those that work nobody has a part "
                          "of 1: A has 1000, B has 700; create the pod again once others have ended, or ask for less"));
  EXPECT_THAT(Chosen(Call(2000, {})), ElementsAre(HasSubstr("nobody has a part of 0;")));
}

TEST(WholeGpus, InTheOtherModesAreNotGiven) {
  ChooserView view{.resource = PartResource::kGpuMem, .amount = 2000, .held = {{}}, .asks = {{}}};
  GpuRoom room{.uuid = "A"};
  room.total[PartResource::kGpuMem] = room.free[PartResource::kGpuMem] = 1000;
  view.gpus = {room, room};
  EXPECT_THAT(Chosen(view), ElementsAre(HasSubstr("what a container gets lies on one GPU")));
}

TEST(PartsBesideWholeGpus, LeaveThePodsOwnWholeGpusFree) {
  ChooserView view = Call(300, {{"A", 1000}, {"B", 400}, {"C", 1000}});
  view.placement = PartPlacement::kSpread;
  view.asks = {{Ask("p", 300)}};
  EXPECT_THAT(Chosen(view), ElementsAre("A"));
  view.asks->push_back(Ask("p", 2000));
  EXPECT_THAT(Chosen(view), ElementsAre("B"));
  view.gpus[1].free[kMilli] = 1000;
  EXPECT_THAT(Chosen(view), ElementsAre("A")) << "two others are free";
}

TEST(PartsBesideWholeGpus, TakeOfThePlannedOnesThatWhichIsNotForTheWhole) {
  ChooserView view = Call(300, {{"A", 1000}, {"B", 1000}, {"C", 400}, {"D", 350}});
  for (const std::vector<std::string>& plan : {std::vector<std::string>{"A", "B", "C"}, {"C", "B", "A"}}) {
    view.asks = {{Ask("p", 300, plan), Ask("p", 2000, plan)}};
    EXPECT_THAT(Chosen(view), ElementsAre("C"));
  }
  view.asks = {{Ask("p", 300, {"A", "B"}), Ask("p", 2000, {"A", "B"})}};
  EXPECT_THAT(Chosen(view), ElementsAre("D")) << "the plan is for the whole alone";
  view.gpus[2].free[kMilli] = 1000;
  view.asks = {{Ask("p", 300, {"A", "B", "C"}), Ask("p", 2000, {"A", "B", "C"})}};
  EXPECT_THAT(Chosen(view), ElementsAre("A")) << "two are left of the planned ones";
  view.held = {{HeldParts{.pod = {"a", "p"}, .container = "c2000", .ids = {{kMilli, {{"B", 0}}}}}}};
  view.gpus[0].free[kMilli] = view.gpus[1].free[kMilli] = 0;
  EXPECT_THAT(Chosen(view), ElementsAre("C")) << "the whole ones have been given";
}

TEST(PartsBesideWholeGpus, ComeTogetherWithTheOtherPartsOfThePod) {
  ChooserView view = Call(300, {{"A", 400}, {"B", 600}, {"C", 1000}, {"D", 1000}});
  view.asks = {{Ask("p", 300), Ask("p", 200), Ask("p", 2000)}};
  EXPECT_THAT(Chosen(view), ElementsAre("B")) << "where 200 fit, too";
}

TEST(PartsBesideWholeGpus, OfAnInitContainerLieOnAGpuThatCanBeGivenWholeThen) {
  ChooserView view = Call(300, {{"A", 400}, {"B", 1000}, {"C", 1000}});
  view.asks = {{Ask("p", 300), Ask("p", 2000)}};
  EXPECT_THAT(Chosen(view), ElementsAre("A"));
  view.asks->front().is_init = true;
  EXPECT_THAT(Chosen(view), ElementsAre("B"));
  for (PartAsk& ask : *view.asks) ask.planned_gpus = {"A", "C", "B"};
  view.gpus[1].free[kMilli] = 999;
  EXPECT_THAT(Chosen(view), ElementsAre("C")) << "of those that are planned, too";
}

TEST(PartsBesideWholeGpus, OfAnInitContainerThatAreHandedOnToAPartStayOffFreeGpus) {
  ChooserView view = Call(300, {{"A", 700}, {"B", 1000}, {"C", 1000}});
  view.asks = {{Ask("p", 300), Ask("p", 200), Ask("p", 2000)}};
  view.asks->front().is_init = true;
  EXPECT_THAT(Chosen(view), ElementsAre("A"));
  for (PartAsk& ask : *view.asks) ask.planned_gpus = {"A", "B", "C"};
  EXPECT_THAT(Chosen(view), ElementsAre("A")) << "of those that are planned, too";
}

TEST(PartsBesideWholeGpus, KeepOffThoseThatArePlannedWholeForOthers) {
  ChooserView view = Call(300, {{"A", 1000}, {"B", 1000}, {"C", 1000}});
  view.asks = {{Ask("p", 300), Ask("others", 2000, {"A", "B"})}};
  EXPECT_THAT(Chosen(view), ElementsAre("C"));
  view.asks->back().has_started = true;
  EXPECT_THAT(Chosen(view), ElementsAre("A"));
}

std::vector<std::string> Ids(const std::string& gpu, int count, int from = 0) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(ToText({gpu, from + i}));
  return ids;
}
std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
template <typename T>
std::string WhyNot(const T& result) {
  return result ? "" : T(result).error().message();
}

class WholeGpuPluginTest : public ::testing::Test {
 protected:
  WholeGpuPluginTest() { Begin(); }
  void Begin(NodeSample look = testing::GpusOf(4, 8)) {
    parts_.emplace(holders_, pending_, PartPluginsOptions{.mode = SharingMode::kMilli, .enforcer = &enforcer_}, clock_,
                   log_);
    parts_->Look(look);
  }
  DevicePlugin& Milli() { return *parts_->plugins().at(0); }
  // Nothing if it is refused.
  std::vector<std::string> Preferred(const std::vector<std::string>& free, int count) {
    const auto ids = Milli().Prefer(free, {}, count);
    return ids ? *ids : std::vector<std::string>();
  }
  void Hold(const std::string& pod, const std::vector<std::string>& ids) {
    holders_.held.push_back({"a", pod, "c2000", {{kResource, ids}}});
  }

  kube::testing::ManualClock clock_;
  const kube::Log log_;
  testing::FakeHolders holders_;
  testing::FakePending pending_;
  testing::FakeEnforcer enforcer_;
  std::optional<PartPlugins> parts_;
};

TEST_F(WholeGpuPluginTest, AllIdsOfFreeGpusArePreferredAndNobodyElses) {
  Hold("q", Ids("GPU-1", 1));
  const auto ids = Milli().Prefer(Ids("GPU-1", 999, 1) + Ids("GPU-0", 1000) + Ids("GPU-3", 1000), {}, 2000);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(std::set(ids->begin(), ids->end()).size(), 2000U);
  EXPECT_EQ(WhyNot(Milli().Allocate(*ids)), "");
  EXPECT_THAT(WhyNot(Milli().Prefer(Ids("GPU-1", 999, 1) + Ids("GPU-0", 1000), {}, 1500)),
              HasSubstr("ask for 1 to 1000, or for a multiple of 1000"));
}

TEST_F(WholeGpuPluginTest, TheEnvironmentListsThemByIndexWithAllTheirMemory) {
  NodeSample look = testing::GpusOf(3, 8);
  look.gpus[0].gpu.uuid = "GPU-z";
  Begin(look);
  PartAsk ask = Ask("p", 2000);
  ask.memory_mib = 100;
  pending_.asks = {{ask}};
  const auto ids = Ids("GPU-2", 1000) + Ids("GPU-z", 1000);
  const auto setup = Milli().Allocate(ids);
  ASSERT_TRUE(setup.ok());
  EXPECT_THAT(setup->environment,
              ElementsAre(Pair("GRUS_GPU_MEMORY_MIB", "8204,8204"), Pair("GRUS_GPU_MILLI", "1000,1000"),
                          Pair("NVIDIA_VISIBLE_DEVICES", "GPU-z,GPU-2")));
  ASSERT_THAT(enforcer_.given, SizeIs(1));
  EXPECT_THAT(enforcer_.given[0].ids, SizeIs(2000));
  EXPECT_EQ(enforcer_.given[0].memory_mib, 16408);
}

TEST_F(WholeGpuPluginTest, ASickGpuOrOneThatIsHeldOtherwiseIsNotAmongThem) {
  NodeSample look = testing::GpusOf(4, 8);
  look.gpus[0].fault_xid = 79;
  Begin(look);
  holders_.held.push_back({"a", "nvidia", "c", {{"nvidia.com/gpu", {"GPU-1"}}}});
  const auto free = Ids("GPU-1", 1000) + Ids("GPU-2", 1000) + Ids("GPU-3", 1000);
  EXPECT_THAT(Preferred(free, 2000), SizeIs(2000));
  EXPECT_THAT(WhyNot(Milli().Prefer(free, {}, 3000)),
              HasSubstr("nobody has a part of 2: GPU-2 has 1000, GPU-3 has 1000; create the pod again once others have "
                        "ended, or ask for less; GPU-1 is held by a/nvidia, container c, by nvidia.com/gpu"));
  EXPECT_THAT(WhyNot(Milli().Allocate(Ids("GPU-2", 1000) + Ids("GPU-0", 1000))), HasSubstr("GPU-0 is sick"));
  EXPECT_THAT(WhyNot(Milli().Allocate(Ids("GPU-2", 1000) + Ids("GPU-1", 1000))),
              HasSubstr("GPU-1 is held by a/nvidia"));
}

TEST_F(WholeGpuPluginTest, WhatEndedInitContainersHadIsAmongThem) {
  const auto free = Ids("GPU-0", 1000) + Ids("GPU-1", 1000) + Ids("GPU-3", 1000);
  const auto ids = Milli().Prefer(free, Ids("GPU-3", 300), 2000);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(std::vector(ids->begin(), ids->begin() + 300), Ids("GPU-3", 300));
  EXPECT_EQ(WhyNot(Milli().Allocate(*ids)), "");
  EXPECT_THAT(
      WhyNot(Milli().Prefer(Ids("GPU-0", 1000) + Ids("GPU-1", 1000) + Ids("GPU-3", 300), Ids("GPU-3", 300), 2000)),
      HasSubstr("an init container of the pod had a part of GPU-3, which the kubelet hands on"));
}

TEST_F(WholeGpuPluginTest, StartOnlyWithWholeGpusThatNobodyHoldsOtherwise) {
  const auto ids = Ids("GPU-2", 1000) + Ids("GPU-0", 1000);
  pending_.asks = {{Ask("p", 2000)}};
  Hold("p", ids);
  EXPECT_EQ(WhyNot(Milli().PreStart(ids)), "");
  EXPECT_THAT(WhyNot(Milli().PreStart(Ids("GPU-2", 1000) + Ids("GPU-0", 999))), HasSubstr("lie on several GPUs"));
  holders_.held.push_back({"a", "nvidia", "c", {{"nvidia.com/gpu", {"GPU-2"}}}});
  EXPECT_THAT(WhyNot(Milli().PreStart(ids)), HasSubstr("GPU-2 is held by a/nvidia"));
}

TEST_F(WholeGpuPluginTest, APartFindsNoMemoryOnThemAndAllOfItOnceTheyHaveEnded) {
  Hold("p", Ids("GPU-0", 1000) + Ids("GPU-1", 1000));
  PartAsk ask = Ask("q", 100);
  ask.memory_mib = 8000;
  pending_.asks = {{ask}};
  EXPECT_THAT(Preferred(Ids("GPU-2", 1000), 100), AllOf(SizeIs(100), Each(StartsWith("GPU-2"))));
  holders_.held.clear();
  EXPECT_THAT(Preferred(Ids("GPU-1", 1000), 100), AllOf(SizeIs(100), Each(StartsWith("GPU-1"))));
}

}  // namespace
}  // namespace grus
