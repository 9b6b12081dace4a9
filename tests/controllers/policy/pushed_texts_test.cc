// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pushed_texts.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

TEST(PushedTexts, AreReadByName) {
  kube::ObjectMeta object;
  object.annotations = {{kStepAnnotation, "40"},
                        {kTotalStepsAnnotation, "400"},
                        {kEpochAnnotation, "1"},
                        {kTotalEpochsAnnotation, "10"},
                        {"example.com/step", "7"}};
  EXPECT_EQ(PushedTextsOf(object), (PushedTexts{"40", "400", "1", "10"}));
  object.annotations.erase(kStepAnnotation);
  EXPECT_TRUE(PushedTextsOf(object).HasPosition());
  object.annotations.erase(kEpochAnnotation);
  EXPECT_FALSE(PushedTextsOf(object).HasPosition());
}

TEST(PushedTexts, OfALongTextSoMuchIsKeptThatItIsKnownAsOne) {
  kube::ObjectMeta object;
  object.annotations = {{kStepAnnotation, std::string(100'000, '1')}};
  EXPECT_EQ(PushedTextsOf(object).step.size(), kLongestPush + 1);
}

TEST(PushedTexts, OtherAnnotationsAreAnotherDifference) {
  const kube::StringMap plain = {{"a", "1"}}, pushed = {{"a", "1"}, {kStepAnnotation, "40"}};
  const kube::StringMap further = {{"a", "1"}, {kStepAnnotation, "41"}, {kTotalStepsAnnotation, "400"}};
  const kube::StringMap other = {{"a", "2"}, {kStepAnnotation, "40"}};
  EXPECT_TRUE(DifferOnlyInPush(plain, plain));
  EXPECT_TRUE(DifferOnlyInPush(plain, pushed));
  EXPECT_TRUE(DifferOnlyInPush(further, pushed));
  EXPECT_FALSE(DifferOnlyInPush(pushed, other));
  EXPECT_FALSE(DifferOnlyInPush(plain, {{"a", "2"}}));
}

}  // namespace
}  // namespace grus
