// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

using testing::AskFor;
using ::testing::ElementsAre;
using ::testing::Field;
using testing::GpusOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Ids(const std::string& gpu, int count, int from = 0) {
  std::vector<std::string> ids;
  for (int i = 0; i < count; ++i) ids.push_back(ToText({gpu, from + i}));
  return ids;
}
std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::string WhyNot(const kube::Status& status) { return status ? "" : kube::Status(status).error().message(); }
template <typename T>
std::string WhyNot(const kube::Result<T>& result) {
  return result ? "" : result.error().message();
}

class PartPluginsTest : public ::testing::Test {
 protected:
  void Begin(SharingMode mode = SharingMode::kAlnair) {
    parts_.reset();  // A new agent.
    parts_.emplace(holders_, pending_,
                   PartPluginsOptions{.mode = mode,
                                      .on_devices_changed = [this] { ++changes_; },
                                      .on_start = [this] { ++starts_; },
                                      .enforcer = &enforcer_},
                   clock_, log_);
    parts_->Look(GpusOf(2, 8));
  }
  DevicePlugin& Memory() { return *parts_->plugins().at(0); }
  DevicePlugin& Compute() { return *parts_->plugins().at(1); }
  // As the kubelet does it; the ids, or empty with the reason in why_.
  std::vector<std::string> Take(DevicePlugin& plugin, const std::vector<std::string>& free, int count) {
    const auto preferred = plugin.Prefer(free, {}, count);
    why_ = WhyNot(preferred);
    if (!preferred) return {};
    const auto setup = plugin.Allocate(*preferred);
    why_ = WhyNot(setup);
    return setup ? *preferred : std::vector<std::string>();
  }
  void Hold(const std::string& pod, std::map<std::string, std::vector<std::string>> ids) {
    holders_.held.push_back({"a", pod, "c", std::move(ids)});
  }

  kube::testing::ManualClock clock_;
  const kube::Log log_;
  testing::FakeHolders holders_;
  testing::FakePending pending_;
  testing::FakeEnforcer enforcer_;
  std::atomic<int> changes_ = 0, starts_ = 0;  // Several threads may tell of them.
  std::string why_;
  std::optional<PartPlugins> parts_;
};

TEST_F(PartPluginsTest, OfferTheResourcesOfTheModeAndNothingWithoutOne) {
  Begin();
  ASSERT_THAT(parts_->plugins(), SizeIs(2));
  EXPECT_EQ(Memory().resource(), "alnair/vgpu-memory");
  EXPECT_EQ(Compute().resource(), "alnair/vgpu-compute");
  EXPECT_THAT(Memory().Devices(), SizeIs(16));
  EXPECT_THAT(Compute().Devices(), SizeIs(200));
  EXPECT_EQ(Memory().Devices()[8].id, "GPU-1_0");

  Begin(SharingMode::kMilli);
  ASSERT_THAT(parts_->plugins(), SizeIs(1));
  EXPECT_EQ(Memory().resource(), "ai.centauruscloud.io/gpu-milli");
  EXPECT_THAT(Memory().Devices(), SizeIs(2000));

  Begin(SharingMode::kNone);
  EXPECT_THAT(parts_->plugins(), IsEmpty());
}

TEST_F(PartPluginsTest, IdsOfASickGpuAreUnhealthyUntilItWorksAgain) {
  Begin();
  const auto healthy = Memory().Devices();
  NodeSample look = GpusOf(2, 8);
  look.gpus[1].sample.reset();
  changes_ = 0;
  parts_->Look(look);
  parts_->Look(look);
  EXPECT_EQ(changes_, 1) << "once";
  const auto sick = Memory().Devices();
  ASSERT_EQ(sick.size(), healthy.size());
  for (std::size_t i = 0; i < sick.size(); ++i) {
    EXPECT_EQ(sick[i].id, healthy[i].id);
    EXPECT_EQ(sick[i].is_healthy, i < 8);
  }
  EXPECT_THAT(WhyNot(Memory().Allocate(Ids("GPU-1", 1))), HasSubstr("GPU-1 is sick"));
  EXPECT_THAT(Take(Memory(), Ids("GPU-1", 8) + Ids("GPU-0", 8), 2), ElementsAre("GPU-0_0", "GPU-0_1"));

  parts_->Look(GpusOf(2, 8));
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(Memory().Devices(), healthy);
}

