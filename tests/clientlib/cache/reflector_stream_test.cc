// SPDX-License-Identifier: Apache-2.0
// What a reflector makes of the bytes of a watch: bad lines, long lines, silence.
#include "tests/clientlib/cache/reflector_fixture.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ReflectorStreamTest : public ReflectorTest {
 protected:
  // A reflector that has seen an empty list of version 7 and reads on.
  FakeStream StartSynced() {
    FakeStream stream = ExpectWatch();
    Start();
    stream.Push(InitialEnd("7"));
    EXPECT_TRUE(stream.AwaitDrained());
    EXPECT_THAT(sink_.Await(1), ElementsAre("replace 7:"));
    return stream;
  }
  std::chrono::seconds TimeoutOf(std::size_t watch) const {
    return std::chrono::seconds(std::stoi(Param(transport_.requests()[watch], "timeoutSeconds")));
  }
};

TEST_F(ReflectorStreamTest, L12LinesThatAreNoEventsAreSkippedAndCounted) {
  FakeStream stream = StartSynced();
  const std::vector<std::string> bad = {
      "this is no JSON\n",
      "{}\n",
      EventLine("RENAMED", MapText("a", "8")),
      EventLine("ADDED", R"({"kind":"Pod","metadata":{"name":"a","resourceVersion":"8"}})"),
      EventLine("ADDED", R"({"kind":"Table","metadata":{"resourceVersion":"8"},"rows":[]})"),
      EventLine("ADDED", R"({"kind":"ConfigMap","metadata":{"name":7,"resourceVersion":"8"}})"),
      EventLine("ADDED", R"({"kind":"ConfigMap","metadata":{"name":"cut)"),
      EventLine("ADDED", "null"),
      EventLine("BOOKMARK", R"({"kind":"ConfigMap","metadata":{}})"),
      EventLine("BOOKMARK", R"({"kind":"ConfigMap","metadata":{"resourceVersion":""}})"),
      EventLine("BOOKMARK", "{"),
  };
  for (const std::string& line : bad) stream.Push(line);
  stream.Push(Added("a", "9"));

  EXPECT_THAT(sink_.Await(2), ElementsAre("replace 7:", "put a@9"));
  EXPECT_EQ(reflector_->stats().bad_events, bad.size());
  EXPECT_EQ(reflector_->stats().failures, 0u);
  EXPECT_THAT(AskedWhenIdle(), SizeIs(1));
}

TEST_F(ReflectorStreamTest, L12ABadLineDoesNotMoveTheVersion) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Push(EventLine("BOOKMARK", R"({"kind":"ConfigMap","metadata":{"resourceVersion":""}})"));
  stream.Push(EventLine("ADDED", R"({"kind":"Pod","metadata":{"name":"a","resourceVersion":"8"}})"));
  stream.End();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch 7"));
}

TEST_F(ReflectorStreamTest, L12AnObjectWithoutAVersionCausesAResync) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Push(EventLine("ADDED", R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"ns","uid":"u"}})"));
  ASSERT_TRUE(stream.AwaitClosed());
  EXPECT_THAT(sink_.calls(), SizeIs(1));
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch-list 7"));
  EXPECT_EQ(reflector_->stats().failures, 1u);
}

TEST_F(ReflectorStreamTest, L5AStreamThatBreaksIsResumedFromTheLastVersion) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Push(Added("a", "9"));
  stream.Break(Error(ErrorCode::kUnavailable, "connection reset"));
  ASSERT_TRUE(stream.AwaitClosed());
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch 9"));
}

TEST_F(ReflectorStreamTest, AReaderThatFellBehindIsListedAgain) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Break(Error(ErrorCode::kTooLarge, "the reader fell behind"));
  ASSERT_TRUE(stream.AwaitClosed());
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch-list 7"));
}

TEST_F(ReflectorStreamTest, L6BookmarksMoveTheVersionToo) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Push(Added("a", "9") + Bookmark("30"));
  stream.End();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch 30"));
}

TEST_F(ReflectorStreamTest, L6DeletionsMoveTheVersionToo) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Push(Added("a", "9") + Deleted("a", "12"));
  stream.End();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch 12"));
}

TEST_F(ReflectorStreamTest, L13AQuietWatchIsLeftToItsTimeout) {
  FakeStream stream = StartSynced();
  for (std::size_t watches = 1; watches <= 3; ++watches) {
    FakeStream next = ExpectWatch();
    clock_.Advance(TimeoutOf(watches - 1));
    EXPECT_THAT(AskedWhenIdle(), SizeIs(watches));
    stream.End();
    EXPECT_THAT(AwaitAsked(watches + 1).back(), "watch 7");
    ASSERT_TRUE(next.AwaitDrained());
    stream = next;
  }
  EXPECT_EQ(reflector_->stats().failures, 0u);
  EXPECT_THAT(sink_.calls(), SizeIs(1));
}

TEST_F(ReflectorStreamTest, L13AStreamThatOutlivesItsTimeoutIsGivenUpAndResumed) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  clock_.Advance(TimeoutOf(0) + 4999ms);
  EXPECT_THAT(AskedWhenIdle(), SizeIs(1));
  clock_.Advance(1ms);
  ASSERT_TRUE(stream.AwaitClosed());
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_THAT(reflector_->stats().last_error, HasSubstr("outlived its timeout"));
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch 7"));
}

