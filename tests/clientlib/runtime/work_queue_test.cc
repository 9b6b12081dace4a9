// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "clientlib/testing/fake_clock.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

const ObjectKey kA{"ns", "a"}, kB{"ns", "b"}, kC{"ns", "c"};

// Its waits end only when they are notified, and the thread that waits for the earliest time is notified
// first: both are allowed to condition variables, and a FakeClock would hide what goes wrong then.
class StrictClock final : public Clock {
 public:
  TimePoint Now() const override { return FakeClock::kStart; }
  WallTime WallNow() const override { return FakeClock::kWallStart; }
  void WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const override {
    std::condition_variable& cv = condition.variable();
    Change({&cv, until}, 1);
    cv.wait(lock);
    while (IsAnotherEarlier({&cv, until})) {
      cv.notify_one();
      cv.wait(lock);
    }
    Change({&cv, until}, -1);
  }
  // Waits until `count` threads wait for `until`; false after 20 s of real time.
  bool Await(TimePoint until, int count) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] {
      int waiting = 0;
      for (const auto& [wait, threads] : waiting_) waiting += wait.second == until ? threads : 0;
      return waiting >= count;
    });
  }
  // From now on every wait ends when it is notified.
  void BeFair() {
    std::lock_guard lock(mutex_);
    is_fair_ = true;
  }

 private:
  using Wait = std::pair<const void*, TimePoint>;  // What it waits on, and until when.
  void Change(const Wait& wait, int by) const {
    {
      std::lock_guard lock(mutex_);
      waiting_[wait] += by;
    }
    changed_.notify_all();
  }
  bool IsAnotherEarlier(const Wait& wait) const {
    std::lock_guard lock(mutex_);
    return !is_fair_ && std::any_of(waiting_.lower_bound({wait.first, TimePoint::min()}), waiting_.lower_bound(wait),
                                    [](const auto& entry) { return entry.second > 0; });
  }
  mutable std::mutex mutex_;  // Guards waiting_ and is_fair_.
  mutable std::condition_variable changed_;
  mutable std::map<Wait, int> waiting_;
  bool is_fair_ = false;
};

// False if `condition` does not become true within 20 s of real time.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class WorkQueueTest : public ::testing::Test {
 protected:
  // The next key. REQUIRES: one is ready, or comes without the clock.
  std::string Get() {
    const std::optional<WorkQueue::Item> item = queue_.Get();
    return item ? item->key.name : "(none)";
  }
  std::string GetAndDone() {
    const std::string name = Get();
    if (name != "(none)") queue_.Done({"ns", name});
    return name;
  }
  // True if no key is ready now: a Get() would wait.
  bool IsDry() {
    auto got = std::async(std::launch::async, [this] { return queue_.Get(); });
    const bool is_waiting = clock_.AwaitWaiters(1);
    queue_.Add({"ns", "probe"});
    const std::optional<WorkQueue::Item> item = got.get();
    queue_.Done(item->key);
    return is_waiting && item->key.name == "probe";
  }

  FakeClock clock_;
  WorkQueue queue_{clock_};
};

TEST_F(WorkQueueTest, GivesKeysInTheOrderOfAdd) {
  queue_.Add(kB);
  queue_.Add(kA);
  queue_.Add(kC);
  EXPECT_EQ(Get(), "b");
  EXPECT_EQ(Get(), "a");
  EXPECT_EQ(Get(), "c");
}

TEST_F(WorkQueueTest, Q1AKeyAddedTwiceIsThereOnce) {
  queue_.Add(kA);
  queue_.Add(kA);
  EXPECT_EQ(queue_.counts().depth, 1u);
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_TRUE(IsDry());
}