TEST_F(PartPluginsTest, OfTheTwoResourcesOnlyMemoryNamesTheGpu) {
  Begin();
  const auto memory = Memory().Allocate(Ids("GPU-1", 2));
  const auto compute = Compute().Allocate(Ids("GPU-1", 50));
  ASSERT_TRUE(memory.ok() && compute.ok());
  EXPECT_THAT(memory->environment, ElementsAre(Pair("ALNAIR_VGPU_MEMORY", "2"), Pair("GRUS_GPU_MEMORY_MIB", "2048"),
                                               Pair("NVIDIA_VISIBLE_DEVICES", "GPU-1")));
  EXPECT_THAT(compute->environment, ElementsAre(Pair("ALNAIR_VGPU_COMPUTE", "50")));
  EXPECT_THAT(memory->device_paths, IsEmpty());
  EXPECT_THAT(memory->mounts, IsEmpty());
}

TEST_F(PartPluginsTest, AGpuOnWhichNobodyWouldBeHeldToAPartIsNotHealthyUntilThatIsOver) {
  Begin();
  enforcer_.down = {"GPU-1"};
  parts_->Look(GpusOf(2, 8));
  EXPECT_THAT(parts_->gpus(), ElementsAre(Field(&SharedGpu::is_healthy, true), Field(&SharedGpu::is_healthy, false)));
  EXPECT_EQ(changes_, 2);
  Hold("p", {{"alnair/vgpu-memory", Ids("GPU-1", 1)}});
  EXPECT_EQ(WhyNot(Memory().PreStart(Ids("GPU-1", 1))), "its daemon is down");
  holders_.is_available = false;
  EXPECT_EQ(WhyNot(Memory().PreStart(Ids("GPU-1", 1))), "its daemon is down");
  EXPECT_EQ(starts_, 0);

  enforcer_.down = {};
  parts_->Look(GpusOf(2, 8));
  EXPECT_EQ(changes_, 3);
  EXPECT_TRUE(Memory().PreStart(Ids("GPU-1", 1)));
}

TEST_F(PartPluginsTest, WhatHoldsAContainerToItsPartComesWithItOrItGetsNone) {
  Begin(SharingMode::kMilli);
  enforcer_.is_on = true;
  const auto setup = Memory().Allocate(Ids("GPU-0", 300));
  ASSERT_TRUE(setup.ok());
  EXPECT_EQ(setup->environment.count("HELD"), 1);
  EXPECT_EQ(setup->environment.at("GRUS_GPU_MEMORY_MIB"), "2461");
  ASSERT_THAT(enforcer_.given, SizeIs(1));
  EXPECT_EQ(enforcer_.given[0].resource, PartResource::kMilli);
  EXPECT_THAT(enforcer_.given[0].ids, SizeIs(300));
  EXPECT_EQ(enforcer_.given[0].memory_mib, 2461);

  enforcer_.is_writable = false;
  EXPECT_EQ(WhyNot(Memory().Allocate(Ids("GPU-0", 10, 300))), "10 ai.centauruscloud.io/gpu-milli: the disk is full");
}

