// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace kube {
namespace {

Error NotThere() { return Error(ErrorCode::kNotFound, "not there"); }

TEST(Result, HoldsAValue) {
  Result<std::string> result = std::string("value");
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(*result, "value");
  EXPECT_EQ(result->size(), 5u);
}

TEST(Result, HoldsAnError) {
  const Result<std::string> result = NotThere();
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error(), NotThere());
}

TEST(Result, MovesItsValueOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 7);
}

TEST(Result, MovesItsErrorOutWithContext) {
  Result<int> result = NotThere();
  const Error error = std::move(result).error().with("read workers");
  EXPECT_EQ(error.message(), "read workers: not there");
}

TEST(Result, AValueMayItselfBeFalse) {
  const Result<bool> result = false;
  ASSERT_TRUE(result);
  EXPECT_FALSE(*result);
}

TEST(Status, IsFineUnlessItHoldsAnError) {
  EXPECT_TRUE(Status().ok());
  const Status failed = NotThere();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kNotFound);
}

TEST(Result, OfTwoFailuresTheFirstStaysAndWaitsAsLongAsEitherWasAskedTo) {
  using std::chrono::seconds;
  const auto busy = [](int wait) {
    return Status(Error(ErrorCode::kTooManyRequests, "busy").with_retry_after(seconds(wait)));
  };
  const Status lost = Error(ErrorCode::kUnavailable, "lost");
  EXPECT_TRUE(FirstFailure(Status(), Status()).ok());
  EXPECT_EQ(FirstFailure(Status(), lost).error(), lost.error());
  EXPECT_EQ(FirstFailure(lost, Status()).error(), lost.error());
  EXPECT_EQ(FirstFailure(lost, busy(7)).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(FirstFailure(lost, busy(7)).error().retry_after(), seconds(7));
  EXPECT_EQ(FirstFailure(busy(9), busy(7)).error().retry_after(), seconds(9));
  EXPECT_EQ(FirstFailure(busy(9), lost).error().retry_after(), seconds(9));
}

#ifndef NDEBUG
TEST(ResultDeathTest, ReadingAnErrorAsAValueIsOurBug) {
  Result<int> result = NotThere();
  EXPECT_DEATH(static_cast<void>(*result), "read as what it is not");
}
#endif

}  // namespace
}  // namespace kube
