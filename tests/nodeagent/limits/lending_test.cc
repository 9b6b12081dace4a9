// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/lending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "nodeagent/cuda/share_files.h"

namespace grus {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;
using Rates = std::vector<std::uint32_t>;

constexpr std::uint64_t kMs = 1'000'000, kLook = 100 * kMs, kSlot = std::uint64_t{1} << cuda::kBusySlotShift;
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

// Containers on one GPU, which say what the test makes them say.
class LendingTest : public ::testing::Test {
 protected:
  std::size_t Add(std::uint32_t milli) {
    uses_.push_back({.container = std::to_string(uses_.size()), .milli = milli, .busy = {}});
    uses_.back().busy.resize(cuda::kBusySlots);
    return uses_.size() - 1;
  }
  // Since the last look.
  void Use(std::size_t which, std::uint64_t charged, std::uint64_t waited) {
    uses_[which].charged += charged;
    uses_[which].waited += waited;
  }
  // In the tenth of a second that is to come: of each `of` slots the first `busy` ones from `first` on are full.
  void MarkBusy(std::size_t which, std::uint64_t first = 0, std::uint64_t busy = 1, std::uint64_t of = 1) {
    for (std::uint64_t number = now_ / kSlot; number < (now_ + kLook) / kSlot; ++number) {
      if (number % of < first || number % of >= first + busy) continue;
      const auto round = static_cast<std::uint32_t>(number / cuda::kBusySlots) << cuda::kBusyBits;
      uses_[which].busy[number % cuda::kBusySlots] = round | static_cast<std::uint32_t>(kSlot);
    }
  }
  Rates Look() { return lending_.Rates(now_ += kLook, uses_); }
  // Both want more than they get, and are charged for all of it.
  Rates Struggle(std::vector<std::size_t> who, int looks = 1) {
    Rates rates;
    for (int i = 0; i < looks; ++i) {
      for (const std::size_t which : who) Use(which, 50 * kMs, 50 * kMs);
      rates = Look();
    }
    return rates;
  }

