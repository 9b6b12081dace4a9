// SPDX-License-Identifier: Apache-2.0
// Rule: what a context had is given back once it has ended, that and no more.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

class ContextMemoryTest : public LimitedTest {};

TEST_F(ContextMemoryTest, OneThatCannotBeDestroyedKeepsWhatItHas) {
  Share({}, {kGiB});
  const auto client = Start();
  client->Ask("init");
  const std::string context = client->Ask("context").substr(3);
  const std::string pointer = client->Ask("alloc 1048576").substr(3);
  world_->Fail("cuCtxDestroy_v2", 1, 999);
  EXPECT_EQ(client->Ask("destroy " + context), "error 999");
  EXPECT_EQ(Counted(), 301 * kMiB);
  EXPECT_EQ(client->Ask("free " + pointer), "ok");
  EXPECT_EQ(Counted(), 300 * kMiB);
  client->Ask("alloc 1048576");
  EXPECT_EQ(client->Ask("destroy " + context), "ok");
  EXPECT_EQ(Counted(), 0U);
}

TEST_F(ContextMemoryTest, CostsWhatTheAgentSaidWhenItWasAskedFor) {
  Share({}, {kGiB});
  const auto client = Start();
  client->Ask("init");
  world_->HoldAfter("cuCtxCreate_v2");
  client->Tell("context");
  world_->AwaitHeld();
  parts_[0].context_bytes = 500 * kMiB;
  ASSERT_TRUE(folder_->WriteLimits(parts_, std::chrono::nanoseconds(2)));
  world_->LetGo();
  const std::string context = client->Hear();
  EXPECT_THAT(context, StartsWith("ok"));
  client->Ask("retain");
  EXPECT_EQ(Counted(), 800 * kMiB);
  EXPECT_EQ(client->Ask("destroy " + context.substr(3)), "ok");
  EXPECT_EQ(Counted(), 500 * kMiB);
}

// Their pointers are others' afterwards.
TEST_F(ContextMemoryTest, WhatAPoolGaveIsForgottenWithTheDevicesContext) {
  Share({.reuses_addresses = true}, {kGiB});
  const auto client = Start();
  client->Ask("start");
  const std::string pooled = client->Ask("async 67108864");
  EXPECT_EQ(client->Ask("reset"), "ok");
  EXPECT_EQ(Counted(), 0U);
  client->Ask("retain");
  EXPECT_EQ(client->Ask("alloc 1048576"), pooled);
  EXPECT_EQ(Counted(), 301 * kMiB);
  EXPECT_EQ(Counted(), world_->Used(0));
}

TEST_F(ContextMemoryTest, APoolThatWasDestroyedEndsWithTheDevicesContext) {
  Share({}, {kGiB});
  const auto client = Start();
  client->Ask("start");
  const std::string pool = client->Ask("pool").substr(3);
  EXPECT_THAT(client->Ask("frompool " + pool + " 67108864"), StartsWith("ok"));
  EXPECT_EQ(client->Ask("destroypool " + pool), "ok");
  EXPECT_GE(Counted(), 364 * kMiB) << "what lives of it keeps it";
  EXPECT_EQ(client->Ask("reset"), "ok");
  EXPECT_EQ(Counted(), 0U);
}

// As a context of one's own that ends, and was not the device's.
TEST_F(ContextMemoryTest, APointerThatComesAgainGivesBackNothingThatWasAPools) {
  Share({.reuses_addresses = true}, {2 * kGiB});
  const auto client = Start();
  client->Ask("init");
  const std::string context = client->Ask("context").substr(3);
  const std::string pooled = client->Ask("async 67108864");
  EXPECT_EQ(client->Ask("destroy " + context), "ok");
  client->Ask("retain");
  EXPECT_EQ(client->Ask("alloc 1048576"), pooled);
  EXPECT_EQ(client->Ask("sync"), "ok");
  EXPECT_EQ(Counted(), world_->Used(0));
}

}  // namespace
}  // namespace grus::cuda
