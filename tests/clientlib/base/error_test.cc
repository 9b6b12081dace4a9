// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/error.h"

#include <gtest/gtest.h>

#include <set>

namespace kube {
namespace {

TEST(Error, ContextIsAddedOutermostFirst) {
  const Error error = Error(ErrorCode::kConflict, "field is owned").with("StatefulSet a/b").with("apply");
  EXPECT_EQ(error.message(), "apply: StatefulSet a/b: field is owned");
}

TEST(Error, ContextKeepsEverythingElse) {
  const Error error = Error(ErrorCode::kTooManyRequests, "slow down")
                          .with_http(429, "TooManyRequests")
                          .with_retry_after(std::chrono::seconds(3))
                          .as_terminal()
                          .with("list pods");
  EXPECT_EQ(error.code(), ErrorCode::kTooManyRequests);
  EXPECT_EQ(error.http_status(), 429);
  EXPECT_EQ(error.reason(), "TooManyRequests");
  EXPECT_EQ(error.retry_after(), std::chrono::seconds(3));
  EXPECT_TRUE(error.is_terminal());
}

TEST(Error, IsRetryableUnlessSaidOtherwise) {
  const Error error(ErrorCode::kInternal, "odd");
  EXPECT_FALSE(error.is_terminal());
  EXPECT_EQ(error.http_status(), 0);
  EXPECT_FALSE(error.retry_after());
}

TEST(Error, EachCodeHasAName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    const std::string_view name = ToString(static_cast<ErrorCode>(code));
    EXPECT_NE(name, "Unknown") << code;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace kube