TEST_F(WorkQueueTest, H1AKeyThatMustNotComeEarlierComesAtItsTimeWhateverIsAddedMeanwhile) {
  queue_.Add(kA);
  EXPECT_EQ(Get(), "a");
  queue_.Add(kA);  // An event while it is in process.
  queue_.AddNotBefore(kA, 7s);
  queue_.Done(kA);
  queue_.AddAfter(kA, 1s);
  queue_.Add(kA);
  EXPECT_TRUE(IsDry());
  clock_.Advance(7s - 1ms);
  EXPECT_TRUE(IsDry());
  clock_.Advance(1ms);
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_TRUE(IsDry());
  // Once only.
  queue_.Add(kA);
  EXPECT_EQ(GetAndDone(), "a");
}

TEST_F(WorkQueueTest, Q1AKeyAddedInProcessComesBackWhenDone) {
  queue_.Add(kA);
  EXPECT_EQ(Get(), "a");
  queue_.Add(kA);
  queue_.Add(kA);
  EXPECT_EQ(queue_.counts().depth, 0u);
  EXPECT_TRUE(IsDry());  // Never given to two at once.

  queue_.Done(kA);

  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_TRUE(IsDry());
}

TEST_F(WorkQueueTest, Q1AKeyThatIsDoneCanBeAddedAgain) {
  queue_.Add(kA);
  EXPECT_EQ(GetAndDone(), "a");
  queue_.Add(kA);
  EXPECT_EQ(GetAndDone(), "a");
}

TEST_F(WorkQueueTest, Q1NoKeyIsEverGivenToTwoThreadsAndNoneIsLost) {
  constexpr int kKeys = 8, kRounds = 400;
  std::atomic<int> in_hand[kKeys] = {}, seen[kKeys] = {};  // What was last written, what was last seen of it.
  std::atomic<int> written[kKeys] = {};
  std::atomic<int> twice = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (std::optional<WorkQueue::Item> item = queue_.Get()) {
        const auto i = static_cast<std::size_t>(std::stoi(item->key.name));
        if (in_hand[i].fetch_add(1) != 0) ++twice;
        seen[i] = written[i].load();
        in_hand[i].fetch_sub(1);
        queue_.Done(item->key);
      }
    });
  }
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      written[i] = round;
      queue_.Add({"ns", std::to_string(i)});
    }
  }
  EXPECT_TRUE(Eventually(
      [&] { return std::all_of(std::begin(seen), std::end(seen), [](const auto& n) { return n == kRounds; }); }));
  queue_.ShutDown();
  threads.clear();
  EXPECT_EQ(twice, 0);
}

