// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/live_allocations.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace grus::cuda {
namespace {

class LiveAllocationsTest : public ::testing::Test {
 protected:
  bool Insert(std::uint64_t key, std::uint64_t bytes = 1, std::uint64_t context = 7) {
    return live_.Insert({key, bytes, context, 2, 3}, &replaced_);
  }
  // Its bytes; 0: there is none.
  std::uint64_t Find(std::uint64_t key) {
    LiveAllocation found = {};
    return live_.Find(key, &found) ? found.bytes : 0;
  }
  std::uint64_t Take(std::uint64_t key) {
    LiveAllocation taken = {};
    return live_.Take(key, &taken) ? taken.bytes : 0;
  }
  std::vector<LiveAllocation> EraseAllOf(std::uint64_t context) {
    std::vector<LiveAllocation> erased;
    const auto add = [](const LiveAllocation& one, void* data) {
      static_cast<std::vector<LiveAllocation>*>(data)->push_back(one);
    };
    live_.EraseAllOf(context, add, &erased);
    return erased;
  }
  LiveAllocations& live_ = *LiveAllocations::Make();
  LiveAllocation replaced_ = {};
};

TEST_F(LiveAllocationsTest, TakesOnceWhatWasInserted) {
  EXPECT_EQ(Take(512), 0u);
  EXPECT_TRUE(Insert(512, 100));
  LiveAllocation found = {};
  ASSERT_TRUE(live_.Find(512, &found));
  EXPECT_EQ(found.key, 512u);
  EXPECT_EQ(found.context, 7u);
  EXPECT_EQ(found.gpu, 2);
  EXPECT_EQ(found.kind, 3u);
  EXPECT_EQ(Find(513), 0u);
  EXPECT_EQ(Take(512), 100u);
  EXPECT_EQ(Take(512), 0u);
  EXPECT_EQ(Find(512), 0u);
  EXPECT_EQ(live_.size(), 0u);
}

TEST_F(LiveAllocationsTest, ZeroIsNoKey) {
  EXPECT_FALSE(Insert(0));
  EXPECT_EQ(Find(0), 0u);
  EXPECT_TRUE(Insert(1));
  EXPECT_EQ(Take(0), 0u);
  EXPECT_EQ(live_.size(), 1u);
}

TEST_F(LiveAllocationsTest, AKeyThatComesAgainReplacesAndTellsWhatItReplaced) {
  EXPECT_TRUE(Insert(512, 100));
  EXPECT_EQ(replaced_.key, 0u);
  EXPECT_TRUE(Insert(512, 200));
  EXPECT_EQ(replaced_.key, 512u);
  EXPECT_EQ(replaced_.bytes, 100u);
  EXPECT_EQ(live_.size(), 1u);
  EXPECT_TRUE(Insert(513, 200));
  EXPECT_EQ(replaced_.key, 0u);
  EXPECT_EQ(Take(512), 200u);
}

TEST_F(LiveAllocationsTest, AnyOrderOfCallsGivesWhatAMapGives) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::map<std::uint64_t, std::uint64_t> truth;
  for (const std::uint64_t distance : {1ULL, 512ULL, 2ULL << 20, 1ULL << 58, 0x9e3779b97f4a7c15ULL}) {
    for (int i = 0; i < 40'000; ++i) {
      const std::uint64_t key = (random() % 3000 + 1) * distance;
      const auto known = truth.find(key);
      const std::uint64_t bytes = known == truth.end() ? 0 : known->second;
      if (key == 0) continue;
      if (random() % 2 == 0) {
        ASSERT_TRUE(Insert(key, static_cast<std::uint64_t>(i) + 1));
        ASSERT_EQ(replaced_.bytes, bytes);
        truth[key] = static_cast<std::uint64_t>(i) + 1;
      } else {
        ASSERT_EQ(Find(key), bytes);
        ASSERT_EQ(Take(key), bytes);
        truth.erase(key);
      }
      ASSERT_EQ(live_.size(), truth.size());
    }
  }
  for (const auto& [key, bytes] : truth) ASSERT_EQ(Take(key), bytes);
  EXPECT_EQ(live_.size(), 0u);
}

TEST_F(LiveAllocationsTest, AContextTakesAllOfItsOwnAndNothingElse) {
  constexpr std::uint64_t kCount = 5000;
  for (std::uint64_t i = 1; i <= kCount; ++i) ASSERT_TRUE(Insert(i << 21, i, i % 3));
  const std::vector<LiveAllocation> erased = EraseAllOf(1);
  std::set<std::uint64_t> keys;
  for (const LiveAllocation& one : erased) {
    EXPECT_EQ(one.context, 1u);
    EXPECT_EQ(one.bytes, one.key >> 21);
    keys.insert(one.key);
  }
  EXPECT_EQ(keys.size(), erased.size());
  for (std::uint64_t i = 1; i <= kCount; ++i) ASSERT_EQ(Find(i << 21), i % 3 == 1 ? 0 : i) << i;
  EXPECT_EQ(live_.size(), kCount - keys.size());
  EXPECT_TRUE(EraseAllOf(1).empty());
  EXPECT_TRUE(EraseAllOf(99).empty());
}

