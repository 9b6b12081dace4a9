// SPDX-License-Identifier: Apache-2.0
// Which lists and watches a reflector asks for, in which order. Faults within a stream are in
// reflector_stream_test.cc.
#include "clientlib/cache/reflector.h"

#include <set>

#include "tests/clientlib/cache/reflector_fixture.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(ReflectorTest, L9StartsWithAWatchListAndStaysOnItsStream) {
  FakeStream stream = ExpectWatch();
  Start();
  stream.Push(Added("b", "6") + Added("a", "5"));
  ASSERT_TRUE(stream.AwaitDrained());
  EXPECT_THAT(sink_.calls(), SizeIs(0));  // Nothing is seen of a list that is not complete.

  stream.Push(InitialEnd("7"));
  stream.Push(Modified("a", "8") + Bookmark("20") + Deleted("b", "21"));

  EXPECT_THAT(sink_.Await(4), ElementsAre("replace 7: b@6 a@5", "put a@8", "bookmark 20", "delete b@21"));
  EXPECT_THAT(AskedWhenIdle(), ElementsAre("watch-list (none)"));
  const ReflectorStats stats = reflector_->stats();
  EXPECT_EQ(stats.watches, 1u);
  EXPECT_EQ(stats.lists, 0u);
  EXPECT_EQ(stats.events, 4u);
  EXPECT_EQ(stats.failures, 0u);
}

TEST_F(ReflectorTest, L9TheWireOfAWatchList) {
  ExpectWatch();
  Start({.ns = "team-a", .label_selector = "a=b", .field_selector = "c=d"});
  AwaitAsked(1);
  const HttpRequest request = transport_.requests()[0];
  EXPECT_EQ(request.target, "/api/v1/namespaces/team-a/configmaps?watch=1&allowWatchBookmarks=true&timeoutSeconds=" +
                                Param(request, "timeoutSeconds") +
                                "&labelSelector=a%3Db&fieldSelector=c%3Dd&sendInitialEvents=true&"
                                "resourceVersionMatch=NotOlderThan");
}

TEST_F(ReflectorTest, L9OnlyTheMarkTrueEndsTheInitialEvents) {
  FakeStream stream = ExpectWatch();
  Start();
  stream.Push(Added("a", "5") + Bookmark("6") + InitialEnd("7", "\"false\"") + InitialEnd("8", "true"));
  ASSERT_TRUE(stream.AwaitDrained());
  EXPECT_THAT(sink_.calls(), SizeIs(0));
  stream.Push(InitialEnd("9"));
  EXPECT_THAT(sink_.Await(1), ElementsAre("replace 9: a@5"));
}

TEST_F(ReflectorTest, L9ChangesBetweenTheInitialEventsAreTakenIn) {
  FakeStream stream = ExpectWatch();
  Start();
  stream.Push(Added("a", "1") + Added("b", "2") + Added("c", "3"));
  stream.Push(Modified("a", "4") + Deleted("b", "5") + Added("d", "6") + Deleted("c", "7") + Added("c", "8"));
  stream.Push(InitialEnd("9"));
  EXPECT_THAT(sink_.Await(1), ElementsAre("replace 9: a@4 d@6 c@8"));
}

TEST_F(ReflectorTest, L9ObjectsWithoutAUidAreToldApartByName) {
  const auto bare = [](const std::string& name, const std::string& version) {
    return R"({"kind":"ConfigMap","metadata":{"name":")" + name + R"(","resourceVersion":")" + version + R"("}})";
  };
  FakeStream stream = ExpectWatch();
  Start();
  stream.Push(EventLine("ADDED", bare("a", "1")) + EventLine("ADDED", bare("b", "2")) +
              EventLine("MODIFIED", bare("a", "3")) + InitialEnd("9"));
  EXPECT_THAT(sink_.Await(1), ElementsAre("replace 9: b@2 a@3"));
}

TEST_F(ReflectorTest, L9AStreamThatEndsBeforeTheMarkIsThrownAway) {
  ExpectWatchBody(Added("a", "5"));
  FakeStream second = ExpectWatch();
  Start();
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), ElementsAre("watch-list (none)", "watch-list (none)"));  // L6: no version was taken.
  second.Push(Added("b", "6") + InitialEnd("7"));
  EXPECT_THAT(sink_.Await(1), ElementsAre("replace 7: b@6"));
}

