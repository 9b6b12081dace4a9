// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/log_follower.h"

#include "tests/clientlib/runtime/log_follower_fixture.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr const char* kLine1 = "2026-01-02T03:04:05.900000000Z a\n";
constexpr const char* kLine2 = "2026-01-02T03:04:07.100000000Z b\n";
constexpr const char* kSince1 = "&follow=true&timestamps=true&sinceTime=2026-01-02T03%3A04%3A05Z";
constexpr const char* kSince2 = "&follow=true&timestamps=true&sinceTime=2026-01-02T03%3A04%3A07Z";

std::string Bytes(const std::string& bytes) { return "bytes " + bytes; }
Error Reset() { return Error(ErrorCode::kUnavailable, "connection reset"); }

TEST_F(LogFollowerTest, BeginsWhereItIsTold) {
  FakeStream stream = ExpectStream();
  Start({.since = Time{FakeClock::kWallStart}, .tail_lines = 100});
  EXPECT_THAT(sink_.Await(2), ElementsAre("Following", "start 2026-01-02T03:04:05Z"));
  EXPECT_THAT(Asked(), ElementsAre("&follow=true&timestamps=true&sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=100"));
}

TEST_F(LogFollowerTest, GoesOnAtTheSecondOfTheLastLine) {
  FakeStream broken = ExpectStream(), next = ExpectStream();
  Start({.tail_lines = 100});
  broken.Push(kLine1);
  broken.Push("2026-01-02T03:04:07.1");
  broken.Push("00000000Z unfini");
  broken.Break(Reset());
  EXPECT_THAT(sink_.Await(6).back(), "Waiting: log of pod ns/w-0: connection reset");
  PassBackoff();
  EXPECT_THAT(sink_.Await(8).back(), "start 2026-01-02T03:04:07Z");
  EXPECT_THAT(Asked(), ElementsAre("&follow=true&timestamps=true&tailLines=100", kSince2));
}

TEST_F(LogFollowerTest, ATimeThatIsCutOffCountsForNothing) {
  FakeStream broken = ExpectStream(), next = ExpectStream();
  Start();
  broken.Push(std::string(kLine1) + "2026-01-02T03:04:07.1");
  broken.Break(Reset());
  EXPECT_THAT(sink_.Await(4), SizeIs(4));
  PassBackoff();
  next.Push("2026-01-02T03:04:08Z no part of the line before\n");
  next.Break(Reset());
  EXPECT_THAT(sink_.Await(8), SizeIs(8));
  FakeStream last = ExpectStream();
  PassBackoff();
  EXPECT_THAT(sink_.Await(10), SizeIs(10));
  EXPECT_THAT(Asked(), ElementsAre("&follow=true&timestamps=true", kSince1,
                                   "&follow=true&timestamps=true&sinceTime=2026-01-02T03%3A04%3A08Z"));
}

TEST_F(LogFollowerTest, ALineWithoutATimeDoesNotChangeWhereToGoOn) {
  for (const std::string line : {"unable to retrieve container logs\n", "\n", " \n", "2026-99-99T99:99:99Z a\n",
                                 "0123456789012345678901234567890123456789012345678901234567890 b\n"}) {
    ExpectBody(kLine1 + line);
    FakeStream next = ExpectStream();
    Start();
    PassBackoff();
    ASSERT_TRUE(next.AwaitOpened());
    EXPECT_EQ(Asked().back(), kSince1) << line;
    follower_.reset();
  }
}

TEST_F(LogFollowerTest, TheRestOfALineThatBeganBeforeIsDropped) {
  struct Case {
    std::vector<std::string> pieces;
    std::string want;
  };
  const std::string rest(100, 'x'), line = kLine1;
  const Case cases[] = {{{line}, line},
                        {{line.substr(0, 10), line.substr(10)}, line},
                        {{"rest\n" + line + "b"}, line + "b"},
                        {{"2026 rest", " and more", "\n2026-01", line.substr(7)}, line},
                        {{rest, rest, rest + "\n", "\n", line}, line},
                        {{line + "without a time\n"}, line + "without a time\n"}};
  SetPhase("Succeeded");
  for (const Case& c : cases) {
    RecordingLogSink sink;
    FakeStream stream = ExpectStream();
    for (const std::string& piece : c.pieces) stream.Push(piece);
    stream.End();
    LogFollower follower(client_, {.pod = {"ns", "w-0"}, .since = Time{FakeClock::kWallStart}}, clock_, sink);
    follower.Start();
    std::string text;
    for (const std::string& call : sink.Await(4)) {
      if (call.starts_with("bytes ")) text += call.substr(6);
    }
    EXPECT_EQ(text, c.want);
  }
}