TEST_F(LiveAllocationsTest, WhatAContextHasCanBeSetApartFromWhatTheNextOneOfItsHandleHas) {
  constexpr std::uint64_t kCount = 3000;
  for (std::uint64_t i = 1; i <= kCount; ++i) ASSERT_TRUE(Insert(i << 21, i, i % 3));
  live_.Reassign(1, 7);
  ASSERT_TRUE(Insert(1, 42, 1));
  EXPECT_EQ(EraseAllOf(7).size(), kCount / 3);
  EXPECT_EQ(Find(1), 42u);
  live_.Reassign(2, 1);
  EXPECT_EQ(EraseAllOf(1).size(), kCount / 3 + 1);
  EXPECT_EQ(live_.size(), kCount / 3);
}

TEST_F(LiveAllocationsTest, AContextLosesAllAlsoWhileOthersFree) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> others;
  for (int i = 0; i < 6000; ++i) {
    const std::uint64_t key = random() | 1;
    ASSERT_TRUE(Insert(key, 1, i % 2 == 0 ? 5 : 6));
    if (i % 2 == 1) others.push_back(key);
  }
  struct Data {
    LiveAllocations& live;
    std::vector<std::uint64_t>& others;
  } data{live_, others};
  // As another thread may, between two holds of the lock: slots move.
  const auto take_another = [](const LiveAllocation&, void* pointer) {
    Data& its = *static_cast<Data*>(pointer);
    LiveAllocation taken;
    its.live.Take(its.others.back(), &taken);
    its.others.pop_back();
  };
  live_.EraseAllOf(5, take_another, &data);
  EXPECT_EQ(live_.size(), others.size());
  EXPECT_EQ(EraseAllOf(5).size(), 0u);
}

TEST_F(LiveAllocationsTest, TheCallbackMayUseTheTable) {
  for (std::uint64_t i = 1; i <= 200; ++i) ASSERT_TRUE(Insert(i, i, 5));
  const auto add = [](const LiveAllocation& one, void* data) {
    LiveAllocation replaced;
    static_cast<LiveAllocations*>(data)->Insert({one.key + 1000, 1, 6, 0, 0}, &replaced);
  };
  live_.EraseAllOf(5, add, &live_);
  EXPECT_EQ(live_.size(), 200u);
  EXPECT_EQ(EraseAllOf(6).size(), 200u);
}

TEST_F(LiveAllocationsTest, AContextThatNeverStopsToAllocateIsNotWaitedFor) {
  ASSERT_TRUE(Insert(1, 1, 5));
  const auto again = [](const LiveAllocation& one, void* data) {
    LiveAllocation replaced;
    static_cast<LiveAllocations*>(data)->Insert(one, &replaced);
  };
  live_.EraseAllOf(5, again, &live_);
  EXPECT_EQ(live_.size(), 1u);
}

TEST_F(LiveAllocationsTest, ThreadsDoNotDisturbEachOther) {
  std::vector<std::jthread> threads;
  std::atomic<std::uint64_t> wrong = 0;
  for (std::uint64_t mine = 1; mine <= 4; ++mine) {
    threads.emplace_back([&, mine] {
      LiveAllocation one;
      for (std::uint64_t round = 0; round < 200; ++round) {
        for (std::uint64_t i = 1; i <= 500; ++i) wrong += live_.Insert({i * 8 + mine, i, mine, 0, 0}, &one) ? 0 : 1;
        for (std::uint64_t i = 1; i <= 500; ++i) wrong += live_.Take(i * 8 + mine, &one) && one.bytes == i ? 0 : 1;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(live_.size(), 0u);
}

int StatusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(LiveAllocationsTest, AForkedChildFindsItEmptyAndUsableWhileThreadsOfTheParentHoldIt) {
  ASSERT_TRUE(Insert(512, 100));
  std::atomic<bool> is_done = false;
  std::jthread busy([&] {
    LiveAllocation one;
    while (!is_done) {
      live_.Insert({1024, 1, 0, 0, 0}, &one);
      live_.Take(1024, &one);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(live_.size() == 0 && Take(512) == 0 && Insert(512, 5) && Take(512) == 5 ? 0 : 1);
    ASSERT_EQ(StatusOf(child), 0) << "fork " << i;
  }
  is_done = true;
  busy.join();
  EXPECT_EQ(Take(512), 100u);
}

#if !defined(__SANITIZE_ADDRESS__)  // It needs more address space than the limit leaves.
TEST_F(LiveAllocationsTest, WithoutMemoryForTheTableItSaysSoAndKeepsWhatItHas) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(1);
    errno = 77;
    if (Insert(1) || live_.size() != 0 || errno != 77) _exit(2);
    _exit(0);
  }
  EXPECT_EQ(StatusOf(child), 0);

  const pid_t second = fork();
  if (second == 0) {
    std::uint64_t key = 1;
    if (!Insert(key)) _exit(1);
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_AS, &none) != 0) _exit(2);
    while (Insert(key + 1)) ++key;
    if (key < 1000 || live_.size() != key) _exit(3);
    for (std::uint64_t i = 1; i <= key; ++i) {
      if (Take(i) != 1) _exit(4);
    }
    _exit(Insert(5) ? 0 : 5);
  }
  EXPECT_EQ(StatusOf(second), 0);
}
#endif

}  // namespace
}  // namespace grus::cuda
