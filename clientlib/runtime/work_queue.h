// SPDX-License-Identifier: Apache-2.0
// Keys waiting to be reconciled.
//
// A key is in at most one place: waiting, delayed, or in process. Adding a key that is in process marks it dirty;
// Done() then queues it again. So no change is lost, and no key is ever reconciled by two threads at once. Urgent keys
// go first: keys of the first list are added as kLow, so that live edits overtake them. Only some threads may reconcile
// low keys at a time, so that one is free for an urgent key. There is no bound: a key is in it once however often it is
// added, so the queue has at most as many keys as the cluster has objects.
//
// Thread-safe. Time comes from `clock`, so tests never sleep.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"
#include "clientlib/model/meta.h"

namespace kube {

enum class Priority { kLow, kNormal };

class WorkQueue {
 public:
  struct Item {
    ObjectKey key;
    Duration waited;  // From when it became ready until now.
    Priority priority;
  };
  struct Counts {
    std::size_t depth = 0, delayed = 0, in_process = 0;
    std::uint64_t adds = 0;
  };

  // At most `max_low` keys that were taken as kLow are in process at a time.
  explicit WorkQueue(const Clock& clock, int max_low = std::numeric_limits<int>::max())
      : clock_(clock), max_low_(max_low) {}

  void Add(const ObjectKey& key, Priority priority = Priority::kNormal);  // No effect after ShutDown().
  // An earlier time already set for `key` wins, and so does the higher priority. A delay of zero or less is Add().
  void AddAfter(const ObjectKey& key, Duration delay, Priority priority = Priority::kNormal);
  // The same, but no Add() makes the key ready earlier: for a delay that the API server asked for. No Add() is lost.
  // REQUIRES: the key is in process.
  void AddNotBefore(const ObjectKey& key, Duration delay, Priority priority = Priority::kNormal);
  std::optional<Item> Get();        // Blocks; nullopt once shut down.
  void Done(const ObjectKey& key);  // REQUIRES: once for each key from Get().
  void ShutDown();                  // Wakes all; delayed and ready keys are dropped.
  // After ShutDown(): waits until no key is in process. False if `until`, or another ShutDown(), came first.
  bool Drain(TimePoint until);
  Counts counts() const;

 private:
  struct Entry {
    bool is_ready = false, is_in_process = false, is_dirty = false;
    bool was_taken_as_low = false;
    Priority priority = Priority::kLow, delayed_priority = Priority::kLow;
    TimePoint ready_since{};
    TimePoint delayed_until = TimePoint::max();
    TimePoint not_before = TimePoint::min();
    int places = 0;  // How many times it is in ready_.
    bool IsIdle() const { return !is_ready && !is_in_process && places == 0 && delayed_until == TimePoint::max(); }
  };
  using Entries = std::unordered_map<ObjectKey, Entry>;
  struct Delayed {
    TimePoint due;
    ObjectKey key;
    bool operator>(const Delayed& other) const { return due > other.due; }
  };

  void AddLocked(const ObjectKey& key, Priority priority) { AddLocked(*entries_.try_emplace(key).first, priority); }
  void AddLocked(Entries::value_type& keyed, Priority priority);
  void DelayLocked(const ObjectKey& key, Entry& entry, TimePoint due, Priority priority);
  TimePoint DueIn(Duration delay) const;
  void MoveDueLocked();
  std::optional<Item> TakeLocked();
  void WakeOneLocked();

  const Clock& clock_;
  const int max_low_;
  mutable std::mutex mutex_;  // Guards everything below.
  // Of the threads in Get(), one waits for the time of the next delayed key, the others only for ready keys. Ready keys
  // wake the others first, so that the timed wait goes on.
  CondVar ready_changed_, timer_changed_, drained_;
  int idle_ = 0;            // Waiting on ready_changed_.
  int woken_ = 0;           // Of these, told to wake and not awake yet.
  int low_in_process_ = 0;  // Taken as kLow.
  bool has_timer_thread_ = false;
  Entries entries_;
  // By priority. A key whose priority was raised leaves a stale element in the lower queue.
  std::deque<Entries::value_type*> ready_[2];
  std::priority_queue<Delayed, std::vector<Delayed>, std::greater<>> delayed_;
  std::size_t depth_ = 0, in_process_ = 0, delayed_count_ = 0;
  std::uint64_t adds_ = 0;
  int shut_downs_ = 0;
};

}  // namespace kube
