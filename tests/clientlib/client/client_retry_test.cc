// SPDX-License-Identifier: Apache-2.0
// What the client tries again, and what it leaves to its caller.
#include "tests/clientlib/client/client_fixture.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Error ConnectionLost() {
  return Error(ErrorCode::kUnavailable, "connection reset").with_http(0, std::string(kConnectionLost));
}

TEST_F(ClientTest, H1WaitsAsLongAsTheServerAsks) {
  transport_.Expect("GET", "/", ComeBackAnswer(429, "1"));
  transport_.Expect("GET", "/", MapAnswer());
  auto got = Async([this] { return client().Get(kMaps, {"team-a", "a"}); });

  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(999ms);
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  EXPECT_THAT(transport_.requests(), SizeIs(1));
  clock_.Advance(1ms);

  EXPECT_TRUE(got.get());
  EXPECT_THAT(transport_.requests(), SizeIs(2));
}

TEST_F(ClientTest, H1WritesAreRepeatedWithTheirBodyToo) {
  transport_.Expect("POST", "/", ComeBackAnswer(503, "1"));
  transport_.Expect("POST", "/", JsonAnswer(201, std::string(kMapText)));
  auto created = Async([this] {
    return client().Create(kMaps, "team-a", Json::MakeObject({{"data", Json::MakeObject()}}));
  });
  ASSERT_TRUE(clock_.AwaitWaiters(1));

  clock_.Advance(1s);

  EXPECT_TRUE(created.get());
  const std::vector<HttpRequest> requests = transport_.requests();
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_EQ(requests[1].target, requests[0].target);
  EXPECT_EQ(requests[1].body, R"({"data":{}})");
  EXPECT_EQ(requests[1].headers, requests[0].headers);  // Nothing is there twice.
}

TEST_F(ClientTest, H2ALongWaitIsLeftToTheWorkQueue) {
  transport_.Expect("GET", "/", ComeBackAnswer(429, "2"));
  Result<std::shared_ptr<Object>> got = client().Get(kMaps, {"team-a", "a"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().retry_after(), 2s);
  EXPECT_THAT(transport_.requests(), SizeIs(1));
}

// Whichever part of the program asks: two of them may want the same.
TEST_F(ClientTest, H2WhatIsPostponedIsSentByNobodyBefore) {
  Client& one = client();
  transport_.Expect("GET", "/", ComeBackAnswer(429, "20"));
  ASSERT_FALSE(one.Get(kMaps, {"team-a", "a"}));
  clock_.Advance(8s);
  Result<std::shared_ptr<Object>> early = one.Get(kMaps, {"team-a", "a"});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().retry_after(), 12s);
  EXPECT_THAT(transport_.requests(), SizeIs(1));

  transport_.Expect("GET", "/", MapAnswer());
  EXPECT_TRUE(one.Get(kMaps, {"team-a", "b"})) << "another object";
  clock_.Advance(12s);
  transport_.Expect("GET", "/", MapAnswer());
  EXPECT_TRUE(one.Get(kMaps, {"team-a", "a"}));
}

TEST_F(ClientTest, H2AStopEndsTheWait) {
  transport_.Expect("GET", "/", ComeBackAnswer(429, "1"));
  std::stop_source stop;
  auto got = Async([&] { return client().Get(kMaps, {"team-a", "a"}, stop.get_token()); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));

  stop.request_stop();

  Result<std::shared_ptr<Object>> result = got.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kCancelled);
}