TEST_F(ReflectorTest, L9AStreamThatBreaksBeforeTheMarkIsThrownAway) {
  FakeStream first = ExpectWatch(), second = ExpectWatch();
  Start();
  first.Push(Added("a", "5"));
  first.Break(Error(ErrorCode::kUnavailable, "connection reset"));
  PassBackoff();
  second.Push(InitialEnd("7"));
  EXPECT_THAT(sink_.Await(1), ElementsAre("replace 7:"));
}

TEST_F(ReflectorTest, L9AServerThatDoesNotKnowWatchListIsListed) {
  for (const int status : {400, 422}) {
    ExpectWatchError(StatusAnswer(status, "Invalid", "sendInitialEvents is forbidden"));
    ExpectList(ListAnswer("7", {MapText("a", "5")}));
    FakeStream stream = ExpectWatch();
    const std::size_t before = transport_.requests().size();
    Start();
    stream.Push(Added("b", "8"));
    ASSERT_TRUE(stream.AwaitDrained());
    const std::vector<std::string> asked = AwaitAsked(before + 3);
    EXPECT_THAT(std::vector(asked.begin() + static_cast<std::ptrdiff_t>(before), asked.end()),
                ElementsAre("watch-list (none)", "list 0", "watch 7"));
    Stop();
  }
  EXPECT_THAT(sink_.calls(), ElementsAre("replace 7: a@5", "put b@8", "replace 7: a@5", "put b@8"));
}

TEST_F(ReflectorTest, L9OneFallbackIsForGood) {
  ExpectWatchError(StatusAnswer(422, "Invalid", "forbidden"));
  ExpectList(ListAnswer("7"));
  ExpectWatchBody(ErrorLine(410, "Expired"));
  ExpectList(ListAnswer("9"));
  ExpectWatch();
  Start();
  EXPECT_THAT(AwaitAsked(5), ElementsAre("watch-list (none)", "list 0", "watch 7", "list 7", "watch 9"));
}

TEST_F(ReflectorTest, L9AServerThatIsDownIsNotTakenForAnOldOne) {
  ExpectWatchError(Error(ErrorCode::kUnavailable, "connection refused"));
  ExpectWatchError(StatusAnswer(500, "InternalError", "etcd is away"));
  ExpectWatch();
  Start();
  PassBackoff();
  EXPECT_THAT(AwaitAsked(2), SizeIs(2));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(3200ms);
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch-list (none)", "watch-list (none)"));
}

TEST_F(ReflectorTest, L1TheFirstListMayBeOldAndARelistIsNotOlderThanWhatWasSeen) {
  ExpectList(ListAnswer("7", {MapText("a", "5")}));
  ExpectWatchBody(Modified("a", "9") + ErrorLine(410, "Expired"));
  ExpectList(ListAnswer("12"));
  ExpectWatch();
  StartWithList();
  EXPECT_THAT(AwaitAsked(4), ElementsAre("list 0", "watch 7", "list 9", "watch 12"));
  EXPECT_THAT(sink_.Await(3), ElementsAre("replace 7: a@5", "put a@9", "replace 12:"));
}

TEST_F(ReflectorTest, L2AListWhoseVersionIsRefusedIsRepeatedAtOnceWithoutOne) {
  for (const HttpResponse& refusal :
       {StatusAnswer(410, "Expired", "too old"), StatusAnswer(410, "Gone", "too old"), TooLargeAnswer()}) {
    const std::size_t before = transport_.requests().size();
    ExpectList(refusal);
    ExpectList(ListAnswer("7"));
    ExpectWatch();
    StartWithList();
    const std::vector<std::string> asked = AwaitAsked(before + 3);
    EXPECT_THAT(std::vector(asked.begin() + static_cast<std::ptrdiff_t>(before), asked.end()),
                ElementsAre("list 0", "list (none)", "watch 7"));
    Stop();
  }
}