TEST_F(LogFollowerTest, WaitsForTheContainerToStart) {
  const std::string words = "container \"main\" in pod \"w-0\" is waiting to start: ContainerCreating";
  ExpectAnswer(HttpResponse{204, {}, ""});
  ExpectAnswer(StatusAnswer(400, "BadRequest", words));
  ExpectAnswer(StatusAnswer(400, "BadRequest", words));
  ExpectBody(kLine1);
  Start();
  for (const Duration longest : {1600ms, 3200ms, 6400ms}) Pass(longest);
  EXPECT_THAT(sink_.Await(5), ElementsAre("Waiting: log of pod ns/w-0: the pod has no node yet",
                                          "Waiting: log of pod ns/w-0: " + words, "Following", "start", Bytes(kLine1)));
}

TEST_F(LogFollowerTest, EndsWhenThePodIsGone) {
  ExpectBody(kLine1);
  Start();
  EXPECT_THAT(sink_.Await(3), SizeIs(3));
  SetPod(StatusAnswer(404, "NotFound", "pods \"w-0\" not found"));
  PassBackoff();
  EXPECT_EQ(sink_.Await(4).back(), "Ended: the pod is gone");
}

TEST_F(LogFollowerTest, EndsWhenAnotherPodHasItsName) {
  Start({.uid = "u-0"});
  EXPECT_THAT(sink_.Await(1), ElementsAre("Ended: the pod is gone"));
  EXPECT_THAT(Asked(), SizeIs(0));
}

TEST_F(LogFollowerTest, APodThatItsNodeDoesNotKnowYetIsNotGone) {
  ExpectAnswer(StatusAnswer(404, "NotFound", "pod not found"));
  Start();
  EXPECT_THAT(sink_.Await(1), ElementsAre("Waiting: log of pod ns/w-0: pod not found"));
}

TEST_F(LogFollowerTest, ReadsTheRestOnceMoreAfterTheContainersEnd) {
  FakeStream stream = ExpectStream();
  Start();
  stream.Push(kLine1);
  EXPECT_THAT(sink_.Await(3), SizeIs(3));
  SetPhase("Succeeded");
  stream.End();
  ExpectBody(std::string(kLine1) + kLine2);
  PassBackoff();
  EXPECT_THAT(sink_.Await(6), ElementsAre("Following", "start", Bytes(kLine1), "start 2026-01-02T03:04:05Z",
                                          Bytes(std::string(kLine1) + kLine2), "Ended: the container has ended"));
  EXPECT_EQ(Asked().back(), "&timestamps=true&sinceTime=2026-01-02T03%3A04%3A05Z") << "it does not follow any more";
}

TEST_F(LogFollowerTest, HasNotEndedWhileTheRestBreaks) {
  SetPhase("Failed");
  FakeStream broken = ExpectStream();
  Start();
  broken.Push(kLine1);
  broken.Break(Reset());
  EXPECT_EQ(sink_.Await(4).back(), "Waiting: log of pod ns/w-0: connection reset");
  ExpectBody(std::string(kLine1) + kLine2);
  PassBackoff();
  EXPECT_EQ(sink_.Await(8).back(), "Ended: the container has ended");
}

TEST_F(LogFollowerTest, AContainerThatMayStartAgainHasNotEnded) {
  SetPhase("Running", R"(,"containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":1}}}])");
  ExpectBody(kLine1);
  ExpectBody(std::string(kLine1) + kLine2);
  Start();
  PassBackoff();
  EXPECT_THAT(sink_.Await(5), ElementsAre("Following", "start", Bytes(kLine1), "start 2026-01-02T03:04:05Z",
                                          Bytes(std::string(kLine1) + kLine2)));
}

TEST_F(LogFollowerTest, AContainerOfAPodThatGoesDoesNotStartAgain) {
  SetPhase("Running",
           R"(,"containerStatuses":[{"name":"other","state":{"running":{}}},)"
           R"({"name":"main","state":{"terminated":{"exitCode":1}}}])",
           R"(,"deletionTimestamp":"2026-01-02T03:04:05Z")");
  ExpectBody(kLine1);
  Start();
  EXPECT_EQ(sink_.Await(4).back(), "Ended: the container has ended");
}

TEST_F(LogFollowerTest, TellsTheMissingPermissionAndTriesAgain) {
  const std::string words = "pods \"w-0\" is forbidden: User \"u\" cannot get resource \"pods/log\" in API group \"\"";
  ExpectAnswer(StatusAnswer(403, "Forbidden", words));
  ExpectBody(kLine1);
  Start();
  EXPECT_THAT(sink_.Await(1), ElementsAre("Refused: log of pod ns/w-0: " + words));
  PassBackoff();
  EXPECT_THAT(sink_.Await(4), SizeIs(4));
}

TEST_F(LogFollowerTest, TellsThatItMayNotSeeThePod) {
  SetPod(StatusAnswer(403, "Forbidden", "cannot get resource \"pods\""));
  Start();
  EXPECT_THAT(sink_.Await(1), ElementsAre("Refused: get pod ns/w-0: cannot get resource \"pods\""));
}

TEST_F(LogFollowerTest, AContainerThatIsNotThereIsRefused) {
  ExpectAnswer(StatusAnswer(400, "BadRequest", "container main is not valid for pod w-0"));
  Start();
  EXPECT_THAT(sink_.Await(1), ElementsAre("Refused: log of pod ns/w-0: container main is not valid for pod w-0"));
}

