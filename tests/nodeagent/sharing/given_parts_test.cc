// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/given_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/sharing/part_fakes.h"
#include "tests/nodeagent/sharing/part_looks.h"

namespace grus {
namespace {

using std::chrono::seconds;
using testing::AddProcess;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::NamedPod;
using testing::PartsHeld;

class PartWatchTest : public ::testing::Test {
 protected:
  PartWatchTest() {
    look_ = testing::GpusOf(2, 80);
    gpus_ = SharedGpus(512).Of(look_);
  }
  GivenParts Note() {
    look_.at = clock_.Now();
    watch_.Begin();
    std::map<kube::ObjectKey, std::vector<HeldParts>> by_pod;
    for (HeldParts& part : PartsOf(held_, kPartResources)) by_pod[part.pod].push_back(std::move(part));
    watch_.Note(held_, by_pod, pods_, gpus_);
    return *watch_.newest();
  }
  void Pass(kube::Duration time) { clock_.Advance(time); }

  kube::testing::ManualClock clock_;
  NodeSample look_;
  std::vector<SharedGpu> gpus_;
  std::vector<HeldDevices> held_;
  std::vector<std::shared_ptr<const NodePod>> pods_;
  PartWatch watch_{[this] { return std::make_shared<const NodeSample>(look_); }, clock_, "uid-agent"};
};

TEST_F(PartWatchTest, EachContainerHasThePartThatTheKubeletRecordedWhateverItsPodSays) {
  pods_ = {NamedPod("p", {{"sharing.ai.centauruscloud.io/gpus", R"({"c":{"gpu":"GPU-0","milli":900}})"},
                          {"sharing.ai.centauruscloud.io/enforcement", "Strict"}})};
  held_ = {PartsHeld("p", "c", "GPU-1", 250)};
  EXPECT_THAT(Note().parts, ElementsAre(GivenPart{.pod = {"a", "p"},
                                                  .pod_uids = {"uid-p"},
                                                  .container = "c",
                                                  .gpu = "GPU-1",
                                                  .index = 1,
                                                  .milli = 250,
                                                  .memory_mib = 20480,
                                                  .enforcement = "None"}));
}

TEST_F(PartWatchTest, ClaimedPartsAreOnesOfTheirOwnForEachGpu) {
  pods_ = {NamedPod("p")};
  HeldParts claims{.pod = {"a", "p"}, .container = "c", .claimed = {{"GPU-0", 300, 1000}, {"GPU-1", 400, 2000}}};
  watch_.Begin();
  watch_.Note({}, {{claims.pod, {claims}}}, pods_, gpus_);
  const std::vector<GivenPart> parts = watch_.newest()->parts;
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].milli + parts[0].memory_mib, 1300);
  EXPECT_EQ(parts[1].milli + parts[1].memory_mib, 2400);
}

TEST_F(PartWatchTest, WholeGpusAreAPartForEachAndTheirHolderUsesThem) {
  pods_ = {NamedPod("p", {{"sharing.ai.centauruscloud.io/memory-mib", "5"}})};
  held_ = {PartsHeld("p", "c", "GPU-1", 1000)};
  for (const auto& [resource, ids] : PartsHeld("p", "c", "GPU-0", 1000).ids) {
    held_[0].ids[resource].insert(held_[0].ids[resource].end(), ids.begin(), ids.end());
  }
  for (const std::size_t gpu : {0U, 1U}) AddProcess(look_, gpu, {"a", "p", "c"}, 7);
  const GivenParts noted = Note();
  ASSERT_EQ(noted.parts.size(), 2U);
  for (const int index : {0, 1}) {
    const GivenPart& part = noted.parts[static_cast<std::size_t>(index)];
    EXPECT_EQ(part.gpu, "GPU-" + std::to_string(index));
    EXPECT_EQ(part.index, index);
    EXPECT_EQ(part.milli, 1000);
    EXPECT_EQ(part.memory_mib, 81920);
  }
  EXPECT_THAT(noted.partless, IsEmpty());
}

TEST_F(PartWatchTest, APartGoesWithItsPod) {
  pods_ = {NamedPod("p")};
  held_ = {PartsHeld("p", "c", "GPU-0", 100)};
  EXPECT_EQ(Note().parts.size(), 1U);
  held_.clear();
  EXPECT_THAT(Note().parts, IsEmpty());
  held_ = {PartsHeld("p", "c", "GPU-0", 100)};
  pods_ = {NamedPod("p", {}, "Succeeded")};
  EXPECT_THAT(Note().parts, IsEmpty());
}

