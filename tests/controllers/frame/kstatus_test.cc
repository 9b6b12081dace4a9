// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/kstatus.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

using namespace std::chrono_literals;

const kube::Time kEarly{kube::WallTime(1000s)}, kLate{kube::WallTime(2000s)};

class KstatusTest : public ::testing::Test {
 protected:
  Kstatus At(const kube::Time& now) { return Kstatus(conditions_, 7, now); }
  const kube::Condition& Find(std::string_view type) const { return *kube::FindCondition(conditions_, type); }
  std::string StatusOf(std::string_view type) const {
    const kube::Condition* condition = kube::FindCondition(conditions_, type);
    return condition ? condition->status : "";
  }

  std::vector<kube::Condition> conditions_;
};

TEST_F(KstatusTest, OneOfThreeIsTrueAtMost) {
  struct Case {
    Standing standing;
    const char *ready, *reconciling, *stalled, *suspended;
  };
  const Case kCases[] = {
      {Standing::kReady, "True", "False", "False", ""},      {Standing::kReconciling, "False", "True", "False", ""},
      {Standing::kStalled, "False", "False", "True", ""},    {Standing::kNotWanted, "False", "False", "False", ""},
      {Standing::kUnknown, "Unknown", "False", "False", ""}, {Standing::kSuspended, "False", "False", "False", "True"},
  };
  for (const Case& c : kCases) {
    conditions_.clear();
    At(kEarly).Say(c.standing, "Why", "a sentence");
    EXPECT_EQ(StatusOf("Ready"), c.ready);
    EXPECT_EQ(StatusOf("Reconciling"), c.reconciling);
    EXPECT_EQ(StatusOf("Stalled"), c.stalled);
    EXPECT_EQ(StatusOf("Suspended"), c.suspended);
    EXPECT_EQ(Find("Ready").message, "a sentence");
    EXPECT_EQ(Find("Reconciling").message, c.standing == Standing::kReconciling ? "a sentence" : "");
    EXPECT_EQ(Find("Ready").observed_generation, 7);
  }
}

TEST_F(KstatusTest, WhatIsSaidAgainKeepsItsTime) {
  for (const Standing standing : {Standing::kReady, Standing::kUnknown, Standing::kSuspended}) {
    conditions_.clear();
    At(kEarly).Say(standing, "Why", "a sentence");
    const std::vector<kube::Condition> before = conditions_;
    At(kLate).Say(standing, "Why", "a sentence");
    EXPECT_EQ(conditions_, before);
  }
}

TEST_F(KstatusTest, OnlyWhatWasSuspendedIsResumed) {
  At(kEarly).SayResumed();
  EXPECT_EQ(StatusOf("Suspended"), "");
  At(kEarly).Say(Standing::kSuspended, "Suspended", "by you");
  At(kLate).SayResumed();
  EXPECT_EQ(StatusOf("Suspended"), "False");
  EXPECT_EQ(Find("Suspended").reason, "Resumed");
}

}  // namespace
}  // namespace grus