TEST_F(LogFollowerTest, AQuietStreamIsKept) {
  FakeStream stream = ExpectStream();
  Start({.look_after = 10s});
  ASSERT_TRUE(stream.AwaitDrained());
  for (int looks = 0; looks < 4; ++looks) Pass(10s);
  ASSERT_TRUE(transport_.AwaitRequests(6));
  stream.Push(kLine1);
  EXPECT_THAT(sink_.Await(3), SizeIs(3));
  for (int looks = 0; looks < 4; ++looks) Pass(10s);
  ASSERT_TRUE(transport_.AwaitRequests(10));
  stream.Push(kLine2);
  EXPECT_THAT(sink_.Await(4), ElementsAre("Following", "start", Bytes(kLine1), Bytes(kLine2)));
}

TEST_F(LogFollowerTest, AStreamThatStaysQuietIsReplacedInTheEnd) {
  FakeStream quiet = ExpectStream(), next = ExpectStream();
  Start({.look_after = 10s});
  for (int looks = 0; looks < 5; ++looks) Pass(10s);
  EXPECT_TRUE(quiet.AwaitClosed());
  EXPECT_EQ(sink_.Await(3).back(), "Waiting: log of pod ns/w-0: the server went silent");
  PassBackoff();
  EXPECT_TRUE(next.AwaitOpened());
}

TEST_F(LogFollowerTest, OfAContainerThatHasEndedAQuietStreamIsReplacedAtOnce) {
  SetPhase("Succeeded");
  FakeStream quiet = ExpectStream();
  Start({.look_after = 10s});
  Pass(10s);
  EXPECT_EQ(sink_.Await(3).back(), "Waiting: log of pod ns/w-0: the server went silent");
}

TEST_F(LogFollowerTest, LeavesAStreamThatDoesNotEndWithItsContainer) {
  FakeStream stuck = ExpectStream();
  Start({.look_after = 10s});
  stuck.Push(kLine1);
  EXPECT_THAT(sink_.Await(3), SizeIs(3));
  SetPhase("Succeeded");
  ExpectBody(kLine1);
  Pass(10s);
  EXPECT_EQ(sink_.Await(6).back(), "Ended: the container has ended");
}

TEST_F(LogFollowerTest, AContainerThatHasWrittenNothingIsFollowed) {
  transport_.ExpectHang("GET", kLog);
  FakeStream next = ExpectStream();
  Start({.look_after = 10s});
  Pass(10s);
  ASSERT_TRUE(next.AwaitOpened());
  next.Push(kLine1);
  EXPECT_THAT(sink_.Await(3), ElementsAre("Following", "start", Bytes(kLine1)));
}

TEST_F(LogFollowerTest, LinesThatComeAgainDoNotShortenTheBackoff) {
  for (int i = 0; i < 3; ++i) ExpectBody(kLine1);
  Start();
  Pass(1600ms);
  EXPECT_THAT(sink_.Await(5), SizeIs(5));
  Pass(1600ms);  // The second delay is 1.6 to 3.2 s.
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_THAT(Asked(), SizeIs(2));
  Pass(1600ms);
  EXPECT_THAT(sink_.Await(7), SizeIs(7));
}

TEST_F(LogFollowerTest, WaitsAsLongAsTheServerAsks) {
  HttpResponse busy = StatusAnswer(429, "TooManyRequests", "too many requests");
  busy.headers.emplace_back("retry-after", "20");
  ExpectAnswer(std::move(busy));
  FakeStream next = ExpectStream();
  Start();
  Pass(19s);
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_THAT(Asked(), SizeIs(1));
  Pass(1s);
  EXPECT_TRUE(next.AwaitOpened());
}

TEST_F(LogFollowerTest, TheOneThatTakesItsPlaceWaitsAsLongAsTheServerAsked) {
  HttpResponse busy = StatusAnswer(429, "TooManyRequests", "too many requests");
  busy.headers.emplace_back("retry-after", "20");
  ExpectAnswer(std::move(busy));
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  const TimePoint busy_until = follower_->busy_until();
  EXPECT_EQ(busy_until, clock_.Now() + 20s);
  const std::size_t asked = transport_.requests().size();

  FakeStream next = ExpectStream();
  Start({.not_before = busy_until});
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_EQ(follower_->busy_until(), busy_until);
  EXPECT_THAT(transport_.requests(), SizeIs(asked));
  Pass(20s);
  EXPECT_TRUE(next.AwaitOpened());
}

TEST_F(LogFollowerTest, StopsInTheMiddleOfAnything) {
  {
    FakeStream stream = ExpectStream();
    Start();
    ASSERT_TRUE(stream.AwaitDrained());
    follower_.reset();
    EXPECT_TRUE(stream.AwaitClosed());
  }
  transport_.ExpectHang("GET", kLog);
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  follower_.reset();
  ExpectAnswer(StatusAnswer(500, "", "in its backoff"));
  Start();
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  follower_->RequestStop();
  follower_.reset();
}

}  // namespace
}  // namespace kube::testing