TEST_F(ReflectorTest, L2TheMarkIsClearedOnlyByAListThatSucceeds) {
  ExpectList(TooLargeAnswer());
  ExpectList(StatusAnswer(500, "InternalError", "etcd is away"));
  ExpectList(ListAnswer("7"));
  ExpectWatchBody(Bookmark("8") + ErrorLine(410, "Expired"));
  ExpectList(ListAnswer("9"));
  ExpectWatch();
  StartWithList();
  PassBackoff();
  EXPECT_THAT(AwaitAsked(6), ElementsAre("list 0", "list (none)", "list (none)", "watch 7", "list 8", "watch 9"));
}

TEST_F(ReflectorTest, L2AServerThatRefusesEveryListIsNotAskedInAHotLoop) {
  transport_.Handle("GET", "/", [](auto&, auto&) { return StatusAnswer(410, "Expired", "too old"); });
  StartWithList();
  EXPECT_THAT(AskedWhenIdle(), ElementsAre("list 0", "list (none)"));
  PassBackoff();
  EXPECT_THAT(AwaitAsked(3), ElementsAre("list 0", "list (none)", "list (none)"));
}

TEST_F(ReflectorTest, L2AServerThatRefusesEveryWatchListIsNotAskedInAHotLoop) {
  transport_.Handle("GET", "/", [](auto&, auto&) { return StatusAnswer(410, "Expired", "too old"); });
  Start();
  const std::size_t count = AskedWhenIdle().size();
  EXPECT_LE(count, 2u);
  PassBackoff();
  EXPECT_THAT(AwaitAsked(count + 1), SizeIs(count + 1));
}

TEST_F(ReflectorTest, L3AWatchThatExpiresIsListedFromTheLastVersionFirst) {
  for (const char* reason : {"Expired", "Gone"}) {
    const std::size_t before = transport_.requests().size();
    ExpectWatchBody(InitialEnd("7") + Added("a", "9") + ErrorLine(410, reason));
    ExpectWatchError(StatusAnswer(410, "Expired", "too old"));
    FakeStream stream = ExpectWatch();
    Start();
    stream.Push(InitialEnd("20"));
    ASSERT_TRUE(stream.AwaitDrained());
    const std::vector<std::string> asked = AwaitAsked(before + 3);
    EXPECT_THAT(std::vector(asked.begin() + static_cast<std::ptrdiff_t>(before), asked.end()),
                ElementsAre("watch-list (none)", "watch-list 9", "watch-list (none)"));
    Stop();
  }
}

TEST_F(ReflectorTest, L3AVersionRefusedAtTheStartOfAWatchIsListed) {
  ExpectWatchBody(InitialEnd("7"));
  ExpectWatchError(StatusAnswer(410, "Expired", "too old"));
  ExpectWatch();
  Start();
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch 7", "watch-list 7"));
}

TEST_F(ReflectorTest, L9AVersionThatTheServerHasNotReachedIsLeftOut) {
  ExpectWatchBody(InitialEnd("9") + ErrorLine(410, "Expired"));
  ExpectWatchBody(ErrorLine(504, "Timeout", "Too large resource version: 9, current: 5"));
  ExpectWatch();
  Start();
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch-list 9", "watch-list (none)"));
}

TEST_F(ReflectorTest, L3AWatchThatExpiresAgainAndAgainIsNoHotLoop) {
  ExpectList(ListAnswer("7"));
  ExpectWatchBody(ErrorLine(410, "Expired"));
  ExpectList(ListAnswer("8"));
  ExpectWatchBody(ErrorLine(410, "Expired"));
  ExpectList(ListAnswer("9"));
  StartWithList();
  EXPECT_THAT(AskedWhenIdle(), ElementsAre("list 0", "watch 7", "list 7", "watch 8"));
  PassBackoff();
  EXPECT_EQ(AwaitAsked(5)[4], "list 8");
}

TEST_F(ReflectorTest, L4AWatchThatEndsIsResumedWithoutARelist) {
  ExpectWatchBody(InitialEnd("7") + Added("a", "9"));
  ExpectWatchBody(Bookmark("15"));
  FakeStream third = ExpectWatch();
  Start();
  third.Push(Modified("a", "16"));
  EXPECT_THAT(sink_.Await(4), ElementsAre("replace 7:", "put a@9", "bookmark 15", "put a@16"));
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch 9", "watch 15"));
  EXPECT_EQ(reflector_->stats().failures, 0u);
}

