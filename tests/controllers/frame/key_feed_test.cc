// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/key_feed.h"

#include <gtest/gtest.h>

#include "clientlib/model/core_v1.h"
#include "clientlib/testing/fake_clock.h"

namespace grus {
namespace {

using namespace std::chrono_literals;

const kube::ObjectKey kOwner{"team-a", "bert"};

class KeyFeedTest : public ::testing::Test {
 protected:
  static kube::Change ChangeTo(const std::string& version) {
    auto pod = std::make_shared<kube::Pod>();
    pod->metadata.resource_version = version;
    return {pod, pod};
  }
  void AddChange(const KeyFeed& feed, const std::string& version) {
    feed.AddChanged(kOwner, kube::KindOf<kube::Pod>(), ChangeTo(version));
  }

  kube::testing::FakeClock clock_;
  kube::WorkQueue queue_{clock_};
  kube::WriteTracker writes_;
};

TEST_F(KeyFeedTest, NewsSayHowSoon) {
  KeyFeed feed(writes_, 3s);
  feed.Add(kOwner);
  EXPECT_EQ(queue_.counts().adds, 0U) << "it is not open";
  feed.Open(queue_);
  feed.Add(kOwner, News::kNone);
  EXPECT_EQ(queue_.counts().depth + queue_.counts().delayed, 0U);
  feed.Add(kOwner, News::kSoon);
  EXPECT_EQ(queue_.counts().delayed, 1U);
  feed.Add(kOwner, News::kNow);
  EXPECT_EQ(queue_.counts().depth, 1U);
}

TEST_F(KeyFeedTest, WhatComesInMassesLetsOthersGoFirst) {
  KeyFeed feed(writes_, 3s);
  feed.Open(queue_);
  feed.Add({"team-a", "old"}, News::kNow, true);
  feed.Add(kOwner);
  EXPECT_EQ(queue_.Get()->key, kOwner);
}

TEST_F(KeyFeedTest, AnOwnWriteThatComesBackIsWorthWhatWasSaid) {
  writes_.Note(kOwner, "u-1", kube::KindOf<kube::Pod>(), "7");
  KeyFeed feed(writes_, 3s), curious(writes_, 3s, News::kSoon);
  feed.Open(queue_);
  curious.Open(queue_);
  AddChange(feed, "7");
  EXPECT_EQ(queue_.counts().depth + queue_.counts().delayed, 0U);
  AddChange(curious, "7");
  EXPECT_EQ(queue_.counts().delayed, 1U);
  AddChange(feed, "8");
  EXPECT_EQ(queue_.counts().depth, 1U) << "somebody else's";
}

}  // namespace
}  // namespace grus
