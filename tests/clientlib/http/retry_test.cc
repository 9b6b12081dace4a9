// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/retry.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

using namespace std::chrono_literals;

// Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples.
const WallTime kNow = WallTime(std::chrono::seconds(784'111'777));

Result<HttpResponse> Answer(int status, const std::string& retry_after = {}) {
  HttpResponse response;
  response.status = status;
  if (!retry_after.empty()) response.headers = {{"retry-after", retry_after}};
  return response;
}

TEST(ParseRetryAfter, TakesSecondsAndDates) {
  struct Case {
    const char* value;
    std::optional<Duration> want;
  };
  for (const Case& c :
       {Case{"0", 0s}, Case{"7", 7s}, Case{"Sun, 06 Nov 1994 08:49:47 GMT", 10s},
        Case{"Sun, 06 Nov 1994 08:49:37 GMT", 0s}, Case{"Sat, 01 Jan 1994 00:00:00 GMT", 0s},
        Case{"Mon, 01 Jan 0001 00:00:00 GMT", 0s}, Case{"99999999999999999999", 24h},
        Case{"Fri, 31 Dec 9999 23:59:59 GMT", 24h}, Case{"", std::nullopt}, Case{"-1", std::nullopt},
        Case{"1.5", std::nullopt}, Case{"soon", std::nullopt}, Case{"Sun, 31 Feb 1994 08:49:37 GMT", std::nullopt},
        Case{"Sun, 06 Nov 1994 25:49:37 GMT", std::nullopt}, Case{"Sun, 06 Nov 1994 08:49:37 CET", std::nullopt},
        Case{"Sun, 06 XXX 1994 08:49:37 GMT", std::nullopt}}) {
    EXPECT_EQ(ParseRetryAfter(c.value, kNow), c.want) << c.value;
  }
}

TEST(RetryDelay, H1WaitsTheLongerOfHeaderAndBackoff) {
  EXPECT_EQ(RetryDelay("POST", Answer(429, "3"), 1, 1s, kNow), 3s);
  EXPECT_EQ(RetryDelay("POST", Answer(503, "3"), 1, 8s, kNow), 8s);
  EXPECT_EQ(RetryDelay("GET", Answer(500, "0"), 1, 1s, kNow), 1s);
}

TEST(RetryDelay, H1WithoutTheHeaderTheAnswerStands) {
  EXPECT_EQ(RetryDelay("GET", Answer(429), 1, 1s, kNow), std::nullopt);
  EXPECT_EQ(RetryDelay("GET", Answer(503), 1, 1s, kNow), std::nullopt);
  EXPECT_EQ(RetryDelay("GET", Answer(503, "soon"), 1, 1s, kNow), std::nullopt);
}

TEST(RetryDelay, OtherAnswersStand) {
  for (const int status : {200, 201, 301, 400, 401, 404, 409, 410, 422}) {
    EXPECT_EQ(RetryDelay("GET", Answer(status, "1"), 1, 1s, kNow), std::nullopt) << status;
  }
}

TEST(RetryDelay, H1EndsWithTheTenthTry) {
  EXPECT_EQ(RetryDelay("GET", Answer(429, "1"), 9, 1s, kNow), 1s);
  EXPECT_EQ(RetryDelay("GET", Answer(429, "1"), 10, 1s, kNow), std::nullopt);
}

TEST(RetryDelay, H1OnlyReadsAreRepeatedAfterABrokenConnection) {
  const Result<HttpResponse> lost =
      Error(ErrorCode::kUnavailable, "connection broke").with_http(0, std::string(kConnectionLost));
  const Result<HttpResponse> refused = Error(ErrorCode::kUnavailable, "connection refused");

  EXPECT_EQ(RetryDelay("GET", lost, 1, 1s, kNow), 1s);
  EXPECT_EQ(RetryDelay("HEAD", lost, 1, 1s, kNow), 1s);
  for (const char* write : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_EQ(RetryDelay(write, lost, 1, 1s, kNow), std::nullopt) << write;
  }
  EXPECT_EQ(RetryDelay("GET", refused, 1, 1s, kNow), std::nullopt);
}

}  // namespace
}  // namespace kube