TEST_F(ReflectorTest, L4AWatchThatEndsAtOnceWithoutAnEventBacksOff) {
  ExpectWatchBody(InitialEnd("7"));
  ExpectWatchBody("");
  ExpectWatch();
  Start();
  ASSERT_TRUE(transport_.AwaitRequests(2));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(799ms);
  EXPECT_THAT(AskedWhenIdle(), SizeIs(2));
  clock_.Advance(801ms);
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch 7", "watch 7"));
  EXPECT_EQ(reflector_->stats().failures, 1u);
}

TEST_F(ReflectorTest, L4AWatchThatWasQuietForLongIsResumedAtOnce) {
  ExpectWatchBody(InitialEnd("7"));
  FakeStream quiet = ExpectWatch();
  ExpectWatch();
  Start();
  ASSERT_TRUE(quiet.AwaitDrained());
  clock_.Advance(1s);
  quiet.End();
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch 7", "watch 7"));
  EXPECT_EQ(reflector_->stats().failures, 0u);
}

TEST_F(ReflectorTest, L5AWatchThatCannotStartIsTriedAgainFromTheSameVersion) {
  ExpectWatchBody(InitialEnd("7"));
  ExpectWatchError(Error(ErrorCode::kUnavailable, "connection refused"));
  ExpectWatchError(StatusAnswer(429, "TooManyRequests", "slow down"));
  ExpectWatch();
  Start();
  PassBackoff();
  EXPECT_THAT(AwaitAsked(3), SizeIs(3));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(3200ms);
  EXPECT_THAT(AwaitAsked(4), ElementsAre("watch-list (none)", "watch 7", "watch 7", "watch 7"));
}

TEST_F(ReflectorTest, L5ARetryAfterIsWaitedFor) {
  HttpResponse busy = StatusAnswer(429, "TooManyRequests", "slow down");
  busy.headers.emplace_back("retry-after", "20");
  ExpectWatchBody(InitialEnd("7"));
  ExpectWatchError(std::move(busy));
  ExpectWatch();
  Start();
  ASSERT_TRUE(transport_.AwaitRequests(2));
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(19999ms);
  EXPECT_THAT(AskedWhenIdle(), SizeIs(2));
  clock_.Advance(1ms);
  EXPECT_THAT(AwaitAsked(3), SizeIs(3));
}

TEST_F(ReflectorTest, L5AnyOtherRefusalIsListedAgainFromTheLastVersion) {
  ExpectWatchBody(InitialEnd("7"));
  ExpectWatchError(StatusAnswer(403, "Forbidden", "watch is not allowed"));
  ExpectWatch();
  Start();
  ASSERT_TRUE(transport_.AwaitRequests(2));
  PassBackoff();
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch 7", "watch-list 7"));
}

TEST_F(ReflectorTest, A1ARefusedTokenCostsNoRelist) {
  ExpectWatchBody(InitialEnd("7"));
  ExpectWatchError(StatusAnswer(401, "Unauthorized", "token expired"));
  ExpectWatch();
  Start();
  ASSERT_TRUE(transport_.AwaitRequests(2));
  PassBackoff();
  EXPECT_THAT(AwaitAsked(3), ElementsAre("watch-list (none)", "watch 7", "watch 7"));
}

TEST_F(ReflectorTest, L5AnInternalErrorInTheStreamIsRetriedForABoundedTimeOnly) {
  ExpectWatchBody(InitialEnd("7"));
  for (int i = 0; i < 20; ++i) ExpectWatchBody(ErrorLine(500, "InternalError"));
  Start();
  std::vector<std::string> asked = AwaitAsked(2);
  for (std::size_t count = 3; count <= 12 && !asked.back().starts_with("watch-list 7"); ++count) {
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(60s);
    asked = AwaitAsked(count);
  }
  EXPECT_EQ(asked[2], "watch 7");
  EXPECT_EQ(asked.back(), "watch-list 7");
}

