// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/pod_log.h"

#include "tests/clientlib/client/client_fixture.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;

class PodLogTest : public ClientTest {
 protected:
  Result<std::unique_ptr<ByteStream>> Open(const PodLogOptions& options = {}) {
    return client().PodLog({"team-a", "train-0"}, options);
  }
  // The error that the answer becomes.
  Error Refused(HttpResponse answer) {
    transport_.Expect("GET", "/", std::move(answer));
    Result<std::unique_ptr<ByteStream>> stream = Open();
    return stream ? Error(ErrorCode::kInternal, "it was opened") : std::move(stream).error();
  }
};

TEST_F(PodLogTest, AsksForTheWholeLogUnlessToldOtherwise) {
  transport_.ExpectStream("/");
  ASSERT_TRUE(Open());
  EXPECT_EQ(Last().method, "GET");
  EXPECT_EQ(Last().target, "/api/v1/namespaces/team-a/pods/train-0/log");
  EXPECT_EQ(Last().pool, HttpPool::kWatch);
  EXPECT_EQ(Last().timeout, 30s);
  EXPECT_THAT(LastHeader("Authorization"), ElementsAre("Bearer token-0"));
}

TEST_F(PodLogTest, AsksForWhatItIsTold) {
  transport_.ExpectStream("/");
  const Result<Time> since = ParseTime("2026-01-02T03:04:05.999999999Z");
  ASSERT_TRUE(since);
  ASSERT_TRUE(Open({.container = "main",
                    .follow = true,
                    .timestamps = true,
                    .since = *since,
                    .tail_lines = 0,
                    .limit_bytes = 1048576,
                    .timeout = 90s}));
  EXPECT_EQ(Last().target,
            "/api/v1/namespaces/team-a/pods/train-0/log?container=main&follow=true&timestamps=true&"
            "sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=0&limitBytes=1048576");
  EXPECT_EQ(Last().timeout, 90s);
}

TEST_F(PodLogTest, GivesTheBytesAsTheyAre) {
  transport_.Expect("GET", "/", HttpResponse{200, {{"content-type", "text/plain"}}, "{\xff\n"});
  Result<std::unique_ptr<ByteStream>> stream = Open();
  ASSERT_TRUE(stream);
  Result<std::string> bytes = (*stream)->Read(clock_.Now() + 1s, {});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "{\xff\n");
}

TEST_F(PodLogTest, AnErrorNamesThePodAndKeepsTheServersWords) {
  const Error error = Refused(StatusAnswer(403, "Forbidden", "cannot get resource \"pods/log\""));
  EXPECT_EQ(error.code(), ErrorCode::kForbidden);
  EXPECT_EQ(error.message(), "log of pod team-a/train-0: cannot get resource \"pods/log\"");
}

TEST_F(PodLogTest, AnEmptyAnswerMeansThatThePodHasNoNode) {
  const Error error = Refused(HttpResponse{204, {}, ""});
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "log of pod team-a/train-0: the pod has no node yet");
  EXPECT_TRUE(IsWaitingToStart(error));
}

TEST_F(PodLogTest, OnlyTheKubeletsWordsForWaitingAreWaiting) {
  struct Case {
    int status;
    std::string message;
    bool waits;
  };
  const Case cases[] = {
      {400, "container \"main\" in pod \"train-0\" is waiting to start: ContainerCreating", true},
      {400, "container \"main\" in pod \"train-0\" is waiting to start - no logs yet", true},
      {400, "container \"main\" in pod \"train-0\" is not available", true},
      {400, "container none is not valid for pod train-0", false},
      {404, "pods \"train-0\" not found", false},
      {500, "Internal error: the node is waiting to start", false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(IsWaitingToStart(Refused(StatusAnswer(c.status, "", c.message))), c.waits) << c.message;
  }
}

TEST_F(PodLogTest, ARefusedTokenIsReplacedForTheNextCaller) {
  transport_.Expect("GET", "/", StatusAnswer(401, "Unauthorized", "Unauthorized"));
  ASSERT_FALSE(Open());
  EXPECT_EQ(transport_.requests().size(), 1U);
  EXPECT_EQ(tokens_.refused_.size(), 1U);
}

TEST_F(PodLogTest, IsNotTriedAgain) {
  transport_.Expect("GET", "/", ComeBackAnswer(503, "1"));
  ASSERT_FALSE(Open());
  EXPECT_EQ(transport_.requests().size(), 1U);
}

TEST_F(PodLogTest, AStopEndsTheWaitForTheFirstByte) {
  transport_.ExpectHang("GET", "/");
  std::stop_source stop;
  auto opened = Async([&] { return client().PodLog({"team-a", "train-0"}, {}, stop.get_token()); });
  ASSERT_TRUE(transport_.AwaitRequests(1));
  stop.request_stop();
  const auto stream = opened.get();
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code(), ErrorCode::kCancelled);
}

TEST_F(PodLogTest, TheObserverIsToldOfIt) {
  transport_.ExpectStream("/");
  ASSERT_TRUE(Open());
  EXPECT_THAT(observer_.seen_, ElementsAre("log pods 200"));
}

}  // namespace
}  // namespace kube::testing
