// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/share_use.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

class ShareUseTest : public ::testing::Test {
 protected:
  // The account, of processes by their numbers in the container.
  void Account(const std::vector<std::pair<int, std::uint64_t>>& processes) {
    account_.clear();
    std::uint64_t sum = 0;
    for (const auto& [pid, bytes] : processes) {
      account_.push_back({.pid = pid, .started = 1, .memory_bytes = {bytes}});
      sum += bytes;
    }
    use_.NoteMemory(sum);
  }
  void Look(const std::vector<DriverProcess>& processes, int times = 1) {
    for (int i = 0; i < times; ++i) use_.NoteLook(processes, account_, now_ += seconds(1));
  }

  std::vector<AccountCopy::Process> account_;
  ShareUse use_{0};
  kube::TimePoint now_;
};

TEST_F(ShareUseTest, BesideIsWhatTheDriverSaysMoreThanTheAccount) {
  Account({{1, 2 * kGiB}});
  Look({{{100, 1}, 2 * kGiB + 400 * kMiB}}, 3);
  EXPECT_EQ(use_.beside_bytes(), 400 * kMiB);

  Look({{{100, 1}, 2 * kGiB - 1}});
  EXPECT_EQ(use_.beside_bytes(), 0) << "it never runs below";
}

TEST_F(ShareUseTest, OneLookIsNotBelievedAsItMayHaveBeenTakenJustBeforeSomethingWasFreed) {
  Account({{1, kGiB}});
  Look({{{100, 1}, kGiB}}, 3);
  Look({{{100, 1}, 9 * kGiB}}, 2);
  EXPECT_EQ(use_.beside_bytes(), 0);
  Look({{{100, 1}, 8 * kGiB}});
  EXPECT_EQ(use_.beside_bytes(), 7 * kGiB);
}

TEST_F(ShareUseTest, WhatAnAgentBeforeHasFoundOutHoldsUntilThreeLooksAreIn) {
  use_ = ShareUse(400 * kMiB);
  Account({{1, kGiB}});
  EXPECT_EQ(use_.beside_bytes(), 400 * kMiB);
  Look({{{100, 1}, kGiB}}, 2);
  EXPECT_EQ(use_.beside_bytes(), 400 * kMiB);
  Look({{{100, 1}, kGiB + 300 * kMiB}});
  EXPECT_EQ(use_.beside_bytes(), 0);
  Look({{{100, 1}, kGiB + 300 * kMiB}}, 2);
  EXPECT_EQ(use_.beside_bytes(), 300 * kMiB);
}

TEST_F(ShareUseTest, ALookIsComparedWithTheMostThatTheAccountSaidSinceTheOneBefore) {
  for (int i = 0; i < 5; ++i) {
    Account({{1, 10 * kGiB}});
    Account({{1, kGiB}});  // It is freed just before the look, which was taken before that.
    Look({{{100, 1}, 10 * kGiB}});
    EXPECT_EQ(use_.beside_bytes(), 0);
  }
}

TEST_F(ShareUseTest, AProcessThatHasNoPlaceInTheAccountHasEscapedIfThatLasts) {
  Account({{1, kGiB}});
  const std::vector<DriverProcess> seen = {{{100, 1}, kGiB}, {{101, 2}, 65 * kMiB}};
  Look(seen, 10);
  EXPECT_EQ(use_.escaped_bytes(), 0);
  Look(seen);
  EXPECT_EQ(use_.escaped_bytes(), 65 * kMiB);

  Account({{1, kGiB}, {2, 0}});  // It begins to count.
  Look(seen);
  EXPECT_EQ(use_.escaped_bytes(), 0);
  Account({{1, kGiB}});
  Look(seen, 10);
  EXPECT_EQ(use_.escaped_bytes(), 0) << "from the start again";
}

TEST_F(ShareUseTest, SmallProcessesAndThoseThatHaveJustEndedHaveNotEscaped) {
  Account({});
  Look({{{100, 1}, 64 * kMiB}, {{}, 9 * kGiB}}, 30);
  EXPECT_EQ(use_.escaped_bytes(), 0);
}

TEST_F(ShareUseTest, AProcessMayHaveContextsAndCodeBesideItsAccountAndNoMore) {
  Account({{1, kGiB}});
  Look({{{100, 1}, 2 * kGiB + 64 * kMiB}}, 30);
  EXPECT_EQ(use_.escaped_bytes(), 0);
  Look({{{100, 1}, 2 * kGiB + 65 * kMiB}}, 11);
  EXPECT_EQ(use_.escaped_bytes(), 65 * kMiB);
}

TEST_F(ShareUseTest, ANumberOfAnyOfItsNamespacesIsItsOwn) {
  Account({{7, kGiB}});
  Look({{{100, 7, 1}, kGiB}}, 30);  // In a namespace of its own below the container's.
  EXPECT_EQ(use_.escaped_bytes(), 0);
}

TEST_F(ShareUseTest, WithoutAnAccountAllHasEscapedAndIsBeside) {
  Look({{{100, 1}, kGiB}}, 11);
  EXPECT_EQ(use_.escaped_bytes(), kGiB);
  EXPECT_EQ(use_.beside_bytes(), kGiB);
}

}  // namespace
}  // namespace grus
