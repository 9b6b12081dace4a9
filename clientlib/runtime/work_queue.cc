// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/work_queue.h"

#include <algorithm>
#include <cassert>

namespace kube {

namespace {

// Of this many keys, one is of low priority if any waits.
constexpr int kLowShare = 4;

}  // namespace

WorkQueue::Entry& WorkQueue::EntryLocked(const ObjectKey& key) {
  const auto [it, is_new] = entries_.try_emplace(key);
  Entry& entry = it->second;
  if (is_new) {
    Namespace& home = namespaces_[key.ns];
    ++home.keys;
    entry.key = &it->first;
    entry.lanes = home.lanes;
  }
  return entry;
}

void WorkQueue::ForgetLocked(Entries::iterator entry) {
  const auto home = namespaces_.find(entry->first.ns);
  if (--home->second.keys == 0) namespaces_.erase(home);
  entries_.erase(entry);
}

void WorkQueue::Add(const ObjectKey& key, Priority priority) {
  std::lock_guard lock(mutex_);
  if (shut_downs_ == 0) AddLocked(EntryLocked(key), priority);
}

void WorkQueue::AddLocked(Entry& entry, Priority priority) {
  ++adds_;
  if (entry.is_in_process) {
    entry.priority = entry.is_dirty ? std::max(entry.priority, priority) : priority;
    entry.is_dirty = true;
    return;
  }
  if (entry.is_ready()) {
    if (entry.priority >= priority) return;
    UnlinkLocked(entry);
  } else {
    const TimePoint now = clock_.Now();
    if (now < entry.not_before) return DelayLocked(entry, entry.not_before, priority);
    entry.ready_since = now;
    ++depth_;
  }
  entry.priority = priority;
  Lane& lane = entry.lanes[static_cast<int>(priority)];
  lane.ready.push_back(entry);
  if (!lane.is_linked()) turns_[static_cast<int>(priority)].push_back(lane);
  if (priority != Priority::kLow || low_in_process_ < max_low_) WakeOneLocked();
}

void WorkQueue::UnlinkLocked(Entry& entry) {
  const int priority = static_cast<int>(entry.priority);
  Lane& lane = entry.lanes[priority];
  lane.ready.erase(lane.ready.iterator_to(entry));
  if (lane.ready.empty()) turns_[priority].erase(turns_[priority].iterator_to(lane));
}

void WorkQueue::WakeOneLocked() {
  if (idle_ > woken_) {
    ++woken_;
    ready_changed_.NotifyOne();
  } else if (has_timer_thread_) {
    timer_changed_.NotifyOne();
  }
}

TimePoint WorkQueue::DueIn(Duration delay) const {
  const TimePoint now = clock_.Now();
  // TimePoint::max() means "not delayed", and time points must not overflow.
  return delay < TimePoint::max() - now ? now + delay : TimePoint::max() - Duration(1);
}

void WorkQueue::AddAfter(const ObjectKey& key, Duration delay, Priority priority) {
  if (delay <= Duration::zero()) return Add(key, priority);
  std::lock_guard lock(mutex_);
  if (shut_downs_ > 0) return;
  DelayLocked(EntryLocked(key), DueIn(delay), priority);
}

void WorkQueue::AddNotBefore(const ObjectKey& key, Duration delay, Priority priority) {
  {
    std::lock_guard lock(mutex_);
    // The caller reconciles the key, so it is in process and not ready.
    if (shut_downs_ == 0) EntryLocked(key).not_before = DueIn(delay);
  }
  AddAfter(key, delay, priority);
}

void WorkQueue::DelayLocked(Entry& entry, TimePoint due, Priority priority) {
  const bool was_delayed = entry.delayed_until != TimePoint::max();
  entry.delayed_priority = was_delayed ? std::max(entry.delayed_priority, priority) : priority;
  if (entry.delayed_until <= due) return;
  if (!was_delayed) ++delayed_count_;
  entry.delayed_until = due;
  const bool is_next = delayed_.empty() || due < delayed_.top().due;
  delayed_.push({due, *entry.key});
  if (!is_next) return;
  if (has_timer_thread_) timer_changed_.NotifyOne();
  else WakeOneLocked();
}

void WorkQueue::MoveDueLocked() {
  const TimePoint now = clock_.Now();
  while (!delayed_.empty() && delayed_.top().due <= now) {
    const Delayed next = delayed_.top();
    delayed_.pop();
    const auto it = entries_.find(next.key);
    // A key whose time was moved forward leaves a stale element in the heap.
    if (it == entries_.end() || it->second.delayed_until != next.due) continue;
    it->second.delayed_until = TimePoint::max();
    --delayed_count_;
    AddLocked(it->second, it->second.delayed_priority);
  }
}

std::optional<WorkQueue::Item> WorkQueue::TakeLocked() {
  const bool has_normal = !turns_[static_cast<int>(Priority::kNormal)].empty();
  const bool may_take_low = !turns_[static_cast<int>(Priority::kLow)].empty() && low_in_process_ < max_low_;
  if (!has_normal && !may_take_low) return std::nullopt;
  const bool is_low = may_take_low && (!has_normal || overtaken_ + 1 == kLowShare);
  overtaken_ = may_take_low && !is_low ? overtaken_ + 1 : 0;

  const Priority priority = is_low ? Priority::kLow : Priority::kNormal;
  List<Lane>& turns = turns_[static_cast<int>(priority)];
  Lane& lane = turns.front();
  Entry& entry = lane.ready.front();
  lane.ready.pop_front();
  turns.pop_front();
  if (!lane.ready.empty()) turns.push_back(lane);  // The next key of this namespace comes after one of each other.

  entry.is_in_process = true;
  entry.was_taken_as_low = is_low;
  if (is_low) ++low_in_process_;
  --depth_;
  ++in_process_;
  return Item{*entry.key, clock_.Now() - entry.ready_since, priority};
}

std::optional<WorkQueue::Item> WorkQueue::Get() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (shut_downs_ > 0) return std::nullopt;
    MoveDueLocked();
    if (std::optional<Item> item = TakeLocked()) {
      // No thread waits for the next delayed key now: an idle one takes over.
      if (!has_timer_thread_ && !delayed_.empty() && idle_ > woken_) WakeOneLocked();
      return item;
    }
    if (!has_timer_thread_ && !delayed_.empty()) {
      has_timer_thread_ = true;
      clock_.WaitUntil(lock, timer_changed_, delayed_.top().due);
      has_timer_thread_ = false;
    } else {
      ++idle_;
      clock_.WaitUntil(lock, ready_changed_, TimePoint::max());
      --idle_;
      if (woken_ > 0) --woken_;
    }
  }
}

