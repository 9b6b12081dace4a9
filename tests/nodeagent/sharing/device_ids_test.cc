// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/device_ids.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

const std::string kUuid = "GPU-4f2c0a61-9e3b-4d58-8a77-0c1d2e3f4a5b";

TEST(PartId, IsWrittenAndReadAgain) {
  for (const std::int64_t number : {0, 7, 999}) {
    const PartId id{kUuid, number};
    EXPECT_EQ(ParsePartId(ToText(id)), id);
  }
  EXPECT_EQ(ToText({kUuid, 17}), kUuid + "_17");
  EXPECT_EQ(ParsePartId("a_b_3"), (PartId{"a_b", 3})) << "the number is behind the last one";
}

TEST(PartId, IsNothingButWhatIsWritten) {
  for (const std::string& text : {std::string(), std::string("_"), std::string("_1"), kUuid, kUuid + "_", kUuid + "_01",
                                  kUuid + "_-1", kUuid + "_+1", kUuid + "_1 ", kUuid + "_1x", kUuid + "_0x1",
                                  kUuid + "_99999999999999999999", std::string(62, 'a') + "_1"}) {
    EXPECT_FALSE(ParsePartId(text)) << text;
  }
}

TEST(PartId, AGpuWhoseIdsWouldBeTooLongHasNone) {
  EXPECT_TRUE(CanHaveParts(kUuid, 1000));
  EXPECT_TRUE(CanHaveParts(std::string(58, 'a'), 1000));
  EXPECT_FALSE(CanHaveParts(std::string(59, 'a'), 1000));
  EXPECT_FALSE(CanHaveParts("", 1000));
}

}  // namespace
}  // namespace grus
