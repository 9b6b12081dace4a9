// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/gpu_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/types/part_memory.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

constexpr PartResource kMemory = PartResource::kMemory, kCompute = PartResource::kCompute;

PartAmounts Alnair(std::int64_t memory, std::int64_t compute) {
  PartAmounts amounts;
  amounts[kMemory] = memory;
  amounts[kCompute] = compute;
  return amounts;
}
GpuRoom Room(const std::string& uuid, std::int64_t memory, std::int64_t compute) {
  return {uuid, Alnair(80, 100), Alnair(memory, compute)};
}
PartAsk Ask(const std::string& pod, std::int64_t memory, std::int64_t compute, const std::string& planned = "") {
  return {.pod = {"a", pod}, .container = "c", .amounts = Alnair(memory, compute), .planned_gpus = {planned}};
}
std::vector<PartId> Ids(const std::string& gpu, int count, int from = 0) {
  std::vector<PartId> ids;
  for (int i = 0; i < count; ++i) ids.push_back({gpu, from + i});
  return ids;
}
HeldParts Held(const std::string& pod, std::map<PartResource, std::vector<PartId>> ids) {
  return {{"a", pod}, "c", std::move(ids)};
}
ChooserView Call(PartResource resource, std::int64_t amount, std::vector<GpuRoom> gpus) {
  return {.resource = resource, .amount = amount, .gpus = std::move(gpus), .held = {{}}, .asks = {{}}};
}
std::string Chosen(const ChooserView& view) {
  const kube::Result<GpuChoice> choice = ChooseGpu(view);
  if (!choice) return choice.error().message();
  std::string gpus;
  for (const std::string& gpu : choice->gpus) gpus.append(gpus.empty() ? "" : ",").append(gpu);
  return gpus;
}

TEST(FirstCall, PacksOntoTheFullestGpuThatHasRoom) {
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 100), Room("B", 20, 60), Room("C", 9, 60)});
  view.asks = {{Ask("p", 10, 50)}};
  EXPECT_EQ(Chosen(view), "B");
}

TEST(FirstCall, SpreadsToTheEmptiestGpuThatHasRoom) {
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 90), Room("B", 80, 100), Room("C", 9, 100)});
  view.asks = {{Ask("p", 10, 50)}};
  view.asks->front().placement = PartPlacement::kSpread;
  EXPECT_EQ(Chosen(view), "B");
  view.gpus[1].free[kCompute] = 49;
  EXPECT_EQ(Chosen(view), "A") << "the other part would not fit there";
  view.asks->front().planned_gpus = {"C"};
  EXPECT_EQ(Chosen(view), "A") << "the plan does not fit";
  view.gpus[2].free[kMemory] = 10;
  EXPECT_EQ(Chosen(view), "C") << "the plan is first";
}

TEST(FirstCall, TheNodeSaysHowForPodsThatSayNothing) {
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 100), Room("B", 20, 60)});
  view.asks = {{Ask("p", 10, 50)}};
  view.placement = PartPlacement::kSpread;
  EXPECT_EQ(Chosen(view), "A");
  view.asks->front().placement = PartPlacement::kPack;
  EXPECT_EQ(Chosen(view), "B");
  view.asks->push_back(Ask("later", 10, 50));
  view.asks->back().placement = PartPlacement::kSpread;
  EXPECT_EQ(Chosen(view), "B") << "the first is the one, as far as is known";
  view.asks->front().has_started = true;
  EXPECT_EQ(Chosen(view), "A");
}

TEST(FirstCall, LeavesRoomForTheLargestCounterpartOfThoseWhoMayBeAsking) {
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 100), Room("B", 20, 60)});
  view.asks = {{Ask("small", 10, 50), Ask("large", 10, 90), Ask("other", 11, 100)}};
  EXPECT_EQ(Chosen(view), "A");
  view.gpus[0].free[kCompute] = 80;
  EXPECT_EQ(Chosen(view), "B") << "no GPU has room for the large one, so it is not that or must be refused";
}

TEST(FirstCall, ThoseWhoHoldSomethingOrHaveStartedAreNotAsking) {
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 100), Room("B", 20, 60)});
  view.asks = {{Ask("small", 10, 50), Ask("holds", 10, 90), Ask("started", 10, 91)}};
  view.asks->back().has_started = true;
  view.held = {{Held("holds", {{kMemory, Ids("A", 10)}, {kCompute, Ids("A", 90)}})}};
  EXPECT_EQ(Chosen(view), "B");
}

