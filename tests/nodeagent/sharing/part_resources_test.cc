// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

kube::ObjectMeta NodeWith(const std::string& label) {
  kube::ObjectMeta node;
  node.name = "node-1";
  node.labels[api::kSharingModeLabel] = label;
  return node;
}

TEST(SharingMode, StandsInTheLabelOfTheNode) {
  EXPECT_EQ(*SharingModeOf(kube::ObjectMeta()), SharingMode::kNone);
  EXPECT_EQ(*SharingModeOf(NodeWith("milli")), SharingMode::kMilli);
  EXPECT_EQ(*SharingModeOf(NodeWith("alnair")), SharingMode::kAlnair);
  EXPECT_EQ(*SharingModeOf(NodeWith("gpushare")), SharingMode::kGpushare);
  EXPECT_EQ(*SharingModeOf(NodeWith("dra")), SharingMode::kDra);
}

TEST(SharingMode, AnUnknownOneIsAnErrorThatSaysWhatIsExpected) {
  for (const std::string text : {"", "Milli", "mps", "milli,alnair"}) {
    const kube::Result<SharingMode> mode = SharingModeOf(NodeWith(text));
    ASSERT_FALSE(mode.ok()) << text;
    EXPECT_THAT(mode.error().message(),
                HasSubstr("node-1: label sharing.ai.centauruscloud.io/mode is \"" + text + "\""));
    EXPECT_THAT(mode.error().message(), HasSubstr("milli, alnair, gpushare or dra"));
  }
}

TEST(PartPlacement, OfTheNodeStandsInItsLabel) {
  kube::ObjectMeta node = NodeWith("milli");
  EXPECT_EQ(*PlacementOf(node), PartPlacement::kPack);
  node.labels["sharing.ai.centauruscloud.io/placement"] = "spread";
  EXPECT_EQ(*PlacementOf(node), PartPlacement::kSpread);
  node.labels["sharing.ai.centauruscloud.io/placement"] = "pack";
  EXPECT_EQ(*PlacementOf(node), PartPlacement::kPack);
  for (const char* text : {"", "Spread", "alnair-high-performance"}) {
    node.labels["sharing.ai.centauruscloud.io/placement"] = text;
    ASSERT_FALSE(PlacementOf(node).ok()) << text;
    EXPECT_THAT(PlacementOf(node).error().message(),
                HasSubstr("node-1: label sharing.ai.centauruscloud.io/placement is \"" + std::string(text) +
                          "\": expected pack or spread"));
  }
}

TEST(SharingMode, OffersItsResourcesAndNoOthers) {
  EXPECT_THAT(ResourcesOf(SharingMode::kNone), IsEmpty());
  EXPECT_THAT(ResourcesOf(SharingMode::kDra), IsEmpty());  // Claims name the GPU: no device plugin.
  EXPECT_THAT(ResourcesOf(SharingMode::kMilli), ElementsAre(PartResource::kMilli));
  EXPECT_THAT(ResourcesOf(SharingMode::kAlnair), ElementsAre(PartResource::kMemory, PartResource::kCompute));
  EXPECT_THAT(ResourcesOf(SharingMode::kGpushare), ElementsAre(PartResource::kGpuMem));
}

TEST(PartResource, MemoryAndComputeBelongTogether) {
  EXPECT_EQ(CounterpartOf(PartResource::kMemory), PartResource::kCompute);
  EXPECT_EQ(CounterpartOf(PartResource::kCompute), PartResource::kMemory);
  EXPECT_EQ(CounterpartOf(PartResource::kMilli), std::nullopt);
  EXPECT_EQ(CounterpartOf(PartResource::kGpuMem), std::nullopt);
}

}  // namespace
}  // namespace grus
