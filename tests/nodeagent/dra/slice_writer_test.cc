// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/slice_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/base/wait.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/must.h"
#include "tests/nodeagent/dra/claim_texts.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

using kube::Json;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SliceWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kit::Must(
        server_.Create("nodes", kit::FromText(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"}})")));
    slices_.Start();
    ASSERT_TRUE(slices_.WaitForSync(system_.Now() + seconds(60)));
  }
  // Looks until nothing more is written, each time with all in the cache that was.
  void Settle() {
    std::string before;
    do {
      before = Text();
      clock_.Advance(seconds(6));
      writer_.LookOnce();
      AwaitCache();
    } while (Text() != before);
  }
  void AwaitCache() const {
    const auto is_current = [&] {
      const std::optional<Json> live = Slice();
      const auto seen = slices_.Get<NodeSlice>({"", "node-1-gpu.ai.centauruscloud.io"});
      if (!live || !seen) return !live && !seen;
      return *live->At({"metadata", "resourceVersion"}) == Json(seen->metadata.resource_version);
    };
    const kube::TimePoint until = system_.Now() + seconds(60);
    while (!is_current() && system_.Now() < until) kube::WaitFor(system_, std::chrono::milliseconds(1), {});
    ASSERT_TRUE(is_current());
  }
  std::optional<Json> Slice() const {
    auto slice = server_.Get("resourceslices.resource.k8s.io", {"", "node-1-gpu.ai.centauruscloud.io"});
    return slice ? std::optional<Json>(*slice) : std::nullopt;
  }
  std::string Text() const { return Slice() ? kube::ToText(*Slice()) : std::string(); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const std::optional<Json> slice = Slice();
    const Json* const devices = slice ? slice->At({"spec", "devices"}) : nullptr;
    if (devices == nullptr) return {"no slice"};
    for (const Json& device : *devices->AsArray()) names.push_back(*device.Find("name")->AsString());
    return names;
  }

  const kube::SystemClock system_;
  kube::testing::ManualClock clock_;
  const kube::Log log_;
  kube::testing::FakeApiServer server_{system_};
  kube::Client client_{server_, nullptr, system_};
  testing::FakeHolders holders_;
  std::vector<SharedGpu> gpus_ = testing::TwoGpus();
  kube::Informer slices_{client_, kube::KindOf<NodeSlice>(), SliceWriter::CacheOptions("node-1"), system_, log_};
  SliceWriter writer_{client_, slices_, "node-1", [this] { return gpus_; }, holders_, clock_, log_};
};

TEST_F(SliceWriterTest, TheSliceSaysWhatEachGpuIsAndHowItMayBeParted) {
  Settle();

  const Json slice = *Slice();
  EXPECT_EQ(*slice.At({"spec", "driver"}), Json("gpu.ai.centauruscloud.io"));
  EXPECT_EQ(*slice.At({"spec", "nodeName"}), Json("node-1"));
  EXPECT_EQ(*slice.At({"spec", "pool", "name"}), Json("node-1"));
  EXPECT_EQ(*slice.At({"spec", "pool", "resourceSliceCount"}), Json(1));
  EXPECT_EQ(*(*slice.At({"metadata", "ownerReferences"})->AsArray())[0].Find("uid"),
            *server_.Get("nodes", {"", "node-1"})->At({"metadata", "uid"}));
  EXPECT_EQ((*slice.At({"spec", "devices"})->AsArray())[0], kit::FromText(R"({
    "name": "gpu-a0", "allowMultipleAllocations": true,
    "attributes": {"index": {"int": 0}, "uuid": {"string": "GPU-A0"}, "productName": {"string": "Fake"},
                   "driverVersion": {"string": "580.95.05"}},
    "capacity": {
      "memory": {"value": "80Gi", "requestPolicy": {"default": "80Gi", "validRange": {"min": "1Mi", "step": "1Mi", "max": "80Gi"}}},
      "milli": {"value": "1k", "requestPolicy": {"default": "1k", "validRange": {"min": "1", "step": "1", "max": "1k"}}}}})"));
}

TEST_F(SliceWriterTest, WhatIsRightIsNotWrittenAgain) {
  Settle();
  const std::string before = Text();
  Settle();

  EXPECT_EQ(Text(), before);
}