TEST(FirstCall, PrefersThePlannedGpu) {
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 100), Room("B", 20, 60)});
  view.asks = {{Ask("p", 10, 50, "A")}};
  EXPECT_EQ(Chosen(view), "A");
}

TEST(FirstCall, IgnoresAPlanThatIsWrong) {
  for (const char* plan : {"nonsense", "C", "GPU-ffff", "A,B"}) {
    ChooserView view = Call(kMemory, 10, {Room("A", 80, 100), Room("B", 20, 60), Room("C", 5, 100)});
    view.asks = {{Ask("p", 10, 50, plan)}};
    EXPECT_EQ(Chosen(view), "B") << plan;
  }
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 100), Room("B", 20, 40)});
  view.asks = {{Ask("p", 10, 50, "B")}};
  EXPECT_EQ(Chosen(view), "A") << "the other part would not fit there";
  view.asks->push_back(Ask("others", 11, 50, "B"));
  EXPECT_EQ(Chosen(view), "A");
}

TEST(FirstCall, OfAnUnknownContainerGoesWhereMostIsLeft) {
  ChooserView view = Call(kMemory, 10, {Room("A", 80, 30), Room("B", 20, 60), Room("C", 5, 100)});
  EXPECT_EQ(Chosen(view), "B") << "the watch lags";
  view.asks.reset();
  EXPECT_EQ(Chosen(view), "B") << "the API server has not answered";
}

TEST(FirstCall, WithoutRoomSaysWhatThereIs) {
  EXPECT_EQ(Chosen(Call(kMemory, 30, {Room("A", 20, 100), Room("B", 29, 100)})),
            "no GPU of this node has 30 alnair/vgpu-memory free: A has 20, B has 29. What a container gets lies on one "
            "GPU; create the pod again once others have ended, or ask for less");
  EXPECT_THAT(Chosen(Call(kMemory, 90, {Room("A", 80, 100)})),
              HasSubstr("90 alnair/vgpu-memory: a GPU of this node has 80"));
  EXPECT_THAT(Chosen(Call(kMemory, 1, {})), HasSubstr("is sick"));
}

// p holds memory on A, with much room on B.
class SecondCallTest : public ::testing::Test {
 protected:
  ChooserView view_ = [] {
    ChooserView view = Call(kCompute, 50, {Room("A", 0, 50), Room("B", 80, 50)});
    view.held = {{Held("p", {{kMemory, Ids("A", 10)}})}};
    view.asks = {{Ask("p", 10, 50), Ask("q", 20, 50, "B")}};
    view.last = LastPart{kMemory, Ids("A", 10), true};
    return view;
  }();
};

TEST_F(SecondCallTest, FollowsTheFirst) {
  const kube::Result<GpuChoice> choice = ChooseGpu(view_);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->gpus.front(), "A");
  ASSERT_TRUE(choice->partner);
  EXPECT_TRUE(choice->partner->is_sure);
}

TEST_F(SecondCallTest, AlsoComesAfterMemoryWasAskedForSecond) {
  view_ = Call(kMemory, 10, {Room("A", 10, 0), Room("B", 80, 50)});
  view_.held = {{Held("p", {{kCompute, Ids("A", 50)}})}};
  view_.asks = {{Ask("p", 10, 50), Ask("q", 10, 40)}};
  view_.last = LastPart{kCompute, Ids("A", 50), true};
  EXPECT_EQ(Chosen(view_), "A");
}

TEST_F(SecondCallTest, IsKnownHoweverLateItComes) {
  view_.last->is_fresh = false;
  EXPECT_EQ(Chosen(view_), "A");
}

TEST_F(SecondCallTest, IsKnownToAnAgentThatHasJustStarted) {
  view_.last.reset();
  EXPECT_EQ(Chosen(view_), "A");
}

TEST_F(SecondCallTest, IsNoneIfTheOwnerOfTheLastIdsDoesNotAskForThis) {
  view_.asks = {{Ask("p", 10, 0), Ask("q", 20, 50)}};
  EXPECT_EQ(Chosen(view_), "B");
  view_.asks = {{Ask("p", 10, 49), Ask("q", 20, 50)}};
  EXPECT_EQ(Chosen(view_), "B");
}