TEST_F(PartPluginsTest, WhatHoldsAContainerToItsPartHearsBeforeItsStartWhoItIsAndOfItsMemory) {
  Begin(SharingMode::kMilli);
  PartAsk ask{.pod = {"a", "p"}, .container = "c", .memory_mib = 5000};
  ask.amounts[PartResource::kMilli] = 300;
  pending_.asks = {ask};
  Hold("p", {{"ai.centauruscloud.io/gpu-milli", Ids("GPU-0", 300)}});
  ASSERT_TRUE(Memory().PreStart(Ids("GPU-0", 300)));
  ASSERT_TRUE(enforcer_.starting);
  EXPECT_EQ(enforcer_.starting->pod.name, "p");
  EXPECT_EQ(enforcer_.starting->container, "c");
  EXPECT_EQ(enforcer_.starting->memory_mib, 5000);

  holders_.held.clear();  // As of an init container.
  ASSERT_TRUE(Memory().PreStart(Ids("GPU-0", 300)));
  EXPECT_FALSE(enforcer_.starting);
}

TEST_F(PartPluginsTest, ThousandthsBringMemoryInProportion) {
  Begin(SharingMode::kMilli);
  const auto setup = Memory().Allocate(Ids("GPU-0", 300));
  ASSERT_TRUE(setup.ok());
  EXPECT_THAT(setup->environment, ElementsAre(Pair("GRUS_GPU_MEMORY_MIB", "2461"), Pair("GRUS_GPU_MILLI", "300"),
                                              Pair("NVIDIA_VISIBLE_DEVICES", "GPU-0")));
}

TEST_F(PartPluginsTest, PodsThatSayNothingArePackedOrSpreadAsTheNodeSays) {
  Begin(SharingMode::kMilli);
  pending_.asks = {AskFor("p", 0, 0)};
  pending_.asks->front().amounts[PartResource::kMilli] = 300;
  const auto free = Ids("GPU-0", 900) + Ids("GPU-1", 1000);
  const auto gpu = [](const std::vector<std::string>& ids) { return ids.empty() ? "" : ids.front().substr(0, 5); };
  EXPECT_EQ(gpu(Take(Memory(), free, 300)), "GPU-0");
  parts_->SetPlacement(PartPlacement::kSpread);
  EXPECT_EQ(gpu(Take(Memory(), free, 300)), "GPU-1");
  parts_->SetPlacement(PartPlacement::kPack);
  EXPECT_EQ(gpu(Take(Memory(), free, 300)), "GPU-0");
}

TEST_F(PartPluginsTest, ThousandthsBringTheMemoryThatThePodSaysAndNoGpuPromisesMoreThanItHas) {
  Begin(SharingMode::kMilli);
  const auto ask = [&](const std::string& pod, std::int64_t mib) {
    PartAsk asked{.pod = {"a", pod}, .container = "c", .memory_mib = mib};
    asked.amounts[PartResource::kMilli] = 100;
    pending_.asks->push_back(asked);
  };
  const auto take = [&](const std::string& pod, int from) {
    holders_.held.push_back({"a", pod, "c", {}});
    const auto ids = Take(Memory(), Ids("GPU-0", 100, from) + Ids("GPU-1", 100, from), 100);
    holders_.held.back().ids["ai.centauruscloud.io/gpu-milli"] = ids;
    return ids.empty() ? why_ : ParsePartId(ids.front())->gpu;
  };
  ask("large", 7000);
  EXPECT_EQ(take("large", 0), "GPU-0");
  ask("next", 1205);
  EXPECT_EQ(take("next", 100), "GPU-1") << "of 8204 MiB, 1204 are left";
  ask("little", 1204);
  EXPECT_EQ(take("little", 200), "GPU-0");
  ask("too-much", 7000);
  EXPECT_THAT(take("too-much", 300), HasSubstr("memory (7000 MiB) free: in MiB, GPU-0 has 0 of 8204, GPU-1 has 6999"));
  ask("plain", 0);
  EXPECT_EQ(take("plain", 400), "GPU-1") << "in proportion it is 820";
}

TEST_F(PartPluginsTest, TheEnvironmentSaysTheMemoryThatThePodSays) {
  Begin(SharingMode::kMilli);
  PartAsk ask{.pod = {"a", "p"}, .container = "c", .memory_mib = 5000};
  ask.amounts[PartResource::kMilli] = 100;
  pending_.asks = {{ask}};
  const auto setup = Memory().Allocate(Ids("GPU-0", 100));
  ASSERT_TRUE(setup.ok());
  EXPECT_EQ(setup->environment.at("GRUS_GPU_MEMORY_MIB"), "5000");
}

