// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/api_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/model/utf8.h"

namespace kube {
namespace {

using namespace std::chrono_literals;

Error ErrorOf(int status, std::string body, std::vector<std::pair<std::string, std::string>> headers = {}) {
  return ErrorFromResponse({status, std::move(headers), std::move(body)}, WallTime(std::chrono::hours(24)));
}

std::string StatusText(int code, std::string_view reason) {
  return R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"x\" said no","reason":")" +
         std::string(reason) + R"(","details":{"name":"x"},"code":)" + std::to_string(code) + "}";
}

TEST(ApiStatus, EachStatusHasItsCode) {
  struct Case {
    int http;
    std::string_view reason;
    ErrorCode want;
  };
  for (const Case& c :
       {Case{400, "BadRequest", ErrorCode::kInvalidArgument}, Case{400, "Expired", ErrorCode::kGone},
        Case{401, "Unauthorized", ErrorCode::kUnauthorized}, Case{403, "Forbidden", ErrorCode::kForbidden},
        Case{404, "NotFound", ErrorCode::kNotFound}, Case{405, "MethodNotAllowed", ErrorCode::kInternal},
        Case{409, "AlreadyExists", ErrorCode::kAlreadyExists}, Case{409, "Conflict", ErrorCode::kConflict},
        Case{410, "Expired", ErrorCode::kGone}, Case{410, "Gone", ErrorCode::kGone},
        Case{413, "RequestEntityTooLarge", ErrorCode::kTooLarge}, Case{422, "Invalid", ErrorCode::kInvalid},
        Case{429, "TooManyRequests", ErrorCode::kTooManyRequests}, Case{500, "InternalError", ErrorCode::kUnavailable},
        Case{503, "ServiceUnavailable", ErrorCode::kUnavailable}, Case{504, "Timeout", ErrorCode::kTimeout},
        Case{302, "", ErrorCode::kInternal}}) {
    const Error error = ErrorOf(c.http, StatusText(c.http, c.reason));
    EXPECT_EQ(error.code(), c.want) << c.http << " " << c.reason;
    EXPECT_EQ(error.http_status(), c.http);
    EXPECT_EQ(error.reason(), c.reason);
  }
}

TEST(ApiStatus, H3TheMessageIsTheServersOwn) {
  EXPECT_EQ(ErrorOf(404, StatusText(404, "NotFound")).message(), "pods \"x\" said no");
}

TEST(ApiStatus, H3AProxysPageIsKeptOnOneLine) {
  const Error error = ErrorOf(502, "<html>\r\n<body>\n\t<h1>502  Bad Gateway</h1>\n</body>");
  EXPECT_EQ(error.message(), "server answered 502: <html> <body> <h1>502 Bad Gateway</h1> </body>");
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.reason(), "");
}

TEST(ApiStatus, H3ALongPageIsCut) {
  const Error error = ErrorOf(502, std::string(100000, 'x'));
  EXPECT_EQ(error.message(), "server answered 502: " + std::string(300, 'x'));
}

TEST(ApiStatus, H3ACutPageIsStillText) {
  std::string page = "x";
  for (int i = 0; i < 200; ++i) page += "\xC3\xA9";  // The 300th byte is half a character.
  const Error error = ErrorOf(502, page + "\xFF");
  EXPECT_TRUE(IsValidUtf8(error.message()));
  EXPECT_TRUE(IsValidUtf8(ErrorOf(502, "caf\xE9").message()));
}

TEST(ApiStatus, AnEmptyBodyLeavesTheStatus) { EXPECT_EQ(ErrorOf(503, "").message(), "server answered 503"); }

TEST(ApiStatus, JsonThatIsNoStatusIsAPage) {
  const Error error = ErrorOf(404, R"({"message":"no route","reason":"Gone"})");
  EXPECT_EQ(error.message(), R"(server answered 404: {"message":"no route","reason":"Gone"})");
  EXPECT_EQ(error.reason(), "");
}

TEST(ApiStatus, TheHttpStatusCountsMoreThanTheBodys) {
  EXPECT_EQ(ErrorOf(503, StatusText(404, "")).http_status(), 503);
}

TEST(ApiStatus, H1RetryAfterIsRead) {
  EXPECT_EQ(ErrorOf(429, StatusText(429, "TooManyRequests"), {{"retry-after", "7"}}).retry_after(), 7s);
  EXPECT_EQ(ErrorOf(503, "", {{"retry-after", "Fri, 02 Jan 1970 00:00:09 GMT"}}).retry_after(), 9s);
  EXPECT_FALSE(ErrorOf(503, "", {{"retry-after", "soon"}}).retry_after());
  EXPECT_FALSE(ErrorOf(503, "").retry_after());
}

TEST(ApiStatus, H2TheFlowSchemaThatWasShortOfRoomIsNamed) {
  HttpResponse response{.status = 429, .headers = {{"x-kubernetes-pf-flowschema-uid", "f-1"}}, .body = "too many"};
  EXPECT_EQ(ErrorFromResponse(response, {}).message(), "server answered 429: too many (flow schema f-1)");
  EXPECT_EQ(ErrorFromResponse(response, {}).code(), ErrorCode::kTooManyRequests);
  response.status = 403;
  EXPECT_EQ(ErrorFromResponse(response, {}).message(), "server answered 403: too many");
}

TEST(ApiStatus, L3AnErrorEventTakesItsCodeFromTheStatus) {
  for (const char* reason : {"Expired", "Gone"}) {
    const Error error = ErrorFromStatus(StatusText(410, reason));
    EXPECT_EQ(error.code(), ErrorCode::kGone);
    EXPECT_EQ(error.http_status(), 410);
    EXPECT_EQ(error.message(), "pods \"x\" said no");
  }
  EXPECT_EQ(ErrorFromStatus(StatusText(500, "InternalError")).code(), ErrorCode::kUnavailable);
}

TEST(ApiStatus, ACodeThatIsNoHttpStatusIsNone) {
  for (const std::int64_t code :
       {std::int64_t{-410}, std::int64_t{99}, std::int64_t{1000}, (std::int64_t{1} << 32) + 410}) {
    const Error error = ErrorFromStatus(R"({"kind":"Status","message":"no","code":)" + std::to_string(code) + "}");
    EXPECT_EQ(error.http_status(), 0) << code;
    EXPECT_EQ(error.code(), ErrorCode::kInternal) << code;
  }
}

TEST(ApiStatus, L3TheReasonAloneSaysExpiredToo) {
  for (const char* reason : {"Expired", "Gone"}) {
    const std::string text = R"({"kind":"Status","message":"too old","reason":")" + std::string(reason) + "\"}";
    EXPECT_EQ(ErrorFromStatus(text).code(), ErrorCode::kGone) << reason;
  }
}

TEST(ApiStatus, AnErrorEventThatIsNoStatusIsAnInternalError) {
  for (const char* text : {"{}", "null", "", "[1]", R"({"kind":"Pod"})", R"({"kind":"Status","code":"x"})"}) {
    const Error error = ErrorFromStatus(text);
    EXPECT_EQ(error.code(), ErrorCode::kInternal) << text;
    EXPECT_FALSE(error.message().empty());
  }
}

}  // namespace
}  // namespace kube