TEST_F(SecondCallTest, IsNoneIfTheOwnerOfTheLastIdsHoldsThisAlready) {
  view_.held = {{Held("p", {{kMemory, Ids("A", 10)}, {kCompute, Ids("A", 50)}})}};
  EXPECT_EQ(Chosen(view_), "B");
}

TEST_F(SecondCallTest, OneThatWasGivenUpDoesNotBindTheNext) {
  view_.held->push_back(Held("r", {{kMemory, Ids("C", 1)}, {kCompute, Ids("C", 1)}}));
  view_.last = LastPart{kCompute, Ids("C", 1), true};
  EXPECT_EQ(Chosen(view_), "B") << "p lacks its compute, but the kubelet went on to another container";
}

TEST_F(SecondCallTest, WithoutPodResourcesTheLastCallDecidesForAShortTime) {
  view_.held.reset();
  EXPECT_EQ(Chosen(view_), "A");
  EXPECT_FALSE(ChooseGpu(view_)->partner->is_sure);
  view_.last->is_fresh = false;
  EXPECT_EQ(Chosen(view_), "B");
  EXPECT_FALSE(ChooseGpu(view_)->partner);
}

TEST_F(SecondCallTest, WithoutPodResourcesTheAmountsMustBeThoseOfAContainer) {
  view_.held.reset();
  view_.asks = {{Ask("p", 11, 50), Ask("q", 20, 50)}};
  EXPECT_EQ(Chosen(view_), "B");
  view_.asks.reset();
  EXPECT_EQ(Chosen(view_), "A") << "nothing is known of any";
}

TEST_F(SecondCallTest, AnInitContainerIsNotListedAndIsFollowedAllTheSame) {
  view_.held.emplace();
  view_.asks->front().is_init = true;
  EXPECT_EQ(Chosen(view_), "A");
  view_.last->is_fresh = false;
  EXPECT_EQ(Chosen(view_), "B");
}

TEST_F(SecondCallTest, AnOwnerThatIsNotListedIsFollowedWhereAnyOtherContainerWouldHaveRoomToo) {
  view_.held.emplace();  // The kubelet has given its pod up, or the answer is from before.
  EXPECT_EQ(Chosen(view_), "B") << "A has no memory for q";
  view_.gpus[0].free[kMemory] = 20;
  EXPECT_EQ(Chosen(view_), "A");
  view_.last->is_fresh = false;
  EXPECT_EQ(Chosen(view_), "B");
}

TEST_F(SecondCallTest, AnOwnerThatTheApiServerHasNotShownYetIsTakenForTheOneThatAsks) {
  view_.asks = {{Ask("q", 20, 50)}};
  EXPECT_EQ(Chosen(view_), "A");
  EXPECT_FALSE(ChooseGpu(view_)->partner->is_sure);
  view_.last->is_fresh = false;
  EXPECT_EQ(Chosen(view_), "B");
}

TEST_F(SecondCallTest, WithoutRoomIsRefusedByName) {
  view_.gpus[0].free[kCompute] = 49;
  EXPECT_EQ(Chosen(view_),
            "a/p, container c: A, where its other part lies, has no 50 alnair/vgpu-compute free. Create the pod again "
            "once others have ended, or ask for less")
      << "elsewhere it could never start";
}

TEST_F(SecondCallTest, ForMoreThanAnyGpuHasSaysHowMuchThatIs) {
  view_ = Call(kMemory, 90, {Room("A", 80, 50), Room("B", 80, 100)});
  view_.held = {{Held("p", {{kCompute, Ids("A", 50)}})}};
  view_.asks = {{Ask("p", 90, 50)}};
  view_.last = LastPart{kCompute, Ids("A", 50), true};
  EXPECT_THAT(Chosen(view_), HasSubstr("90 alnair/vgpu-memory: a GPU of this node has 80"));
  view_.gpus.clear();
  EXPECT_THAT(Chosen(view_), HasSubstr("A, where its other part lies, has no 90 alnair/vgpu-memory free"));
}

TEST_F(SecondCallTest, NoneFollowsARefusedOne) {
  view_.last->is_refused = true;
  EXPECT_EQ(Chosen(view_), "B") << "PodResources still shows p, which the kubelet has given up";
  view_.held.reset();
  EXPECT_EQ(Chosen(view_), "B");
}