TEST_F(ReflectorTest, L7TheTimeoutOfEachWatchIsAMinuteAndAHalfToTwo) {
  ExpectWatchBody(InitialEnd("7"));
  for (int i = 0; i < 40; ++i) ExpectWatchBody(Bookmark("8"));
  Start();
  AwaitAsked(41);
  std::set<int> timeouts;
  for (const HttpRequest& request : transport_.requests()) {
    const int timeout = std::stoi(Param(request, "timeoutSeconds"));
    EXPECT_GE(timeout, 90);
    EXPECT_LE(timeout, 120);
    timeouts.insert(timeout);
    EXPECT_EQ(Param(request, "allowWatchBookmarks"), "true");
  }
  EXPECT_GT(timeouts.size(), 15u);
}

TEST_F(ReflectorTest, L7InitialObjectsThatDoNotComeInTimeAreGivenMore) {
  for (int i = 0; i < 5; ++i) ExpectWatchBody(Added("a", "5"));
  ExpectWatchBody(InitialEnd("7"));
  ExpectWatch();
  Start();
  const auto timeout_of = [&](std::size_t watch) {
    return std::stoi(Param(transport_.requests()[watch], "timeoutSeconds"));
  };
  for (std::size_t watch = 0; watch < 5; ++watch) {
    const int times = 1 << std::min<std::size_t>(watch, 3);
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    EXPECT_THAT(AwaitAsked(watch + 1), SizeIs(watch + 1));
    EXPECT_GE(timeout_of(watch), 90 * times);
    EXPECT_LE(timeout_of(watch), 120 * times);
    clock_.Advance(30s);
  }
  EXPECT_THAT(AwaitAsked(7).back(), "watch 7");
  EXPECT_LE(timeout_of(6), 120);
}

TEST_F(ReflectorTest, L8WithoutAnAnswerItTriesAgainAfterThreeSecondsAtMost) {
  for (int i = 0; i < 8; ++i) ExpectWatchError(Error(ErrorCode::kUnavailable, "connection refused"));
  transport_.Expect("GET", kWatch, JsonAnswer(503, R"({"kind":"Status","status":"Failure","code":503})"));
  FakeStream stream = ExpectWatch();
  Start();
  for (std::size_t failures = 1; failures <= 8; ++failures) {
    ASSERT_TRUE(transport_.AwaitRequests(failures));
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(3s);
  }
  ASSERT_TRUE(transport_.AwaitRequests(9));
  PassBackoff();  // A server that answers was not asked too often: its own backoff begins.
  EXPECT_TRUE(stream.AwaitOpened());
}

TEST_F(ReflectorTest, L8AWatchThatIsCutAgainAndAgainResumesAfterThreeSecondsAtMost) {
  ExpectWatchBody(InitialEnd("7"));
  std::vector<FakeStream> streams;
  for (int i = 0; i < 8; ++i) streams.push_back(ExpectWatch());
  Start();
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(streams[i].AwaitOpened());
    streams[i].Break(Error(ErrorCode::kUnavailable, "connection reset").with_http(0, std::string(kConnectionLost)));
    ASSERT_TRUE(streams[i].AwaitClosed());
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(3s);
  }
  EXPECT_TRUE(streams[7].AwaitOpened());
}

TEST_F(ReflectorTest, L8AListThatIsCutAgainAndAgainBacksOff) {
  for (int i = 0; i < 4 * 10; ++i) {  // The client itself tries ten times.
    ExpectList(Error(ErrorCode::kUnavailable, "connection reset").with_http(0, std::string(kConnectionLost)));
  }
  StartWithList();
  Duration longest{};
  for (int i = 0; i < 3; ++i) {
    Duration waited{};
    const std::uint64_t failures = static_cast<std::uint64_t>(i) + 1;
    while (reflector_->stats().failures < failures) {
      ASSERT_TRUE(clock_.AwaitWaiters(1));
      clock_.Advance(50ms);
    }
    while (reflector_->stats().lists <= failures) {
      ASSERT_TRUE(clock_.AwaitWaiters(1));
      clock_.Advance(100ms);
      waited += 100ms;
    }
    longest = std::max(longest, waited);
  }
  EXPECT_GE(longest, 3s) << "the third wait is of 3.2 s at least";
}

