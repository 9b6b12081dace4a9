// SPDX-License-Identifier: Apache-2.0
// Rule: pools count as what they have reserved, whoever else allocates from them meanwhile.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

class PoolLimitTest : public LimitedTest {};

TEST_F(PoolLimitTest, TwoThreadsOfOnePoolGetWhatThereIsRoomFor) {
  Share({}, {364 * kMiB});  // The context and two pieces of the pool.
  const auto client = Start();
  client->Ask("start");
  world_->HoldAfter("cuMemAllocAsync");
  EXPECT_EQ(client->Ask("beside async 20971520"), "ok");
  world_->AwaitHeld();
  EXPECT_THAT(client->Ask("async 20971520"), StartsWith("ok"));
  world_->LetGo();
  EXPECT_THAT(client->Ask("join"), StartsWith("ok"));
  EXPECT_EQ(Counted(), 364 * kMiB);
  EXPECT_EQ(Counted(), world_->Used(0));
  EXPECT_EQ(client->Ask("async 41943040"), "error 2");
}

TEST_F(PoolLimitTest, WhatThePoolKeepsServesWithoutARefusal) {
  Share({}, {332 * kMiB});
  const auto client = Start();
  client->Ask("start");
  client->Ask("threshold " + client->Ask("defaultpool").substr(3) + " 1073741824");
  const std::string pointer = client->Ask("async 20971520").substr(3);
  EXPECT_EQ(client->Ask("freeasync " + pointer), "ok");
  EXPECT_EQ(Counted(), 332 * kMiB);
  EXPECT_THAT(client->Ask("async 20971520"), StartsWith("ok"));
  EXPECT_EQ(Counted(), 332 * kMiB);
  const auto account = folder_->ReadAccount(1);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->gpus[0].refused, 0U);
}

TEST_F(PoolLimitTest, ACallThatFailedHoldsNothing) {
  Share({}, {364 * kMiB});
  const auto client = Start();
  client->Ask("start");
  world_->Fail("cuMemAllocAsync", 1, 999);
  EXPECT_EQ(client->Ask("async 20971520"), "error 999");
  EXPECT_EQ(Counted(), 300 * kMiB);
  EXPECT_THAT(client->Ask("async 20971520"), StartsWith("ok"));
  EXPECT_EQ(Counted(), 332 * kMiB);
}

TEST_F(PoolLimitTest, WithoutALimitPoolsGrowAsTheyLike) {
  Share({.pool_chunk = 128 * kMiB}, {0});
  const auto client = Start();
  client->Ask("start");
  EXPECT_THAT(client->Ask("async 20971520"), StartsWith("ok"));
  EXPECT_EQ(Counted(), world_->Used(0));
}

}  // namespace
}  // namespace grus::cuda