TEST_F(WorkQueueTest, Q2ADelayedKeyComesAtItsTime) {
  queue_.AddAfter(kA, 10s);
  EXPECT_EQ(queue_.counts().delayed, 1u);
  auto got = std::async(std::launch::async, [this] { return Get(); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(9s);
  ASSERT_TRUE(clock_.AwaitWaiters(1));  // It waits on.
  clock_.Advance(1s);
  EXPECT_EQ(got.get(), "a");
  EXPECT_EQ(queue_.counts().delayed, 0u);
}

TEST_F(WorkQueueTest, Q2TheEarliestTimeWins) {
  for (const auto& [first, second] : {std::pair(10s, 5s), std::pair(5s, 10s)}) {
    queue_.AddAfter(kA, first);
    queue_.AddAfter(kA, second);
    EXPECT_EQ(queue_.counts().delayed, 1u);
    clock_.Advance(5s);
    EXPECT_EQ(GetAndDone(), "a");
    clock_.Advance(5s);
    EXPECT_TRUE(IsDry());  // The later time is void.
  }
}

TEST_F(WorkQueueTest, Q2AnEarlyAddLeavesTheDelayedOne) {
  queue_.AddAfter(kA, 10s);
  queue_.Add(kA);
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_EQ(queue_.counts().delayed, 1u);
  clock_.Advance(10s);
  EXPECT_EQ(GetAndDone(), "a");
}

TEST_F(WorkQueueTest, Q2ADelayedKeyDoesNotBlockOthers) {
  queue_.AddAfter(kA, 10s);
  queue_.Add(kB);
  queue_.AddAfter(kC, 1s);
  EXPECT_EQ(GetAndDone(), "b");
  clock_.Advance(1s);
  EXPECT_EQ(GetAndDone(), "c");
  clock_.Advance(9s);
  EXPECT_EQ(GetAndDone(), "a");
}

TEST_F(WorkQueueTest, Q2KeysThatComeDueTogetherComeInTheOrderOfTheirTimes) {
  queue_.AddAfter(kC, 3s);
  queue_.AddAfter(kA, 1s);
  queue_.AddAfter(kB, 2s);
  clock_.Advance(10s);
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_EQ(GetAndDone(), "b");
  EXPECT_EQ(GetAndDone(), "c");
}

TEST_F(WorkQueueTest, Q2ADelayOfNothingIsAnAdd) {
  queue_.AddAfter(kA, 0s);
  queue_.AddAfter(kB, -1s);
  EXPECT_EQ(queue_.counts().depth, 2u);
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_EQ(GetAndDone(), "b");
}

TEST_F(WorkQueueTest, Q2ATimeThatComesInProcessWaitsForDone) {
  queue_.Add(kA);
  EXPECT_EQ(Get(), "a");
  queue_.AddAfter(kA, 1s);
  clock_.Advance(1s);
  EXPECT_TRUE(IsDry());
  queue_.Done(kA);
  EXPECT_EQ(GetAndDone(), "a");
}

TEST_F(WorkQueueTest, Q2ALongestDelayIsNoOverflow) {
  queue_.AddAfter(kA, Duration::max());
  queue_.AddAfter(kB, 1s);
  clock_.Advance(1s);
  EXPECT_EQ(GetAndDone(), "b");
  EXPECT_EQ(queue_.counts().delayed, 1u);
  queue_.AddAfter(kA, 1s);
  clock_.Advance(1s);
  EXPECT_EQ(GetAndDone(), "a");
}

// Of the threads in Get() one always watches the time of the next delayed key, whoever took what was ready.
TEST(WorkQueue, Q2AThreadThatTakesAKeyLeavesTheWatchToAnother) {
  StrictClock clock;
  WorkQueue queue(clock);
  const TimePoint due = clock.Now() + 10s;
  std::atomic<int> taken = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      if (queue.Get()) ++taken;  // And is busy with it.
    });
  }
  ASSERT_TRUE(clock.Await(TimePoint::max(), 2));
  queue.AddAfter(kA, 10s);
  ASSERT_TRUE(clock.Await(due, 1));

  queue.Add(kB);

  const bool is_taken = Eventually([&] { return taken == 1; });
  const bool is_watched = clock.Await(due, 1);
  clock.BeFair();
  queue.ShutDown();
  EXPECT_TRUE(is_taken);
  EXPECT_TRUE(is_watched);
}

TEST_F(WorkQueueTest, Q6LiveKeysOvertakeThoseOfTheFirstList) {
  queue_.Add(kA, Priority::kLow);
  queue_.Add(kB, Priority::kLow);
  queue_.Add(kC);
  EXPECT_EQ(GetAndDone(), "c");
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_EQ(GetAndDone(), "b");
}

TEST_F(WorkQueueTest, Q6EachFourthKeyIsALowOneIfAnyWaits) {
  queue_.Add({"ns", "low 1"}, Priority::kLow);
  queue_.Add({"ns", "low 2"}, Priority::kLow);
  for (int i = 1; i <= 7; ++i) queue_.Add({"ns", std::to_string(i)});
  std::vector<std::string> order;
  while (queue_.counts().depth > 0) order.push_back(GetAndDone());
  EXPECT_THAT(order, ::testing::ElementsAre("1", "2", "3", "low 1", "4", "5", "6", "low 2", "7"));
}

