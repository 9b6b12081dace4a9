// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>

namespace kube {
namespace {

using namespace std::chrono_literals;

class BoundedQueueTest : public ::testing::Test {
 protected:
  SystemClock clock_;
};

TEST_F(BoundedQueueTest, GivesInTheOrderOfPut) {
  BoundedQueue<int> queue(3);
  ASSERT_TRUE(queue.Put(1) && queue.Put(2) && queue.Put(3));
  EXPECT_EQ(queue.Take(clock_), 1);
  EXPECT_EQ(queue.Take(clock_), 2);
  EXPECT_EQ(queue.Take(clock_), 3);
}

TEST_F(BoundedQueueTest, RefusesWhenFullAndTakesAgainWhenNot) {
  BoundedQueue<int> queue(2);
  ASSERT_TRUE(queue.Put(1) && queue.Put(2));
  EXPECT_FALSE(queue.Put(3));
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.Take(clock_), 1);
  EXPECT_TRUE(queue.Put(4));
  EXPECT_EQ(queue.Take(clock_), 2);
  EXPECT_EQ(queue.Take(clock_), 4);
}

TEST_F(BoundedQueueTest, TakeGivesUpAtItsDeadline) {
  BoundedQueue<int> queue(1);
  EXPECT_EQ(queue.Take(clock_, clock_.Now()), std::nullopt);
}

TEST_F(BoundedQueueTest, TakePrefersAValueToAPastDeadline) {
  BoundedQueue<int> queue(1);
  ASSERT_TRUE(queue.Put(1));
  EXPECT_EQ(queue.Take(clock_, clock_.Now() - 1s), 1);
}

TEST_F(BoundedQueueTest, PutWakesATaker) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  auto taken = std::async(std::launch::async, [&] { return queue.Take(clock_); });
  ASSERT_TRUE(queue.Put(std::make_unique<int>(7)));
  ASSERT_EQ(taken.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(**taken.get(), 7);
}

TEST_F(BoundedQueueTest, CloseWakesAllTakers) {
  BoundedQueue<int> queue(1);
  auto a = std::async(std::launch::async, [&] { return queue.Take(clock_); });
  auto b = std::async(std::launch::async, [&] { return queue.Take(clock_); });
  queue.Close();
  EXPECT_EQ(a.get(), std::nullopt);
  EXPECT_EQ(b.get(), std::nullopt);
}

TEST_F(BoundedQueueTest, WhatIsQueuedAtCloseCanStillBeTaken) {
  BoundedQueue<int> queue(2);
  ASSERT_TRUE(queue.Put(1));
  queue.Close();
  EXPECT_TRUE(queue.is_closed());
  EXPECT_FALSE(queue.Put(2));
  EXPECT_EQ(queue.Take(clock_), 1);
  EXPECT_EQ(queue.Take(clock_), std::nullopt);
}

}  // namespace
}  // namespace kube