TEST_F(SliceWriterTest, ASickGpuIsLeftOutAndComesBackEachInANewGeneration) {
  Settle();
  gpus_[0].is_healthy = false;
  Settle();
  EXPECT_THAT(Names(), ElementsAre("gpu-a1"));
  EXPECT_EQ(*Slice()->At({"spec", "pool", "generation"}), Json(2));
  gpus_[0].is_healthy = true;
  Settle();

  EXPECT_THAT(Names(), ElementsAre("gpu-a0", "gpu-a1"));
  EXPECT_EQ(*Slice()->At({"spec", "pool", "generation"}), Json(3));
}

TEST_F(SliceWriterTest, AGpuThatADevicePluginHasGivenIsLeftOutUntilItsHolderHasEnded) {
  holders_.held = {{"team-a", "old", "main", {{"nvidia.com/gpu", {"GPU-A1"}}}}};
  Settle();
  EXPECT_THAT(Names(), ElementsAre("gpu-a0"));
  holders_.held.clear();
  Settle();

  EXPECT_THAT(Names(), ElementsAre("gpu-a0", "gpu-a1"));
}

TEST_F(SliceWriterTest, WhileTheKubeletDoesNotSayWhoHoldsWhatNothingIsOffered) {
  holders_.is_available = false;
  Settle();
  EXPECT_FALSE(Slice());
  holders_.is_available = true;
  Settle();

  EXPECT_THAT(Names(), ElementsAre("gpu-a0", "gpu-a1"));
}

TEST_F(SliceWriterTest, ASliceThatSomebodyRemovedOrChangedIsRightAgain) {
  Settle();
  ASSERT_TRUE(server_.Delete("resourceslices.resource.k8s.io", {"", "node-1-gpu.ai.centauruscloud.io"}));
  AwaitCache();
  Settle();
  EXPECT_THAT(Names(), ElementsAre("gpu-a0", "gpu-a1"));
  Json slice = *Slice();
  (*slice["spec"]["devices"].AsArray())[1]["capacity"]["milli"]["value"] = "2k";
  kit::Must(server_.Update("resourceslices.resource.k8s.io", slice));
  AwaitCache();
  Settle();

  EXPECT_EQ(*(*Slice()->At({"spec", "devices"})->AsArray())[1].At({"capacity", "milli", "value"}), Json("1k"));
}

TEST_F(SliceWriterTest, LeftOversOfThisNodeGoAndThoseOfOthersStay) {
  const auto add = [&](const std::string& name, const std::string& node, const std::string& driver) {
    Json slice = SliceOf(node, "u", Json::MakeArray());
    slice["metadata"]["name"] = name;
    slice["spec"]["driver"] = driver;
    kit::Must(server_.Create("resourceslices.resource.k8s.io", slice));
  };
  add("left", "node-1", kGpuDriver);
  add("of-another-node", "node-2", kGpuDriver);
  add("of-another-driver", "node-1", "gpu.nvidia.com");
  const auto is_seen = [&] { return slices_.Get<NodeSlice>({"", "left"}) != nullptr; };
  while (!is_seen()) kube::WaitFor(system_, std::chrono::milliseconds(1), {});
  Settle();

  EXPECT_FALSE(server_.Get("resourceslices.resource.k8s.io", {"", "left"}));
  EXPECT_TRUE(server_.Get("resourceslices.resource.k8s.io", {"", "of-another-node"}));
  EXPECT_TRUE(server_.Get("resourceslices.resource.k8s.io", {"", "of-another-driver"}));
}

TEST_F(SliceWriterTest, InAnotherModeTheSliceIsRemovedAndNoneIsNoError) {
  Settle();
  kit::Must(SliceWriter::Remove(client_, "node-1", {}));
  kit::Must(SliceWriter::Remove(client_, "node-1", {}));

  EXPECT_FALSE(Slice());
}

TEST_F(SliceWriterTest, AGpuWhoseUuidMakesNoNameIsLeftOut) {
  gpus_[0].uuid = "GPU_A0!";
  Settle();

  EXPECT_THAT(Names(), ElementsAre("gpu-a1"));
}

}  // namespace
}  // namespace grus