  Lending lending_;
  std::vector<TimeUse> uses_;
  std::uint64_t now_ = 5000 * kLook;
};

TEST(ShareOut, GoesByWeightAndNobodyGetsMoreThanItWants) {
  struct Case {
    double total;
    std::vector<double> weights, wants, gets;
  };
  for (const Case& c :
       {Case{1000, {}, {}, {}}, Case{1000, {300}, {1000}, {1000}}, Case{1000, {300}, {10}, {10}},
        Case{1000, {300, 100}, {1000, 1000}, {750, 250}}, Case{1000, {300, 100, 600}, {1000, 1000, 0}, {750, 250, 0}},
        Case{1000, {300, 100, 600}, {1000, 1000, 400}, {450, 150, 400}},
        Case{1000, {1, 1, 1, 1}, {100, 200, 1000, 1000}, {100, 200, 350, 350}},
        Case{1000, {1, 999}, {1000, 1000}, {1, 999}}, Case{1000, {0, 500}, {1000, 1000}, {0, 1000}},
        Case{1000, {0, 0}, {1000, 1000}, {0, 0}}, Case{0, {1, 1}, {1000, 1000}, {0, 0}}}) {
    EXPECT_THAT(ShareOut(c.total, c.weights, c.wants), Pointwise(DoubleNear(1e-6), c.gets));
  }
}

TEST_F(LendingTest, WhatSomeLeaveIdleIsLentToAllOthersByWeight) {
  const std::size_t first = Add(200), second = Add(100);
  Add(700);  // Idle.
  Look();
  EXPECT_THAT(Struggle({first, second}), ElementsAre(667, 333, 700));
}

TEST_F(LendingTest, OneThatWantsLittleGetsThatAndALittleMoreAndTheRestIsTheOthers) {
  const std::size_t modest = Add(500), busy = Add(500);
  Look();
  for (int i = 0; i < 3; ++i) {
    Use(modest, 10 * kMs, 0);
    Struggle({busy});
  }
  Use(modest, 10 * kMs, 0);
  EXPECT_THAT(Struggle({busy}), ElementsAre(500, 1000 - (100 * 1.5 + 30)));
}

TEST_F(LendingTest, ALoanEndsWithTheSecondLookAfterItsOwnerBegins) {
  const std::size_t busy = Add(300), owner = Add(700);
  Look();
  EXPECT_THAT(Struggle({busy}, 10), ElementsAre(1000, 700));
  // It begins just before a look, so that all of its first launch is seen by the next one alone.
  Use(owner, 0, 0);
  Struggle({busy});
  EXPECT_THAT(Struggle({busy, owner}), ElementsAre(300, 700));
}

TEST_F(LendingTest, AFirstLaunchOfWhichLittleIsChargedSoFarEndsALoanToo) {
  const std::size_t busy = Add(300), owner = Add(700);
  Look();
  Struggle({busy}, 10);
  Use(owner, kMs, 0);  // It did not wait: its own rate was never lowered.
  EXPECT_EQ(Struggle({busy})[owner], 700);
  Use(owner, 60 * kMs, 0);
  EXPECT_THAT(Struggle({busy}), ElementsAre(300, 700));
}

TEST_F(LendingTest, ALongLaunchKeepsItsContainerBusyForAsLongAsItTakes) {
  const std::size_t busy = Add(300), owner = Add(700);
  Look();
  Struggle({busy}, 10);
  Use(owner, 500 * kMs, 0);  // Charged at once.
  for (int look = 0; look < 5; ++look) EXPECT_THAT(Struggle({busy}), ElementsAre(300, 700)) << look;
  EXPECT_THAT(Struggle({busy}), ElementsAre(1000, 700));
}

TEST_F(LendingTest, WhatIsOwedHasABound) {
  const std::size_t busy = Add(300), owner = Add(700);
  Look();
  uses_[owner].charged = kMost;
  Struggle({busy}, 31);
  EXPECT_THAT(Struggle({busy}), ElementsAre(1000, 700)) << "three seconds later it counts as idle";
}

TEST_F(LendingTest, ASumThatRanBackHasNotGrown) {
  const std::size_t busy = Add(300), owner = Add(700);
  uses_[owner].charged = uses_[owner].waited = 1'000'000 * kMs;
  Look();
  uses_[owner].charged = uses_[owner].waited = 5;
  EXPECT_THAT(Struggle({busy}), ElementsAre(1000, 700));
}

TEST_F(LendingTest, WhatAContainerUsedBeforeItsFirstLookIsNotOfThatLook) {
  const std::size_t busy = Add(300);
  Look();
  Struggle({busy});
  const std::size_t owner = Add(700);
  Use(owner, 900 * kMs, 900 * kMs);  // Before this agent.
  EXPECT_THAT(Struggle({busy}), ElementsAre(1000, 700));
}

TEST_F(LendingTest, OneThatStartsAnewIsForgottenBefore) {
  const std::size_t busy = Add(300), owner = Add(700);
  Look();
  Use(owner, 10'000 * kMs, 0);
  Struggle({busy});
  const TimeUse gone = uses_[owner];
  uses_.pop_back();
  Struggle({busy});
  uses_.push_back(gone);
  EXPECT_THAT(Struggle({busy}), ElementsAre(1000, 700));
}

TEST_F(LendingTest, WhoIsGuaranteedTheWholeGpuHasItAndOthersHaveWhatItLeaves) {
  const std::size_t whole = Add(1000);
  EXPECT_THAT(Look(), ElementsAre(1000));
  EXPECT_THAT(Struggle({whole}, 3), ElementsAre(1000));
  EXPECT_THAT(Look(), ElementsAre(1000)) << "also when it is idle";
}

TEST_F(LendingTest, WhereTwoGetOnlyHalfOfTheirWallTimeEachTheirRatesAreRaisedByAsMuch) {
  const std::size_t first = Add(500), second = Add(500);
  Look();
  const auto overlap = [&](int looks) {
    Rates rates;
    for (int i = 0; i < looks; ++i) {
      for (const std::size_t which : {first, second}) MarkBusy(which);
      rates = Struggle({first, second});
    }
    return rates;
  };
  EXPECT_THAT(overlap(15), ElementsAre(1000, 1000));
}

TEST_F(LendingTest, WhereTwoTakeTurnsNothingIsRaised) {
  const std::size_t first = Add(500), second = Add(500);
  Look();
  Rates rates;
  for (int i = 0; i < 15; ++i) {
    MarkBusy(first, 0, 1, 2);
    MarkBusy(second, 1, 1, 2);
    rates = Struggle({first, second});
  }
  EXPECT_THAT(rates, ElementsAre(500, 500));
}

TEST_F(LendingTest, OnceTheOverlapIsOverTheRatesAreAsBefore) {
  const std::size_t first = Add(300), second = Add(700);
  Look();
  for (int i = 0; i < 15; ++i) {
    MarkBusy(first);
    MarkBusy(second);
    Struggle({first, second});
  }
  Rates rates;
  for (int i = 0; i < 15; ++i) {
    MarkBusy(first, 0, 3, 10);
    MarkBusy(second, 3, 7, 10);
    rates = Struggle({first, second});
  }
  EXPECT_THAT(rates, ElementsAre(300, 700));
}

TEST_F(LendingTest, OneThatWakesUpBesideABusyOneHasARateForHalfOfItsWallTime) {
  const std::size_t busy = Add(300);
  Add(400);  // Idle.
  Look();
  Rates rates;
  for (int i = 0; i < 5; ++i) {
    MarkBusy(busy);
    rates = Struggle({busy});
  }
  EXPECT_EQ(rates[0], 1000);
  EXPECT_NEAR(rates[1], 800, 20);
}

TEST_F(LendingTest, MarksThatCameTwoLooksLateCountToo) {
  const std::size_t first = Add(300), second = Add(300);
  Look();
  Rates rates;
  for (int i = 0; i < 10; ++i) {
    rates = Struggle({first, second});
    now_ -= 3 * kLook;
    for (const std::size_t which : {first, second}) MarkBusy(which);
    now_ += 3 * kLook;
  }
  EXPECT_THAT(rates, ElementsAre(1000, 1000)) << "500 of work, half of the wall time";
}

TEST_F(LendingTest, ALongLaunchOverlapsOthersBeforeItsMarkComes) {
  const std::size_t busy = Add(300), owner = Add(700);
  Look();
  Use(owner, 2000 * kMs, 0);  // Charged at once.
  Rates rates;
  for (int i = 0; i < 10; ++i) {
    MarkBusy(busy);
    rates = Struggle({busy});
  }
  EXPECT_EQ(rates[busy], 600) << "300 of work, half of its wall time";
}

TEST_F(LendingTest, ARateOfNearlyAllTheTimeIsAllOfIt) {
  const std::size_t most = Add(940), little = Add(60);
  Look();
  EXPECT_EQ(Struggle({most, little}, 3)[most], 940);
  for (int i = 0; i < 15; ++i) {
    MarkBusy(most);
    MarkBusy(little, 0, 1, 25);
    Struggle({most, little});
  }
  EXPECT_EQ(Struggle({most, little})[most], 1000) << "940 of work, in 98 of 100 parts of its wall time";
}

TEST_F(LendingTest, MarksOfAnotherRoundOfTheRingCountForNothing) {
  const std::size_t first = Add(500), second = Add(500);
  Look();
  for (const std::size_t which : {first, second}) {
    for (int i = 0; i < 6; ++i, now_ += kLook) MarkBusy(which);
    now_ -= 6 * kLook;
  }
  now_ += 2 * cuda::kBusySlots * kSlot;
  EXPECT_THAT(Struggle({first, second}, 3), ElementsAre(500, 500));
}

TEST_F(LendingTest, OneThatClaimsToBeIdleHasItsGuaranteeAndOneThatClaimsToBeBusyKeepsIts) {
  const std::size_t honest = Add(300), liar = Add(200);
  Add(500);
  Look();
  EXPECT_THAT(Struggle({honest}, 5), ElementsAre(1000, 200, 500)) << "idle, it says";
  Use(liar, kMost / 2, kMost / 2);
  EXPECT_THAT(Struggle({honest}), ElementsAre(600, 400, 500)) << "all of it as others who want more";
}

TEST_F(LendingTest, ForgedMarksRaiseARateNoFurtherThanTimesThoseThatAreBusyTogether) {
  const std::size_t honest = Add(500), liar = Add(200), idle = Add(300);
  Look();
  for (int i = 0; i < 30; ++i) {
    std::ranges::fill(uses_[liar].busy, kMost & 0xffffffff);
    MarkBusy(liar);
    MarkBusy(honest, 0, 1, 2);
    Use(idle, 30 * kMs, 70 * kMs);
    const Rates rates = Struggle({honest, liar});
    EXPECT_LE(rates[liar], 2 * 200);
    EXPECT_GE(rates[honest], 500);
    EXPECT_GE(rates[idle], 300);
  }
}

TEST_F(LendingTest, NobodyIsBelowItsGuaranteeWhateverOthersWrite) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    Lending lending;
    std::vector<TimeUse> uses;
    std::uint64_t now = random() % 3 == 0 ? random() >> 1 : 77 * kLook;
    for (int look = 0; look < 10; ++look) {
      if (uses.size() < 8 && random() % 2 == 0) {
        uses.push_back({.container = std::to_string(uses.size()),
                        .milli = static_cast<std::uint32_t>(random() % 1001),
                        .busy = std::vector<std::uint32_t>(random() % 5 == 0 ? 7 : cuda::kBusySlots)});
      }
      for (TimeUse& use : uses) {
        use.charged = random() >> (random() % 64);
        use.waited = random() % 2 == 0 ? 0 : random() >> (random() % 64);
        const auto now_round = static_cast<std::uint32_t>(now / kSlot / cuda::kBusySlots) << cuda::kBusyBits;
        for (std::uint32_t& slot : use.busy) slot = now_round | static_cast<std::uint32_t>(random() >> 45);
      }
      now += random() % 4 == 0 ? random() % (10 * kLook) : kLook;
      const Rates rates = lending.Rates(now, uses);
      ASSERT_EQ(rates.size(), uses.size());
      for (std::size_t i = 0; i < uses.size(); ++i) {
        EXPECT_GE(rates[i], std::max(uses[i].milli, 1U));
        EXPECT_LE(rates[i], 1000U);
      }
    }
  }
}

}  // namespace
}  // namespace grus