TEST_F(WorkQueueTest, Q6NamespacesTakeTurnsHoweverManyKeysOneHas) {
  for (const Priority priority : {Priority::kNormal, Priority::kLow}) {
    for (int i = 0; i < 1000; ++i) queue_.Add({"flood", std::to_string(i)}, priority);
    queue_.Add({"b", "b1"}, priority);
    queue_.Add({"b", "b2"}, priority);
    queue_.Add({"c", "c1"}, priority);
    std::vector<std::string> order;
    while (queue_.counts().depth > 0) {
      order.push_back(queue_.Get()->key.name);
      const std::string& name = order.back();
      queue_.Done({name[0] == 'b' || name[0] == 'c' ? name.substr(0, 1) : "flood", name});
    }
    ASSERT_EQ(order.size(), 1003u);
    order.resize(6);
    EXPECT_THAT(order, ::testing::ElementsAre("0", "b1", "c1", "1", "b2", "2"));
  }
}

// A tenant that changes many of its objects all the time, each of them as soon as it was looked at.
TEST_F(WorkQueueTest, Q6ANewKeyComesSoonWhateverAnotherNamespaceChanges) {
  for (int i = 0; i < 100; ++i) queue_.Add({"flood", std::to_string(i)});
  queue_.Add({"b", "new"}, Priority::kLow);
  int taken = 0;
  for (;; ++taken) {
    const ObjectKey key = queue_.Get()->key;
    if (key.ns == "flood") queue_.Add(key);
    queue_.Done(key);
    if (key.ns == "b") break;
    ASSERT_LT(taken, 10);
  }
  EXPECT_EQ(taken, 3);
}

TEST(WorkQueue, Q6KeysOfLowPriorityDoNotTakeAllThreads) {
  FakeClock clock;
  WorkQueue queue(clock, 1);
  queue.Add(kA, Priority::kLow);
  queue.Add(kB, Priority::kLow);
  EXPECT_EQ(queue.Get()->key, kA);
  queue.Add(kC);
  EXPECT_EQ(queue.Get()->key, kC) << "b waits for the end of a";

  auto next = std::async(std::launch::async, [&] { return queue.Get(); });
  ASSERT_TRUE(clock.AwaitWaiters(1));
  queue.Done(kC);
  ASSERT_TRUE(clock.AwaitWaiters(1)) << "the end of a key of normal priority makes no place";
  queue.Done(kA);
  EXPECT_EQ(next.get()->key, kB);
}

TEST_F(WorkQueueTest, Q6TheHighestPriorityOfDuplicatesWins) {
  queue_.Add(kA, Priority::kLow);
  queue_.Add(kB, Priority::kLow);
  queue_.Add(kB);
  queue_.Add(kB, Priority::kLow);
  EXPECT_EQ(queue_.counts().depth, 2u);
  EXPECT_EQ(GetAndDone(), "b");
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_TRUE(IsDry());
}

TEST_F(WorkQueueTest, Q6AKeyMadeDirtyKeepsTheHighestPriority) {
  queue_.Add(kA);
  EXPECT_EQ(Get(), "a");
  queue_.Add(kB, Priority::kLow);
  queue_.Add(kA, Priority::kNormal);
  queue_.Add(kA, Priority::kLow);
  queue_.Done(kA);
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_EQ(GetAndDone(), "b");
}

TEST_F(WorkQueueTest, Q6ARetryKeepsItsPriority) {
  queue_.Add(kA, Priority::kLow);
  const std::optional<WorkQueue::Item> item = queue_.Get();
  ASSERT_TRUE(item);
  EXPECT_EQ(item->priority, Priority::kLow);
  queue_.AddAfter(kA, 1s, item->priority);
  queue_.Done(kA);
  clock_.Advance(1s);
  queue_.Add(kB);
  EXPECT_EQ(GetAndDone(), "b");
  EXPECT_EQ(GetAndDone(), "a");
}

