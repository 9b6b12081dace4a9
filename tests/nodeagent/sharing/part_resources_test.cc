// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

kube::ObjectMeta NodeWith(const std::string& label) {
  kube::ObjectMeta node;
  node.name = "node-1";
  node.labels[kSharingModeLabel] = label;
  return node;
}

TEST(SharingMode, StandsInTheLabelOfTheNode) {
  EXPECT_EQ(*SharingModeOf(kube::ObjectMeta()), SharingMode::kNone);
  EXPECT_EQ(*SharingModeOf(NodeWith("milli")), SharingMode::kMilli);
  EXPECT_EQ(*SharingModeOf(NodeWith("alnair")), SharingMode::kAlnair);
  EXPECT_EQ(*SharingModeOf(NodeWith("dra")), SharingMode::kDra);
}

TEST(SharingMode, AnUnknownOneIsAnErrorThatSaysWhatIsExpected) {
  for (const std::string text : {"", "Milli", "mps", "milli,alnair"}) {
    const kube::Result<SharingMode> mode = SharingModeOf(NodeWith(text));
    ASSERT_FALSE(mode.ok()) << text;
    EXPECT_THAT(mode.error().message(),
                HasSubstr("node-1: label sharing.ai.centauruscloud.io/mode is \"" + text + "\""));
    EXPECT_THAT(mode.error().message(), HasSubstr("milli, alnair or dra"));
  }
}

TEST(SharingMode, OffersItsResourcesAndNoOthers) {
  EXPECT_THAT(ResourcesOf(SharingMode::kNone), IsEmpty());
  EXPECT_THAT(ResourcesOf(SharingMode::kDra), IsEmpty());  // Claims name the GPU: no device plugin.
  EXPECT_THAT(ResourcesOf(SharingMode::kMilli), ElementsAre(PartResource::kMilli));
  EXPECT_THAT(ResourcesOf(SharingMode::kAlnair), ElementsAre(PartResource::kMemory, PartResource::kCompute));
}

TEST(PartResource, MemoryAndComputeBelongTogether) {
  EXPECT_EQ(CounterpartOf(PartResource::kMemory), PartResource::kCompute);
  EXPECT_EQ(CounterpartOf(PartResource::kCompute), PartResource::kMemory);
  EXPECT_EQ(CounterpartOf(PartResource::kMilli), std::nullopt);
}

}  // namespace
}  // namespace grus