TEST_F(PartPluginsTest, AContainerWithoutTheMemoryThatItSaysWaitsUntilOthersHaveEnded) {
  Begin(SharingMode::kMilli);
  for (const std::string pod : {"p", "q"}) {
    PartAsk ask{.pod = {"a", pod}, .container = "c", .memory_mib = 5000};
    ask.amounts[PartResource::kMilli] = 100;
    pending_.asks->push_back(ask);
  }
  Hold("p", {{"ai.centauruscloud.io/gpu-milli", Ids("GPU-0", 100)}});
  Hold("q", {{"ai.centauruscloud.io/gpu-milli", Ids("GPU-0", 100, 100)}});
  EXPECT_EQ(WhyNot(Memory().PreStart(Ids("GPU-0", 100))), "") << "the other has not been let start";
  EXPECT_THAT(WhyNot(Memory().PreStart(Ids("GPU-0", 100, 100))),
              HasSubstr("a/q, container c: it asks for 5000 MiB of GPU-0, which has 3204 left"));
  EXPECT_EQ(WhyNot(Memory().PreStart(Ids("GPU-0", 100))), "") << "it may start again";
  Begin(SharingMode::kMilli);
  pending_.asks->front().has_started = true;
  EXPECT_THAT(WhyNot(Memory().PreStart(Ids("GPU-0", 100, 100))), HasSubstr("3204 left")) << "a new agent sees it run";
  holders_.held.erase(holders_.held.begin());
  EXPECT_EQ(WhyNot(Memory().PreStart(Ids("GPU-0", 100, 100))), "");
}

TEST_F(PartPluginsTest, AContainerThatAsksForMoreThanItsPoolAllowsBesideItsPartStartsOnceThatIsAllowed) {
  for (const SharingMode mode : {SharingMode::kMilli, SharingMode::kAlnair, SharingMode::kGpushare}) {
    Begin(mode);
    const PartResource resource = ResourcesOf(mode).front();
    DevicePlugin& plugin = *parts_->plugins().at(0);
    const std::vector<std::string> ids = Ids("GPU-0", 4);
    holders_.held.clear();
    Hold("p", {{std::string(NameOf(resource)), ids}});
    enforcer_.holders["p/c"] = Enforcement::kCooperative;
    PartAsk ask{.pod = {"a", "p"}, .container = "c", .paged_mib = 30};
    pending_.asks = std::vector<PartAsk>();
    pending_.on_await = [&](const auto&) { pending_.asks = std::vector{ask}; };  // The API server is late.
    EXPECT_THAT(WhyNot(plugin.PreStart(ids)), HasSubstr("no NodePool selects this node"));
    parts_->SetPaging({.pool = "train", .percent = 100});
    EXPECT_EQ(WhyNot(plugin.PreStart(ids)), "");
    ASSERT_TRUE(enforcer_.starting);
    EXPECT_EQ(enforcer_.starting->paged_mib, 30);
    pending_.asks.reset();
    pending_.on_await = {};
    EXPECT_EQ(WhyNot(plugin.PreStart(ids)), "");
    EXPECT_EQ(enforcer_.starting->paged_mib, std::nullopt) << "what its pod says is not known";
  }
}