TEST_F(ReflectorStreamTest, L13BookmarksDoNotProlongAWatch) {
  FakeStream stream = StartSynced();
  const std::chrono::seconds timeout = TimeoutOf(0);
  for (std::chrono::seconds passed = 0s; passed < timeout; passed += 1s) {
    clock_.Advance(1s);
    if (passed % 50s == 0s) {
      stream.Push(Bookmark("8"));
      ASSERT_TRUE(stream.AwaitDrained());
    }
  }
  clock_.Advance(4999ms);
  EXPECT_THAT(AskedWhenIdle(), SizeIs(1));
  clock_.Advance(1ms);
  EXPECT_TRUE(stream.AwaitClosed());
}

TEST_F(ReflectorStreamTest, L13SilenceBeforeTheMarkIsGivenUpAfterAMinute) {
  FakeStream stream = ExpectWatch();
  ExpectWatch();
  Start();
  stream.Push(Added("a", "5"));
  ASSERT_TRUE(stream.AwaitDrained());
  clock_.Advance(30s);
  stream.Push(Added("b", "6"));  // Bytes feed the deadline.
  ASSERT_TRUE(stream.AwaitDrained());
  clock_.Advance(59s);
  EXPECT_THAT(AskedWhenIdle(), SizeIs(1));
  clock_.Advance(1s);
  ASSERT_TRUE(stream.AwaitClosed());
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_THAT(reflector_->stats().last_error, HasSubstr("silent"));
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch-list (none)"));
  EXPECT_THAT(sink_.calls(), SizeIs(0));
}

TEST_F(ReflectorStreamTest, L14ALongLineMayComeInManyPieces) {
  FakeStream stream = StartSynced();
  std::string line = Added("a", "9");
  line.insert(line.find(R"("resourceVersion")"), R"("annotations":{"long":")" + std::string(4 << 20, 'x') + R"("},)");
  for (std::size_t at = 0; at < line.size(); at += 1 << 16) stream.Push(line.substr(at, 1 << 16));
  stream.Push(Added("b", "10"));
  EXPECT_THAT(sink_.Await(3), ElementsAre("replace 7:", "put a@9", "put b@10"));
}

TEST_F(ReflectorStreamTest, L14LinesMayBeCutAnywhere) {
  FakeStream stream = StartSynced();
  const std::string text = Added("a", "9") + Modified("a", "10") + "\r\n\n" + Deleted("a", "11");
  for (const char c : text) stream.Push(std::string(1, c));
  EXPECT_THAT(sink_.Await(4), ElementsAre("replace 7:", "put a@9", "put a@10", "delete a@11"));
}

TEST_F(ReflectorStreamTest, ALineThatTheEndCutsIsDropped) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  const std::string line = Added("b", "10");
  stream.Push(Added("a", "9") + line.substr(0, line.size() / 2));
  stream.End();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch 9"));
  EXPECT_THAT(sink_.calls(), ElementsAre("replace 7:", "put a@9"));
}

TEST_F(ReflectorStreamTest, AnErrorEventThatIsNoStatusCausesAResync) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Push(EventLine("ERROR", R"({"odd":true})"));
  ASSERT_TRUE(stream.AwaitClosed());
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch-list 7"));
}

TEST_F(ReflectorStreamTest, L15ADeletionNeedsOnlyTheName) {
  FakeStream stream = StartSynced();
  ExpectWatch();
  stream.Push(Added("a", "9") + EventLine("DELETED", Unreadable("a", "12")));
  stream.End();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch 12"));
  EXPECT_THAT(sink_.calls(), ElementsAre("replace 7:", "put a@9", "delete a@12"));
  EXPECT_EQ(reflector_->stats().bad_events, 0u);
}

TEST_F(ReflectorStreamTest, L15AnObjectThatCannotBeReadIsLoggedOnceAndCountedEachTime) {
  ::testing::internal::CaptureStderr();
  const Log log(LogLevel::kWarn);
  FakeStream stream = ExpectWatch();
  Reflector reflector(client_, KindOf<ConfigMap>(), {}, clock_, log, sink_, 1);
  std::jthread thread([&](std::stop_token stop) { reflector.Run(std::move(stop)); });
  const std::string bad = EventLine("MODIFIED", Unreadable("a", "9"));
  stream.Push(InitialEnd("7") + bad + bad + Added("a", "10") + bad + Added("b", "11"));
  EXPECT_THAT(sink_.Await(3), ElementsAre("replace 7:", "put a@10", "put b@11"));
  thread = {};

  const std::string logged = ::testing::internal::GetCapturedStderr();
  const std::string line = "an object cannot be read, its last known state stays kind=ConfigMap object=ns/a error=";
  const std::size_t first = logged.find(line), second = logged.find(line, first + 1);
  EXPECT_NE(second, std::string::npos) << logged;
  EXPECT_EQ(logged.find(line, second + 1), std::string::npos) << logged;
  EXPECT_EQ(reflector.stats().bad_events, 3u);
}

}  // namespace
}  // namespace kube::testing
