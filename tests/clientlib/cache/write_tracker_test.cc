// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/write_tracker.h"

#include <gtest/gtest.h>

#include "clientlib/model/core_v1.h"

namespace kube {
namespace {

const ObjectKey kOwner{"team-a", "bert"};

class WriteTrackerTest : public ::testing::Test {
 protected:
  bool HasCaughtUp(const std::string& uid = "u-1", const ObjectKey& owner = kOwner) {
    return tracker_.HasCaughtUp(owner, uid, [this](const Kind& kind) { return versions_[&kind]; });
  }
  void Note(const std::string& version, const Kind& kind = KindOf<Pod>()) {
    tracker_.Note(kOwner, "u-1", kind, version);
  }

  WriteTracker tracker_;
  std::map<const Kind*, std::string> versions_;
};

TEST_F(WriteTrackerTest, W2NothingWrittenIsCaughtUp) { EXPECT_TRUE(HasCaughtUp()); }

TEST_F(WriteTrackerTest, W2WaitsUntilTheCacheHasSeenTheWrite) {
  versions_[&KindOf<Pod>()] = "9";
  Note("10");
  EXPECT_FALSE(HasCaughtUp());
  versions_[&KindOf<Pod>()] = "10";
  EXPECT_TRUE(HasCaughtUp());
}

TEST_F(WriteTrackerTest, W2TheHighestWriteCounts) {
  Note("12");
  Note("10");
  versions_[&KindOf<Pod>()] = "11";
  EXPECT_FALSE(HasCaughtUp());
  versions_[&KindOf<Pod>()] = "12";
  EXPECT_TRUE(HasCaughtUp());
}

TEST_F(WriteTrackerTest, W2EachKindIsWaitedFor) {
  Note("10", KindOf<Pod>());
  Note("20", KindOf<ConfigMap>());
  versions_ = {{&KindOf<Pod>(), "15"}, {&KindOf<ConfigMap>(), "15"}};
  EXPECT_FALSE(HasCaughtUp());
  versions_[&KindOf<ConfigMap>()] = "20";
  EXPECT_TRUE(HasCaughtUp());
}

TEST_F(WriteTrackerTest, W2WhatWasCaughtUpIsForgotten) {
  Note("10");
  versions_[&KindOf<Pod>()] = "10";
  EXPECT_TRUE(HasCaughtUp());
  versions_[&KindOf<Pod>()] = "1";  // As after the restore of a backup.
  EXPECT_TRUE(HasCaughtUp());
}

TEST_F(WriteTrackerTest, W2ANewUidReplacesTheRecord) {
  Note("10");
  versions_[&KindOf<Pod>()] = "5";
  EXPECT_TRUE(HasCaughtUp("u-2"));
  tracker_.Note(kOwner, "u-2", KindOf<Pod>(), "6");
  EXPECT_FALSE(HasCaughtUp("u-2"));
  versions_[&KindOf<Pod>()] = "6";
  EXPECT_TRUE(HasCaughtUp("u-2"));
}

TEST_F(WriteTrackerTest, W2AnotherOwnersWritesDoNotMatter) {
  Note("10");
  versions_[&KindOf<Pod>()] = "5";
  EXPECT_TRUE(HasCaughtUp("u-9", {"team-a", "other"}));
  EXPECT_TRUE(HasCaughtUp("u-9", {"team-b", "bert"}));
}

TEST_F(WriteTrackerTest, W2ACacheWithoutAVersionNeverBlocks) {
  Note("10");
  EXPECT_TRUE(HasCaughtUp());
}

TEST_F(WriteTrackerTest, W1AMalformedVersionNeverBlocks) {
  versions_[&KindOf<Pod>()] = "5";
  for (const char* odd : {"", "abc", "0"}) {
    Note(odd);
    EXPECT_TRUE(HasCaughtUp()) << odd;
  }
  Note("10");
  versions_[&KindOf<Pod>()] = "abc";
  EXPECT_TRUE(HasCaughtUp());
}

TEST_F(WriteTrackerTest, W1AMalformedVersionDoesNotHideALaterGoodOne) {
  versions_[&KindOf<Pod>()] = "5";
  Note("abc");
  Note("10");
  EXPECT_FALSE(HasCaughtUp());
}

TEST_F(WriteTrackerTest, W2TheEventOfAnOwnWriteIsNoNews) {
  const Kind& kind = KindOf<Pod>();
  Note("10");
  EXPECT_TRUE(tracker_.IsOwnEcho(kOwner, kind, "10"));
  EXPECT_FALSE(tracker_.IsOwnEcho(kOwner, kind, "11")) << "somebody else's write";
  EXPECT_FALSE(tracker_.IsOwnEcho(kOwner, KindOf<Node>(), "10")) << "another kind";
  EXPECT_FALSE(tracker_.IsOwnEcho({"team-a", "other"}, kind, "10")) << "another owner";
}

TEST_F(WriteTrackerTest, W2TheEventOfAnOwnWriteIsNewsToAPassThatWaitsForIt) {
  Note("10");
  versions_[&KindOf<Pod>()] = "9";
  ASSERT_FALSE(HasCaughtUp());
  EXPECT_FALSE(tracker_.IsOwnEcho(kOwner, KindOf<Pod>(), "10"));
}

TEST_F(WriteTrackerTest, ForgetDropsTheRecord) {
  Note("10");
  versions_[&KindOf<Pod>()] = "5";
  tracker_.Forget(kOwner);
  EXPECT_TRUE(HasCaughtUp());
}

}  // namespace
}  // namespace kube