TEST_F(ReflectorTest, L8TheSameFailureIsLoggedOnceAMinute) {
  constexpr std::size_t kFailures = 25;
  const auto refused = [] { return Error(ErrorCode::kUnavailable, "connection refused"); };
  for (std::size_t i = 0; i < kFailures; ++i) ExpectWatchError(refused());
  ExpectWatchError(JsonAnswer(503, R"({"kind":"Status","status":"Failure","code":503,"message":"overloaded"})"));
  FakeStream stream = ExpectWatch();
  const Log log;
  ::testing::internal::CaptureStderr();
  Start({}, log);
  for (std::size_t failures = 1; failures <= kFailures; ++failures) {  // In 72 s.
    EXPECT_TRUE(transport_.AwaitRequests(failures));
    EXPECT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(3s);
  }
  EXPECT_TRUE(transport_.AwaitRequests(kFailures + 1));
  EXPECT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(1600ms);
  EXPECT_TRUE(stream.AwaitOpened());
  Stop();
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("connection refused"));
  EXPECT_THAT(said, HasSubstr("overloaded"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
}

// To send all initial objects again and again is work for a server that may be failing of too much work.
TEST_F(ReflectorTest, L8AWatchListThatIsCutAgainAndAgainBacksOff) {
  std::vector<FakeStream> streams;
  for (int i = 0; i < 5; ++i) streams.push_back(ExpectWatch());
  Start();
  Duration shortest = 800ms;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(streams[i].AwaitOpened());
    streams[i].Break(Error(ErrorCode::kUnavailable, "connection reset").with_http(0, std::string(kConnectionLost)));
    ASSERT_TRUE(streams[i].AwaitClosed());
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(shortest - 1ms);
    EXPECT_THAT(AskedWhenIdle(), SizeIs(i + 1)) << "tried again too early";
    clock_.Advance(shortest + 1ms);  // The jitter at most doubles it.
    shortest *= 2;
  }
  EXPECT_TRUE(streams[4].AwaitOpened());
}

TEST_F(ReflectorTest, L8TheBackoffStartsOverAfterAWatchThatHeldForTenSeconds) {
  ExpectWatchBody(InitialEnd("7"));
  std::vector<FakeStream> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(ExpectWatch());
  Start();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(streams[i].AwaitOpened());
    clock_.Advance(10s);
    streams[i].Break(Error(ErrorCode::kUnavailable, "connection reset").with_http(0, std::string(kConnectionLost)));
    ASSERT_TRUE(streams[i].AwaitClosed());
    PassBackoff();
  }
  EXPECT_TRUE(streams[5].AwaitOpened());
}

TEST_F(ReflectorTest, L8TheBackoffDoublesFrom800MillisecondsTo30Seconds) {
  transport_.Handle("GET", "/", [](auto&, auto&) {
    return JsonAnswer(503, R"({"kind":"Status","status":"Failure","code":503,"message":"overloaded"})");
  });
  Start();
  Duration shortest = 800ms;
  for (std::size_t failures = 1; failures <= 8; ++failures) {
    ASSERT_TRUE(transport_.AwaitRequests(failures));
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(shortest - 1ms);
    EXPECT_THAT(AskedWhenIdle(), SizeIs(failures)) << "tried again too early";
    clock_.Advance(shortest + 1ms);  // The jitter at most doubles it.
    shortest = std::min<Duration>(2 * shortest, 30s);
  }
  EXPECT_THAT(AwaitAsked(9), SizeIs(9));
}

TEST_F(ReflectorTest, L8TheBackoffStartsOverAfterTwoQuietMinutes) {
  ExpectWatchBody(InitialEnd("7"));
  for (int i = 0; i < 4; ++i) ExpectWatchError(Error(ErrorCode::kUnavailable, "connection refused"));
  FakeStream stream = ExpectWatch();
  ExpectWatch();
  Start();
  for (std::size_t count = 2; count <= 5; ++count) {
    ASSERT_TRUE(transport_.AwaitRequests(count));
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(15s);
  }
  ASSERT_TRUE(stream.AwaitOpened());
  // The first of these may pass before the reflector has looked at the clock.
  for (int i = 0; i < 4; ++i) {
    stream.Push(Bookmark("8"));
    ASSERT_TRUE(stream.AwaitDrained());
    clock_.Advance(50s);
  }
  stream.Break(Error(ErrorCode::kUnavailable, "connection reset"));
  ASSERT_TRUE(stream.AwaitClosed());
  PassBackoff();
  EXPECT_EQ(AwaitAsked(7).back(), "watch 8");
}

