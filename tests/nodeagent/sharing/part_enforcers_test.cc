// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_enforcers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kit/must.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

using ::testing::SizeIs;

class PartEnforcersTest : public ::testing::Test {
 protected:
  const std::vector<PartId> ids_ = {{"GPU-0", 1}};
  testing::FakeEnforcer first_, second_;
  PartEnforcers both_{{&first_, &second_}};
};

TEST_F(PartEnforcersTest, NothingIsGivenNorStartsUnlessEachWayAgrees) {
  EXPECT_TRUE(both_.MayGive("GPU-0"));
  EXPECT_TRUE(both_.MayStart(PartResource::kMilli, ids_, nullptr));
  for (testing::FakeEnforcer* one : {&first_, &second_}) {
    one->down = {"GPU-0"};
    EXPECT_FALSE(both_.MayGive("GPU-0"));
    EXPECT_TRUE(both_.MayGive("GPU-1"));
    EXPECT_FALSE(both_.MayStart(PartResource::kMilli, ids_, nullptr));
    one->down = {};
  }
}

TEST_F(PartEnforcersTest, EachWayHearsWhatIsGivenAndWhoStarts) {
  ContainerSetup setup;
  second_.is_on = true;
  kit::Must(both_.Give({PartResource::kMilli, ids_, 8}, setup));
  EXPECT_THAT(first_.given, SizeIs(1));
  EXPECT_THAT(second_.given, SizeIs(1));
  EXPECT_EQ(setup.environment["HELD"], "1");

  const HeldParts holder{.pod = {"a", "p"}};
  kit::Must(both_.MayStart(PartResource::kMilli, ids_, &holder));
  EXPECT_EQ(first_.starting, holder);
  EXPECT_EQ(second_.starting, holder);

  second_.is_writable = false;
  EXPECT_FALSE(both_.Give({PartResource::kMilli, ids_, 8}, setup));
}

TEST_F(PartEnforcersTest, AContainerIsHeldInTheWayThatSaysSo) {
  const HeldParts part{.pod = {"a", "p"}, .container = "c"};
  EXPECT_EQ(both_.WayOf(part), Enforcement::kNone);
  second_.holders["p/c"] = Enforcement::kCooperative;
  EXPECT_EQ(both_.WayOf(part), Enforcement::kCooperative);
}

}  // namespace
}  // namespace grus