void WorkQueue::Done(const ObjectKey& key) {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  assert(it != entries_.end() && it->second.is_in_process && "Done() without Get()");
  Entry& entry = it->second;
  entry.is_in_process = false;
  --in_process_;
  if (entry.was_taken_as_low && low_in_process_-- == max_low_ && !turns_[static_cast<int>(Priority::kLow)].empty()) {
    WakeOneLocked();
  }
  if (entry.is_dirty && shut_downs_ == 0) {
    entry.is_dirty = false;
    const Priority priority = entry.priority;
    --adds_;  // The add that made it dirty was counted.
    AddLocked(entry, priority);
  } else if (entry.IsIdle()) {
    ForgetLocked(it);
  }
  if (shut_downs_ > 0) drained_.NotifyAll();
}

void WorkQueue::ShutDown() {
  std::lock_guard lock(mutex_);
  ++shut_downs_;
  ready_changed_.NotifyAll();
  timer_changed_.NotifyAll();
  drained_.NotifyAll();
}

bool WorkQueue::Drain(TimePoint until) {
  std::unique_lock lock(mutex_);
  const int shut_downs = shut_downs_;
  while (in_process_ > 0) {
    if (clock_.Now() >= until || shut_downs_ != shut_downs) return false;
    clock_.WaitUntil(lock, drained_, until);
  }
  return true;
}

WorkQueue::Counts WorkQueue::counts() const {
  std::lock_guard lock(mutex_);
  return {depth_, delayed_count_, in_process_, adds_};
}

}  // namespace kube