TEST(Thousandths, HaveNoCounterpart) {
  PartAmounts total, little;
  total[PartResource::kMilli] = 1000;
  little[PartResource::kMilli] = 300;
  ChooserView view = Call(PartResource::kMilli, 300, {{"A", total, total}, {"B", total, little}});
  view.last = LastPart{PartResource::kMilli, Ids("A", 300), true};
  EXPECT_EQ(Chosen(view), "B");
  view.asks.reset();
  view.held.reset();
  EXPECT_EQ(Chosen(view), "B") << "packed, whoever it is";
}

// GPUs with as many MiB free; 1000 MiB each.
ChooserView Thousandths(std::initializer_list<std::pair<std::string, std::int64_t>> gpus, std::int64_t milli) {
  ChooserView view = Call(PartResource::kMilli, milli, {});
  for (const auto& [uuid, mib] : gpus) {
    GpuRoom room{.uuid = uuid, .total_mib = 1000, .free_mib = mib};
    room.total[PartResource::kMilli] = 1000;
    room.free[PartResource::kMilli] = 500 + static_cast<std::int64_t>(view.gpus.size());  // The first is the fullest.
    view.gpus.push_back(room);
  }
  return view;
}
PartAsk Saying(const std::string& pod, std::int64_t milli, std::int64_t mib) {
  PartAsk ask{.pod = {"a", pod}, .container = "c", .memory_mib = mib};
  ask.amounts[PartResource::kMilli] = milli;
  return ask;
}

TEST(ThousandthsWithMemory, GoWhereAsMuchIsFree) {
  ChooserView view = Thousandths({{"A", 299}, {"B", 800}}, 300);
  EXPECT_EQ(Chosen(view), "B") << "in proportion it is 300";
  view.gpus[0].free_mib = 300;
  EXPECT_EQ(Chosen(view), "A");
  view.asks = {{Saying("p", 300, 301)}};
  EXPECT_EQ(Chosen(view), "B");
  view.asks = {{Saying("p", 300, 10)}};
  view.gpus[0].free_mib = 10;
  EXPECT_EQ(Chosen(view), "A") << "it says less than in proportion";
  EXPECT_EQ(ChooseGpu(view)->memory_mib, 10);
}

TEST(ThousandthsWithMemory, GoWhereTheOneWhoSaysMostHasRoomAsFarAsAnyHas) {
  ChooserView view = Thousandths({{"A", 300}, {"B", 800}}, 300);
  view.asks = {{Saying("small", 300, 0), Saying("large", 300, 700)}};
  EXPECT_EQ(Chosen(view), "B");
  EXPECT_EQ(ChooseGpu(view)->memory_mib, 0) << "it is not known which of them it is";
  view.gpus[1].free_mib = 600;
  EXPECT_EQ(Chosen(view), "A");
  view.listed = {{"a", "large"}};
  EXPECT_EQ(
      Chosen(view),
      "no GPU of this node has 300 ai.centauruscloud.io/gpu-milli and memory (700 MiB) free: in MiB, A has 300 of "
      "1000, B has 600 of 1000; create the pod again once others have ended, or ask for less "
      "(sharing.ai.centauruscloud.io/memory-mib)");
}

TEST(ThousandthsWithMemory, LeaveWhatIsPlannedForOthers) {
  ChooserView view = Thousandths({{"A", 900}, {"B", 1000}}, 300);
  PartAsk member = Saying("member", 100, 700);
  member.planned_gpus = {"A"};
  view.asks = {{Saying("p", 300, 0), member}};
  EXPECT_EQ(Chosen(view), "B") << "300 of 900 MiB, of which 700 are planned for another";
  view.asks->back().memory_mib = 600;
  EXPECT_EQ(Chosen(view), "A") << "just what is left";
  view.asks->back().memory_mib = 901;
  EXPECT_EQ(Chosen(view), "A") << "it has no room there anyhow";
}

TEST(ThousandthsWithMemory, ThatMakesNoSenseAreRefused) {
  ChooserView view = Thousandths({{"A", 1000}}, 300);
  view.asks = {{Saying("p", 300, api::kSenselessMemory)}};
  EXPECT_EQ(Chosen(view),
            "annotation sharing.ai.centauruscloud.io/memory-mib of the pod: expected MiB of memory for each of its "
            "containers that asks for ai.centauruscloud.io/gpu-milli, as a whole number from 1 on, such as \"8192\"");
}

}  // namespace
}  // namespace grus