TEST_F(WorkQueueTest, Q6TheHighestPriorityOfDelayedDuplicatesWins) {
  queue_.Add(kB, Priority::kLow);
  queue_.AddAfter(kA, 1s, Priority::kLow);
  queue_.AddAfter(kA, 2s, Priority::kNormal);
  clock_.Advance(1s);
  EXPECT_EQ(GetAndDone(), "a");
  EXPECT_EQ(GetAndDone(), "b");
  queue_.AddAfter(kA, 1s, Priority::kLow);  // What was is forgotten.
  clock_.Advance(1s);
  queue_.Add(kB);
  EXPECT_EQ(GetAndDone(), "b");
}

TEST_F(WorkQueueTest, AnItemSaysHowLongItWasReady) {
  queue_.Add(kA);
  clock_.Advance(3s);
  queue_.Add(kA);
  clock_.Advance(1s);
  EXPECT_EQ(queue_.Get()->waited, 4s);
  queue_.Add(kA);
  clock_.Advance(5s);
  queue_.Done(kA);
  clock_.Advance(2s);
  EXPECT_EQ(queue_.Get()->waited, 2s);
}

TEST_F(WorkQueueTest, CountsWhatIsWhere) {
  queue_.Add(kA);
  queue_.Add(kB);
  queue_.AddAfter(kC, 1s);
  EXPECT_EQ(Get(), "a");
  const WorkQueue::Counts counts = queue_.counts();
  EXPECT_EQ(counts.depth, 1u);
  EXPECT_EQ(counts.delayed, 1u);
  EXPECT_EQ(counts.in_process, 1u);
  EXPECT_EQ(counts.adds, 2u);
}

TEST_F(WorkQueueTest, Q7ShutDownWakesAllAndDropsWhatWaits) {
  auto a = std::async(std::launch::async, [this] { return queue_.Get().has_value(); });
  auto b = std::async(std::launch::async, [this] { return queue_.Get().has_value(); });
  ASSERT_TRUE(clock_.AwaitWaiters(2));
  queue_.ShutDown();
  EXPECT_FALSE(a.get());
  EXPECT_FALSE(b.get());

  queue_.Add(kA);
  queue_.AddAfter(kB, 1s);
  clock_.Advance(1s);
  EXPECT_EQ(Get(), "(none)");
  EXPECT_EQ(queue_.counts().depth, 0u);
}

TEST_F(WorkQueueTest, Q7DrainWaitsForWhatIsInProcess) {
  queue_.Add(kA);
  EXPECT_EQ(Get(), "a");
  queue_.Add(kA);  // Dirty: dropped.
  queue_.ShutDown();
  auto drained = std::async(std::launch::async, [this] { return queue_.Drain(clock_.Now() + 30s); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  queue_.Done(kA);
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(queue_.counts().in_process, 0u);
}

TEST_F(WorkQueueTest, Q7DrainGivesUpAtItsTime) {
  queue_.Add(kA);
  EXPECT_EQ(Get(), "a");
  queue_.ShutDown();
  auto drained = std::async(std::launch::async, [this] { return queue_.Drain(FakeClock::kStart + 30s); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  clock_.Advance(30s);
  EXPECT_FALSE(drained.get());
}

TEST_F(WorkQueueTest, Q7ASecondShutDownBreaksTheDrain) {
  queue_.Add(kA);
  EXPECT_EQ(Get(), "a");
  queue_.ShutDown();
  auto drained = std::async(std::launch::async, [this] { return queue_.Drain(TimePoint::max()); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));
  queue_.ShutDown();
  ASSERT_EQ(drained.wait_for(20s), std::future_status::ready);
  EXPECT_FALSE(drained.get());
}

TEST_F(WorkQueueTest, Q7DrainOfAnIdleQueueReturnsAtOnce) {
  queue_.Add(kA);
  queue_.ShutDown();
  EXPECT_TRUE(queue_.Drain(clock_.Now()));
}

}  // namespace
}  // namespace kube::testing