TEST_F(PartPluginsTest, RefuseWhatCannotBeGivenAndSayWhatToDo) {
  Begin();
  EXPECT_THAT(WhyNot(Memory().Allocate({})), HasSubstr("0 alnair/vgpu-memory: ask for at least 1"));
  EXPECT_THAT(WhyNot(Memory().Prefer(Ids("GPU-0", 8), {}, 0)), HasSubstr("ask for at least 1"));
  EXPECT_THAT(WhyNot(Memory().Prefer(Ids("GPU-0", 8), {}, -1)), HasSubstr("ask for at least 1"));
  EXPECT_THAT(WhyNot(Memory().Allocate(Ids("GPU-0", 8) + Ids("GPU-1", 1))),
              HasSubstr("9 alnair/vgpu-memory: a GPU of this node has 8"));
  EXPECT_THAT(WhyNot(Memory().Prefer(Ids("GPU-0", 8) + Ids("GPU-1", 8), {}, 9)), HasSubstr("ask for at most 8"));
  EXPECT_THAT(WhyNot(Memory().Allocate({"GPU-0_1", "GPU-1_1"})), HasSubstr("on several GPUs (GPU-0, GPU-1)"));
  EXPECT_THAT(WhyNot(Memory().Allocate({"GPU-0_8"})), HasSubstr("has no device GPU-0_8"));
  EXPECT_THAT(WhyNot(Memory().Allocate({"GPU-7_0"})), HasSubstr("has no device GPU-7_0"));
  EXPECT_THAT(WhyNot(Memory().Allocate({"nonsense"})), HasSubstr("has no device nonsense"));
  EXPECT_THAT(WhyNot(Memory().Allocate({"GPU-0_1", "GPU-0_1"})), HasSubstr("named twice"));
}

TEST_F(PartPluginsTest, TheOtherResourceFollowsInWhicheverOrder) {
  for (const bool memory_first : {true, false}) {
    Begin();
    holders_.held.clear();
    pending_.asks = {{AskFor("p", 2, 60)}};
    DevicePlugin& first = memory_first ? Memory() : Compute();
    DevicePlugin& second = memory_first ? Compute() : Memory();
    const std::vector<std::string> free = Ids("GPU-1", 100) + Ids("GPU-0", 100);
    const auto ids = Take(first, free, memory_first ? 2 : 60);
    ASSERT_THAT(ids, SizeIs(memory_first ? 2 : 60)) << why_;
    const std::string gpu = ParsePartId(ids.front())->gpu, other = gpu == "GPU-0" ? "GPU-1" : "GPU-0";
    Hold("p", {{first.resource(), ids}});
    pending_.asks->push_back(AskFor("q", 3, 60));  // Would be packed elsewhere.

    const int amount = memory_first ? 60 : 2;
    EXPECT_EQ(ParsePartId(Take(second, Ids(other, 100) + Ids(gpu, 100), amount).front())->gpu, gpu);
  }
}

TEST_F(PartPluginsTest, ASecondResourceElsewhereIsRefused) {
  Begin();
  pending_.asks = {{AskFor("p", 2, 60)}};
  const auto ids = Take(Memory(), Ids("GPU-0", 8), 2);
  Hold("p", {{"alnair/vgpu-memory", ids}});
  ASSERT_TRUE(Compute().Prefer(Ids("GPU-0", 100) + Ids("GPU-1", 100), {}, 60).ok());
  EXPECT_THAT(WhyNot(Compute().Allocate(Ids("GPU-1", 60))),
              HasSubstr("a/p, container c: 60 alnair/vgpu-compute on GPU-1, but its other part lies on GPU-0"));
  Begin();
  EXPECT_THAT(WhyNot(Compute().Allocate(Ids("GPU-1", 60))), HasSubstr("lies on GPU-0"))
      << "also by a new agent, without Prefer()";
  EXPECT_EQ(WhyNot(Compute().Allocate(Ids("GPU-0", 60))), "");
}

TEST_F(PartPluginsTest, WhatOthersHoldOfTheCounterpartIsNotFree) {
  Begin();
  Hold("before", {{"alnair/vgpu-memory", Ids("GPU-0", 2)}, {"alnair/vgpu-compute", Ids("GPU-0", 50)}});
  pending_.asks = {{AskFor("p", 2, 60)}};
  const auto free = Ids("GPU-0", 6, 2) + Ids("GPU-1", 8);
  EXPECT_THAT(Take(Memory(), free, 2), ElementsAre("GPU-1_0", "GPU-1_1"));
  pending_.asks = {{AskFor("p", 2, 50)}};
  EXPECT_THAT(Take(Memory(), free, 2), ElementsAre("GPU-0_2", "GPU-0_3")) << "the fuller one";
}