TEST_F(PartWatchTest, WhoUsesASharedGpuWithoutAPartIsToldWithAllItsProcesses) {
  pods_ = {NamedPod("p"), NamedPod("thief")};
  held_ = {PartsHeld("p", "c", "GPU-0", 100)};
  AddProcess(look_, 0, {"a", "p", "c"}, 7);
  AddProcess(look_, 1, {"a", "p", "c"}, 8);
  AddProcess(look_, 0, {"a", "thief", "c"}, 100);
  AddProcess(look_, 0, {"a", "thief", "c"}, 20);
  AddProcess(look_, 0, {"a", "silent", "c"}, std::nullopt);
  const auto use = [](const char* pod, int gpu, int processes, std::optional<std::uint64_t> bytes) {
    return PartlessUse{{"a", pod, "c"}, "GPU-" + std::to_string(gpu), gpu, processes, bytes};
  };
  EXPECT_THAT(Note().partless,
              ElementsAre(use("p", 1, 1, 8), use("silent", 0, 1, std::nullopt), use("thief", 0, 2, 120)));
}

TEST_F(PartWatchTest, ProcessesWhoseContainerIsNotKnownOrThatAreInNoPodAreNotTold) {
  AddProcess(look_, 0, {"a", "p", ""}, 7);
  AddProcess(look_, 0, {}, 7);
  look_.gpus[0].processes.push_back({{.pid = 9, .memory_bytes = 1}, std::make_shared<const Owner>()});
  EXPECT_THAT(Note().partless, IsEmpty());
}

TEST_F(PartWatchTest, AGpuThatIsNotSharedIsNobodysConcern) {
  gpus_.erase(gpus_.begin());
  AddProcess(look_, 0, {"a", "whole", "c"}, 7);
  EXPECT_THAT(Note().partless, IsEmpty());
}

TEST_F(PartWatchTest, WhoHoldsTheWholeGpuByAnotherPluginHasIt) {
  held_ = {{"a", "whole", "c", {{"nvidia.com/gpu", {"GPU-0"}}}}};
  AddProcess(look_, 0, {"a", "whole", "c"}, 7);
  AddProcess(look_, 1, {"a", "whole", "c"}, 8);
  const auto partless = Note().partless;
  ASSERT_EQ(partless.size(), 1U);
  EXPECT_EQ(partless[0].gpu, "GPU-1");
}

TEST_F(PartWatchTest, WhoHasAPartByAPluginWhoseIdsSayNothingOfTheGpuMayUseAny) {
  held_ = {{"a", "old", "c", {{"aliyun.com/gpu-mem", {"GPU-0-_-7"}}}}};
  AddProcess(look_, 1, {"a", "old", "c"}, 7);
  EXPECT_THAT(Note().partless, IsEmpty());
}

TEST_F(PartWatchTest, ProcessesOfAPartThatHasJustEndedAreToldOnlyIfTheyStay) {
  pods_ = {NamedPod("p")};
  held_ = {PartsHeld("p", "c", "GPU-0", 100)};
  AddProcess(look_, 0, {"a", "p", "c"}, 7);
  Note();
  held_.clear();
  Pass(seconds(30));
  EXPECT_THAT(Note().partless, IsEmpty());
  Pass(seconds(1));
  EXPECT_EQ(Note().partless.size(), 1U);
}

TEST_F(PartWatchTest, AnInitContainerThatAsksForAPartIsNotListedAndStillHasOne) {
  auto pod = std::make_shared<NodePod>(*NamedPod("p"));
  pod->spec.init_containers.resize(2);
  pod->spec.init_containers[0].name = "asks";
  pod->spec.init_containers[0].resources.limits.gpu_milli = kube::Quantity(100);
  pod->spec.init_containers[1].name = "other";
  pods_ = {pod};
  AddProcess(look_, 0, {"a", "p", "asks"}, 7);
  AddProcess(look_, 0, {"a", "p", "other"}, 8);
  const auto partless = Note().partless;
  ASSERT_EQ(partless.size(), 1U);
  EXPECT_EQ(partless[0].owner.container, "other");
}

TEST_F(PartWatchTest, WhatTheAgentStartsServesThoseWithParts) {
  AddProcess(look_, 0, {"grus-system", "agent", "agent"}, 7);
  EXPECT_THAT(Note().partless, IsEmpty());
}

TEST_F(PartWatchTest, AnOldLookAccusesNobody) {
  AddProcess(look_, 0, {"a", "p", "c"}, 7);
  EXPECT_EQ(Note().partless.size(), 1U);
  Pass(seconds(11));
  watch_.Begin();
  watch_.Note({}, {}, pods_, gpus_);
  EXPECT_THAT(watch_.newest()->partless, IsEmpty());
}

}  // namespace
}  // namespace grus
