// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/access_reviewer.h"

#include <gmock/gmock.h>

#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::FakeClock;
using testing::FakeTransport;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTokens[] = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr char kAccess[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

// An API server that knows the token "good", and lets its user get /metrics.
class AccessReviews : public ::testing::Test {
 protected:
  AccessReviews() {
    transport_.Handle("POST", kTokens, [this](const HttpRequest& request, auto&) -> Result<HttpResponse> {
      if (!is_up_) return Error(ErrorCode::kUnavailable, "connection refused");
      const bool is_good = request.body.find("\"good\"") != std::string::npos;
      return HttpResponse{
          201,
          {},
          is_good ? R"({"status":{"authenticated":true,"user":{"username":"prometheus","uid":"u1","groups":["a","b"],)"
                    R"("extra":{"pod":["p-0"]}}}})"
                  : R"({"status":{"authenticated":false,"error":"invalid bearer token"}})"};
    });
    transport_.Handle("POST", kAccess, [this](auto&, auto&) -> Result<HttpResponse> {
      return HttpResponse{201, {}, is_allowed_ ? R"({"status":{"allowed":true}})" : R"({"status":{"allowed":false}})"};
    });
  }

  ErrorCode Refused(std::string_view authorization) {
    const Status may = reviewer_.MayGet(authorization, "/metrics");
    EXPECT_FALSE(may);
    return may ? ErrorCode::kInternal : may.error().code();
  }
  bool MayGet(std::string_view authorization = "Bearer good") {
    return static_cast<bool>(reviewer_.MayGet(authorization, "/metrics"));
  }
  std::size_t requests() const { return transport_.requests().size(); }

  FakeClock clock_;
  FakeTransport transport_{clock_};
  Client client_{transport_, nullptr, clock_};
  AccessReviewer reviewer_{client_, clock_};
  bool is_up_ = true, is_allowed_ = true;
};

TEST_F(AccessReviews, AskWhoItIsAndThenWhetherTheyMay) {
  EXPECT_TRUE(MayGet());

  const auto sent = transport_.requests();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_THAT(sent[0].body, HasSubstr(R"("spec":{"token":"good"})"));
  EXPECT_THAT(sent[1].body, HasSubstr(R"("user":"prometheus")"));
  EXPECT_THAT(sent[1].body, HasSubstr(R"("uid":"u1")"));
  EXPECT_THAT(sent[1].body, HasSubstr(R"("groups":["a","b"])"));
  EXPECT_THAT(sent[1].body, HasSubstr(R"("extra":{"pod":["p-0"]})"));
  EXPECT_THAT(sent[1].body, HasSubstr(R"("path":"/metrics")"));
  EXPECT_THAT(sent[1].body, HasSubstr(R"("verb":"get")"));
}

TEST_F(AccessReviews, OnlyBearerTokensAreAskedAbout) {
  for (const char* header : {"", "Bearer", "Bearer ", "Basic good", "good"}) {
    EXPECT_EQ(Refused(header), ErrorCode::kUnauthorized) << header;
  }
  EXPECT_EQ(requests(), 0U);
  EXPECT_TRUE(MayGet("bearer good")) << "RFC 9110, 11.1: the scheme's case means nothing";
}

TEST_F(AccessReviews, AnUnknownTokenIsNotRepeatedInTheAnswer) {
  const Status may = reviewer_.MayGet("Bearer s3cret", "/metrics");

  ASSERT_FALSE(may);
  EXPECT_EQ(may.error().code(), ErrorCode::kUnauthorized);
  EXPECT_THAT(may.error().message(), Not(HasSubstr("s3cret")));
}

TEST_F(AccessReviews, ARefusalNamesTheUserAndTheRight) {
  is_allowed_ = false;

  const Status may = reviewer_.MayGet("Bearer good", "/metrics");

  ASSERT_FALSE(may);
  EXPECT_EQ(may.error().code(), ErrorCode::kForbidden);
  EXPECT_EQ(may.error().message(),
            "prometheus may not get /metrics: a ClusterRole with nonResourceURLs [/metrics] is needed");
}

TEST_F(AccessReviews, AnswersAreRememberedForAMinuteRefusalsForTenSeconds) {
  EXPECT_TRUE(MayGet());
  is_allowed_ = false;
  clock_.Advance(59s);
  EXPECT_TRUE(MayGet());
  EXPECT_EQ(requests(), 2U);
  clock_.Advance(1s);
  EXPECT_EQ(Refused("Bearer good"), ErrorCode::kForbidden) << "a right that was taken away ends within a minute";
  is_allowed_ = true;
  clock_.Advance(9s);
  EXPECT_EQ(Refused("Bearer good"), ErrorCode::kForbidden);
  clock_.Advance(1s);
  EXPECT_TRUE(MayGet());
}

TEST_F(AccessReviews, WhoWasAllowedStaysSoForTenMinutesWithoutTheServer) {
  EXPECT_TRUE(MayGet());
  is_up_ = false;
  clock_.Advance(599s);
  EXPECT_TRUE(MayGet());
  EXPECT_EQ(Refused("Bearer other"), ErrorCode::kUnavailable);
  clock_.Advance(1s);
  EXPECT_EQ(Refused("Bearer good"), ErrorCode::kUnavailable);
}

TEST_F(AccessReviews, StrangersMakeTenRequestsAndThenTwoASecond) {
  for (int i = 0; i < 100; ++i) Refused("Bearer stranger-" + std::to_string(i));
  EXPECT_EQ(requests(), 10U);
  EXPECT_EQ(Refused("Bearer one-more"), ErrorCode::kTooManyRequests);
  clock_.Advance(1s);
  for (int i = 0; i < 100; ++i) Refused("Bearer later-" + std::to_string(i));
  EXPECT_EQ(requests(), 12U);
}

TEST_F(AccessReviews, StrangersDoNotKeepAKnownTokenOut) {
  EXPECT_TRUE(MayGet());
  for (int i = 0; i < 1000; ++i) {
    clock_.Advance(500ms);
    Refused("Bearer stranger-" + std::to_string(i));
    Refused("Bearer another-" + std::to_string(i));
    EXPECT_TRUE(MayGet()) << i;
  }
}

TEST_F(AccessReviews, AServerThatForbidsTheReviewIsNoRefusalOfTheSender) {
  FakeTransport transport(clock_);
  transport.Handle("POST", kTokens, [](auto&, auto&) -> Result<HttpResponse> {
    return HttpResponse{403, {}, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no right"})"};
  });
  Client client(transport, nullptr, clock_);
  AccessReviewer reviewer(client, clock_);

  const Status may = reviewer.MayGet("Bearer good", "/metrics");

  ASSERT_FALSE(may);
  EXPECT_EQ(may.error().code(), ErrorCode::kUnavailable);
  EXPECT_THAT(may.error().message(), HasSubstr("create tokenreviews"));
}

}  // namespace
}  // namespace kube