TEST_F(ClientTest, H1AGetIsRepeatedWhenItsConnectionBreaks) {
  transport_.Expect("GET", "/", ConnectionLost());
  transport_.Expect("GET", "/", MapAnswer());
  auto got = Async([this] { return client().Get(kMaps, {"team-a", "a"}); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(50ms);
  EXPECT_TRUE(got.get());
}

TEST_F(ClientTest, H1AWriteIsNotRepeatedWhenItsConnectionBreaks) {
  transport_.Handle("POST", "/", [](auto&, auto&) { return ConnectionLost(); });
  transport_.Handle("PATCH", "/", [](auto&, auto&) { return ConnectionLost(); });
  transport_.Handle("DELETE", "/", [](auto&, auto&) { return ConnectionLost(); });
  EXPECT_FALSE(client().Create(kMaps, "team-a", Json::MakeObject()));
  EXPECT_FALSE(client().Apply(kMaps, {"team-a", "a"}, Json::MakeObject()));
  EXPECT_FALSE(client().Patch(kMaps, {"team-a", "a"}, PatchType::kMerge, Json::MakeObject()));
  EXPECT_FALSE(client().Delete(kMaps, {"team-a", "a"}));
  EXPECT_THAT(transport_.requests(), SizeIs(4));
}

TEST_F(ClientTest, H1AServerThatCannotBeReachedIsTheCallersMatter) {
  transport_.Expect("GET", "/", Error(ErrorCode::kUnavailable, "connection refused"));
  Result<std::shared_ptr<Object>> got = client().Get(kMaps, {"team-a", "a"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(transport_.requests(), SizeIs(1));
}

TEST_F(ClientTest, H3TheErrorOfARetryCarriesTheEarlierOne) {
  transport_.Expect("GET", "/", ComeBackAnswer(429, "1"));
  transport_.Expect("GET", "/", Error(ErrorCode::kUnavailable, "connection refused"));
  auto got = Async([this] { return client().Get(kMaps, {"team-a", "a"}); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(1s);

  Result<std::shared_ptr<Object>> result = got.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(result.error().message(), HasSubstr("too many requests"));
  EXPECT_THAT(result.error().message(), HasSubstr("connection refused"));
}

TEST_F(ClientTest, A1ARefusedTokenIsRenewedOnce) {
  clock_.Advance(5s);
  transport_.Expect("GET", "/", StatusAnswer(401, "Unauthorized", "token expired"));
  transport_.Expect("GET", "/", MapAnswer());

  ASSERT_TRUE(client().Get(kMaps, {"team-a", "a"}));

  EXPECT_THAT(tokens_.refused_, ElementsAre(FakeClock::kStart + 5s));
  EXPECT_THAT(LastHeader("Authorization"), ElementsAre("Bearer token-1"));
}

TEST_F(ClientTest, A1ATokenThatIsRefusedAgainIsAnError) {
  transport_.Handle("GET", "/", [](auto&, auto&) { return StatusAnswer(401, "Unauthorized", "no"); });
  Result<std::shared_ptr<Object>> got = client().Get(kMaps, {"team-a", "a"});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kUnauthorized);
  EXPECT_THAT(transport_.requests(), SizeIs(2));
}

TEST_F(ClientTest, A1ATokenMayExpireBetweenTwoTries) {
  transport_.Expect("GET", "/", ComeBackAnswer(429, "1"));
  transport_.Expect("GET", "/", StatusAnswer(401, "Unauthorized", "token expired"));
  transport_.Expect("GET", "/", MapAnswer());
  auto got = Async([this] { return client().Get(kMaps, {"team-a", "a"}); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(1s);
  EXPECT_TRUE(got.get());
}

TEST_F(ClientTest, A1WithoutTokensA401IsReturnedAtOnce) {
  Client bare(transport_, nullptr, clock_);
  transport_.Expect("GET", "/", StatusAnswer(401, "Unauthorized", "no"));
  EXPECT_FALSE(bare.Get(kMaps, {"team-a", "a"}));
  EXPECT_THAT(transport_.requests(), SizeIs(1));
}

TEST_F(ClientTest, A1AWatchThatIsRefusedAsUnauthorizedRenewsTheToken) {
  transport_.Expect("GET", "/", StatusAnswer(401, "Unauthorized", "token expired"));
  EXPECT_FALSE(client().Watch(kMaps, "", {}));
  EXPECT_THAT(tokens_.refused_, SizeIs(1));
  transport_.ExpectStream("/");
  EXPECT_TRUE(client().Watch(kMaps, "", {}));
  EXPECT_THAT(LastHeader("Authorization"), ElementsAre("Bearer token-1"));
}

}  // namespace
}  // namespace kube::testing