TEST_F(ReflectorTest, L12AListWithoutAVersionIsAnError) {
  ExpectList(JsonAnswer(200, R"({"kind":"ConfigMapList","metadata":{},"items":[]})"));
  StartWithList();
  EXPECT_THAT(AskedWhenIdle(), ElementsAre("list 0"));
  EXPECT_THAT(sink_.calls(), SizeIs(0));
  EXPECT_THAT(reflector_->stats().last_error, HasSubstr("resourceVersion"));
}

TEST_F(ReflectorTest, L11AContinueTokenThatExpiresRestartsAsOneFullList) {
  const std::string page = R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"5","continue":"more"},"items":[)" +
                           MapText("a", "1") + "]}";
  ExpectList(JsonAnswer(200, page));
  ExpectList(StatusAnswer(410, "Expired", "the continue token is too old"));
  ExpectList(ListAnswer("7", {MapText("b", "6")}));
  ExpectWatch();
  StartWithList();
  EXPECT_THAT(sink_.Await(1), ElementsAre("replace 7: b@6"));
  EXPECT_THAT(AwaitAsked(4), ElementsAre("list 0", "list (none)", "list (none)", "watch 7"));
  EXPECT_EQ(Param(transport_.requests()[1], "continue"), "more");
  EXPECT_EQ(Param(transport_.requests()[2], "continue"), "(none)");
}

TEST_F(ReflectorTest, L10AllPagesOfAListAreOneReplace) {
  const std::string page = R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"7","continue":"more"},"items":[)" +
                           MapText("a", "1") + "]}";
  ExpectList(JsonAnswer(200, page));
  ExpectList(ListAnswer("7", {MapText("b", "2")}));
  ExpectWatch();
  StartWithList();
  EXPECT_THAT(sink_.Await(1), ElementsAre("replace 7: a@1 b@2"));
  EXPECT_THAT(AwaitAsked(3), ElementsAre("list 0", "list (none)", "watch 7"));
}

// Lists with a version come from the watch cache, and since Kubernetes 1.34 the others too: pages would go to etcd.
TEST_F(ReflectorTest, L10NoListAsksForPages) {
  ExpectList(ListAnswer("7", {}));
  ExpectWatchBody(ErrorLine(410, "Expired"));
  ExpectList(StatusAnswer(410, "Expired", "too old"));
  ExpectList(ListAnswer("9", {}));
  ExpectWatch();
  StartWithList();
  EXPECT_THAT(AwaitAsked(5), ElementsAre("list 0", "watch 7", "list 7", "list (none)", "watch 9"));
  for (const HttpRequest& request : transport_.requests()) EXPECT_THAT(request.target, Not(HasSubstr("limit")));
}

TEST_F(ReflectorTest, TheLastErrorStaysUntilAllIsWellAgain) {
  ExpectWatchError(Error(ErrorCode::kUnavailable, "connection refused"));
  FakeStream stream = ExpectWatch();
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(reflector_->stats().last_error, "watch configmaps: connection refused");
  PassBackoff();
  stream.Push(InitialEnd("7"));
  sink_.Await(1);
  ASSERT_TRUE(stream.AwaitDrained());
  EXPECT_EQ(reflector_->stats().last_error, "");
}

TEST_F(ReflectorTest, AStopEndsItWhateverItWaitsFor) {
  transport_.ExpectHang("GET", kPath);  // An answer.
  StartWithList();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  Stop();

  FakeStream stream = ExpectWatch();  // Bytes.
  Start();
  ASSERT_TRUE(stream.AwaitDrained());
  Stop();

  ExpectWatchError(Error(ErrorCode::kUnavailable, "connection refused"));  // Its backoff.
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  Stop();
}

}  // namespace
}  // namespace kube::testing