TEST_F(PartPluginsTest, WhatAnEndedInitContainerHadIsUsedWithTheRest) {
  Begin();
  pending_.asks = {{AskFor("p", 4, 50)}};
  const auto ids = Memory().Prefer(Ids("GPU-0", 8) + Ids("GPU-1", 8), {"GPU-1_5", "GPU-1_6"}, 4);
  ASSERT_TRUE(ids.ok());
  EXPECT_THAT(*ids, ElementsAre("GPU-1_5", "GPU-1_6", "GPU-1_0", "GPU-1_1"));
  EXPECT_THAT(WhyNot(Memory().Prefer(Ids("GPU-0", 8) + Ids("GPU-1", 3), {"GPU-1_1", "GPU-1_2"}, 4)),
              HasSubstr("no GPU of this node has 4 alnair/vgpu-memory free: GPU-1 has 3"));
}

TEST_F(PartPluginsTest, ASecondCallWaitsUntilItsPodIsShown) {
  Begin();
  // Others ask for as much compute, with more memory than is left where this one has begun.
  pending_.asks = {{AskFor("other", 6, 50)}};
  const auto memory = Take(Memory(), Ids("GPU-0", 2) + Ids("GPU-1", 0), 2);
  ASSERT_THAT(memory, ElementsAre("GPU-0_0", "GPU-0_1"));
  Hold("filler", {{"alnair/vgpu-memory", Ids("GPU-0", 5, 2)}});
  Hold("late", {{"alnair/vgpu-memory", memory}});
  std::vector<std::set<kube::ObjectKey>> awaited;
  pending_.on_await = [&](const std::set<kube::ObjectKey>& pods) {
    awaited.push_back(pods);
    pending_.asks->push_back(AskFor("late", 2, 50));
  };
  const auto compute = Take(Compute(), Ids("GPU-0", 100) + Ids("GPU-1", 100), 50);
  EXPECT_THAT(awaited, ElementsAre(ElementsAre(kube::ObjectKey{"a", "filler"}, kube::ObjectKey{"a", "late"})));
  ASSERT_FALSE(compute.empty()) << why_;
  EXPECT_EQ(ParsePartId(compute.front())->gpu, "GPU-0");
}

TEST_F(PartPluginsTest, AFirstCallWaitsUntilThePodThatTheKubeletAdmitsIsShown) {
  Begin(SharingMode::kMilli);
  PartAsk ask{.pod = {"a", "late"}, .container = "c", .placement = PartPlacement::kSpread};
  ask.amounts[PartResource::kMilli] = 300;
  holders_.held.push_back({"a", "late", "c", {}});
  pending_.on_await = [&](const std::set<kube::ObjectKey>& pods) {
    EXPECT_THAT(pods, ElementsAre(kube::ObjectKey{"a", "late"}));
    pending_.asks = {{ask}};
  };
  const auto ids = Take(Memory(), Ids("GPU-0", 900) + Ids("GPU-1", 1000), 300);
  ASSERT_FALSE(ids.empty()) << why_;
  EXPECT_EQ(ParsePartId(ids.front())->gpu, "GPU-1") << "it is to be spread";
}

TEST_F(PartPluginsTest, AGpuThatIsHeldByAnotherResourceIsGivenToNobody) {
  Begin();
  Hold("whole", {{"nvidia.com/gpu", {"GPU-0"}}});
  EXPECT_THAT(Take(Memory(), Ids("GPU-0", 2) + Ids("GPU-1", 8), 2), ElementsAre("GPU-1_0", "GPU-1_1"));
  EXPECT_THAT(WhyNot(Memory().Allocate(Ids("GPU-0", 2))),
              HasSubstr("GPU-0 is held by a/whole, container c, by nvidia.com/gpu"));
  EXPECT_THAT(WhyNot(Memory().Prefer(Ids("GPU-0", 8) + Ids("GPU-1", 1), {}, 2)),
              HasSubstr("less; GPU-0 is held by a/whole, container c, by nvidia.com/gpu"));
  EXPECT_THAT(WhyNot(Memory().Prefer(Ids("GPU-0", 2), {}, 2)), HasSubstr("no GPU of this node has 2"));
}

