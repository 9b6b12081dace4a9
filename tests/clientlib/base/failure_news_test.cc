// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/failure_news.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

using namespace std::chrono_literals;

TEST(FailureNews, EachKindOfFailureIsToldOnceAMinute) {
  FailureNews news;
  const TimePoint start{};
  const Error refused(ErrorCode::kUnavailable, "refused after 0 ms"),
      again(ErrorCode::kUnavailable, "refused after 3 ms");
  const Error distrusted = Error(ErrorCode::kUnavailable, "the certificate is not trusted").as_terminal();
  const Error busy = Error(ErrorCode::kUnavailable, "busy").with_http(503, "");
  EXPECT_TRUE(news.IsNews(refused, start));
  EXPECT_TRUE(news.IsNews(distrusted, start + 1s));
  EXPECT_TRUE(news.IsNews(busy, start + 2s));
  EXPECT_FALSE(news.IsNews(again, start + 3s));
  EXPECT_FALSE(news.IsNews(busy, start + 59s));
  EXPECT_TRUE(news.IsNews(again, start + 60s));
  EXPECT_FALSE(news.IsNews(refused, start + 119s));
}

TEST(FailureNews, OnceItWorkedAFailureIsNew) {
  FailureNews news;
  const Error refused(ErrorCode::kUnavailable, "refused");
  EXPECT_TRUE(news.IsNews(refused, {}));
  news.Reset();
  EXPECT_TRUE(news.IsNews(refused, TimePoint{} + 1s));
}

}  // namespace
}  // namespace kube
