// SPDX-License-Identifier: Apache-2.0
// Keys waiting to be reconciled.
//
// A key is in at most one place: waiting, delayed, or in process. Adding a key that is in process marks it dirty;
// Done() then queues it again. So no change is lost, and no key is ever reconciled by two threads at once. Urgent keys
// go first: keys of the first list are added as kLow, so that live edits overtake them, but each fourth key is a low
// one if it may be: only some threads may reconcile low keys at a time, so that one is free for an urgent key.
// Namespaces take turns, so that the keys of one, however many, keep those of another waiting for one pass. There is no
// bound: a key is in it once however often it is added, so the queue has at most as many keys as the cluster has
// objects.
//
// Thread-safe. Time comes from `clock`, so tests never sleep.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
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
  using Hook = boost::intrusive::list_base_hook<>;
  struct Lane;
  struct Entry : Hook {  // Linked while it is ready: in the lane of its namespace and priority.
    const ObjectKey* key = nullptr;
    Lane* lanes = nullptr;  // Of its namespace, one a priority.
    bool is_in_process = false, is_dirty = false, was_taken_as_low = false;
    Priority priority = Priority::kLow, delayed_priority = Priority::kLow;
    TimePoint ready_since{};
    TimePoint delayed_until = TimePoint::max();
    TimePoint not_before = TimePoint::min();
    bool is_ready() const { return is_linked(); }
    bool IsIdle() const { return !is_ready() && !is_in_process && delayed_until == TimePoint::max(); }
  };
  template <typename T>
  using List = boost::intrusive::list<T, boost::intrusive::constant_time_size<false>>;
  struct Lane : Hook {  // Linked, among those whose turn comes, while it has a ready key.
    List<Entry> ready;
  };
  struct Namespace {
    Lane lanes[2];  // By priority.
    std::size_t keys = 0;
  };
  using Entries = std::unordered_map<ObjectKey, Entry>;
  struct Delayed {
    TimePoint due;
    ObjectKey key;
    bool operator>(const Delayed& other) const { return due > other.due; }
  };

  Entry& EntryLocked(const ObjectKey& key);
  void ForgetLocked(Entries::iterator entry);
  void AddLocked(Entry& entry, Priority priority);
  void DelayLocked(Entry& entry, TimePoint due, Priority priority);
  void UnlinkLocked(Entry& entry);  // REQUIRES: it is ready.
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
  std::unordered_map<std::string, Namespace> namespaces_;
  List<Lane> turns_[2];  // By priority: the lanes with ready keys, in the order of their turns.
  int overtaken_ = 0;    // How many keys were taken while a low one could have been.
  std::priority_queue<Delayed, std::vector<Delayed>, std::greater<>> delayed_;
  std::size_t depth_ = 0, in_process_ = 0, delayed_count_ = 0;
  std::uint64_t adds_ = 0;
  int shut_downs_ = 0;
};

}  // namespace kube
