// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/condition.h"

#include <gtest/gtest.h>

#include "clientlib/model/json_reader.h"
#include "clientlib/model/json_writer.h"

namespace kube {
namespace {

const WallTime kStart = WallTime(std::chrono::seconds(1'000'000));
const WallTime kLater = kStart + std::chrono::minutes(5);

std::vector<Condition> Ready(std::string status) {
  std::vector<Condition> conditions;
  EXPECT_TRUE(SetCondition(conditions,
                           {.type = "Ready", .status = std::move(status), .reason = "Started", .message = ""}, kStart));
  return conditions;
}

TEST(SetCondition, TheSameAgainChangesNothing) {
  std::vector<Condition> conditions = Ready("True");
  EXPECT_FALSE(
      SetCondition(conditions, {.type = "Ready", .status = "True", .reason = "Started", .message = ""}, kLater));
  EXPECT_EQ(conditions.at(0).last_transition_time.value, kStart);
}

TEST(SetCondition, AnotherReasonKeepsTheTransitionTime) {
  std::vector<Condition> conditions = Ready("True");
  EXPECT_TRUE(
      SetCondition(conditions, {.type = "Ready", .status = "True", .reason = "Resized", .message = ""}, kLater));
  EXPECT_EQ(conditions.at(0).reason, "Resized");
  EXPECT_EQ(conditions.at(0).last_transition_time.value, kStart);
}

TEST(SetCondition, AnotherStatusSetsTheTransitionTime) {
  std::vector<Condition> conditions = Ready("True");
  EXPECT_TRUE(SetCondition(conditions, {.type = "Ready", .status = "False", .reason = "Lost", .message = ""}, kLater));
  EXPECT_EQ(conditions.at(0).last_transition_time.value, kLater);
  EXPECT_EQ(conditions.size(), 1u);
}

TEST(SetCondition, TimeIsKeptInWholeSecondsAsTheServerDoes) {
  std::vector<Condition> conditions;
  SetCondition(conditions, {.type = "A", .status = "True", .reason = "R", .message = ""},
               kStart + std::chrono::milliseconds(900));
  const Result<Condition> again = ReadText<Condition>(WriteText(conditions.at(0)));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, conditions.at(0));
}

TEST(FindCondition, FindsByType) {
  std::vector<Condition> conditions = Ready("False");
  EXPECT_NE(FindCondition(conditions, "Ready"), nullptr);
  EXPECT_EQ(FindCondition(conditions, "Failed"), nullptr);
  EXPECT_FALSE(IsConditionTrue(conditions, "Ready"));
  EXPECT_TRUE(RemoveCondition(conditions, "Ready"));
  EXPECT_FALSE(RemoveCondition(conditions, "Ready"));
}

}  // namespace
}  // namespace kube
