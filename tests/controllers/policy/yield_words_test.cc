// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/yield_words.h"

#include <gtest/gtest.h>

#include "controllers/policy/job_class.h"

namespace grus {
namespace {

TEST(YieldText, SaysWhoGetsWhatAndWhy) {
  const auto text = [](YieldReason reason, std::string for_owner) {
    return YieldText("gives", "8 GPUs", {.reason = reason, .for_owner = std::move(for_owner), .by = 0});
  };
  EXPECT_EQ(text(YieldReason::kGuaranteeOfOther, "b/bert"),
            "gives 8 GPUs to b/bert, whose queue is below its guarantee");
  EXPECT_EQ(text(YieldReason::kShareOfOther, "b/bert"), "gives 8 GPUs to b/bert, whose queue is below its fair share");
  EXPECT_EQ(text(YieldReason::kOwnQueue, "b/bert"), "gives 8 GPUs to b/bert, which comes before it in their queue");
  EXPECT_EQ(text(YieldReason::kWorthMore, "b/bert"), "gives 8 GPUs to b/bert, which gains more by them");
  EXPECT_EQ(text(YieldReason::kDrained, ""), "gives 8 GPUs back, because its queue is being drained");
}

TEST(JobClassOf, ALabelIsAClassOfItsNameOrNone) {
  EXPECT_EQ(JobClassOf(std::string_view()), JobClass::kUnattended);
  EXPECT_EQ(JobClassOf(std::string_view("Unattended")), JobClass::kUnattended);
  EXPECT_EQ(JobClassOf(std::string_view("Interactive")), JobClass::kInteractive);
  EXPECT_EQ(JobClassOf(std::string_view("Inference")), JobClass::kInference);
  EXPECT_FALSE(JobClassOf(std::string_view("interactive")));
}

}  // namespace
}  // namespace grus