TEST_F(PartPluginsTest, AContainerOnTwoGpusDoesNotStart) {
  Begin();
  Hold("p", {{"alnair/vgpu-memory", Ids("GPU-0", 2)}, {"alnair/vgpu-compute", Ids("GPU-1", 50)}});
  EXPECT_EQ(WhyNot(Memory().PreStart(Ids("GPU-0", 2))),
            "a/p, container c: its parts lie on several GPUs (GPU-0, GPU-1); delete the pod, and create it again, so "
            "that it gets them on one");
  EXPECT_THAT(WhyNot(Compute().PreStart(Ids("GPU-1", 50))), HasSubstr("a/p, container c"));
  EXPECT_THAT(WhyNot(Compute().PreStart({"GPU-0_1", "GPU-1_1"})), HasSubstr("lie on several GPUs"));
  EXPECT_EQ(starts_, 0);
}

TEST_F(PartPluginsTest, ComputeWithoutMemoryDoesNotStart) {
  Begin();
  Hold("p", {{"alnair/vgpu-compute", Ids("GPU-1", 50)}});
  EXPECT_EQ(WhyNot(Compute().PreStart(Ids("GPU-1", 50))),
            "a/p, container c: it asks for 50 alnair/vgpu-compute without memory; add limits of alnair/vgpu-memory "
            "(GiB) to the container, and create the pod again");
  Hold("q", {{"alnair/vgpu-memory", Ids("GPU-1", 2)}});
  EXPECT_EQ(WhyNot(Memory().PreStart(Ids("GPU-1", 2))), "") << "memory alone is enough";
  EXPECT_EQ(starts_, 1);
}

TEST_F(PartPluginsTest, WithoutPodResourcesContainersStartAndTheLogSaysSoOnce) {
  Begin();
  holders_.is_available = false;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WhyNot(Compute().PreStart(Ids("GPU-1", 50))), "");
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(starts_, 3);
  const auto told = logged.find("does not say who holds parts of GPUs");
  EXPECT_NE(told, std::string::npos);
  EXPECT_EQ(logged.find("does not say who holds parts of GPUs", told + 1), std::string::npos) << logged;
}

TEST_F(PartPluginsTest, WithoutPodResourcesTheSecondResourceFollowsTheLastCall) {
  Begin();
  holders_.is_available = false;
  pending_.asks.reset();
  const auto memory = Take(Memory(), Ids("GPU-1", 8), 2);
  ASSERT_THAT(memory, SizeIs(2)) << why_;
  EXPECT_EQ(Take(Compute(), Ids("GPU-0", 100) + Ids("GPU-1", 100), 50).at(0), "GPU-1_0");
  EXPECT_EQ(Take(Compute(), Ids("GPU-0", 100) + Ids("GPU-1", 50, 50), 50).at(0), "GPU-0_0")
      << "that container has its two: where most memory is left";
}

TEST_F(PartPluginsTest, ManyThreadsMayAskAtOnce) {
  Begin();
  std::vector<std::jthread> threads;
  std::atomic<int> given = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        DevicePlugin& plugin = t % 2 == 0 ? Memory() : Compute();
        const auto ids = plugin.Prefer(Ids("GPU-0", 8) + Ids("GPU-1", 8), {}, 2);
        if (ids && plugin.Allocate(*ids).ok() && plugin.PreStart(*ids).ok()) ++given;
        parts_->Look(GpusOf(2 + i % 2, 8));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(given, 200);
}

}  // namespace
}  // namespace grus
