// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/work_queue.h"

#include <algorithm>
#include <cassert>

namespace kube {

void WorkQueue::Add(const ObjectKey& key, Priority priority) {
  std::lock_guard lock(mutex_);
  if (shut_downs_ == 0) AddLocked(key, priority);
}

void WorkQueue::AddLocked(Entries::value_type& keyed, Priority priority) {
  auto& [key, entry] = keyed;
  ++adds_;
  if (entry.is_in_process) {
    entry.priority = entry.is_dirty ? std::max(entry.priority, priority) : priority;
    entry.is_dirty = true;
    return;
  }
  if (entry.is_ready && entry.priority >= priority) return;
  if (!entry.is_ready) {
    const TimePoint now = clock_.Now();
    if (now < entry.not_before) return DelayLocked(key, entry, entry.not_before, priority);
    entry.is_ready = true;
    entry.ready_since = now;
    ++depth_;
  }
  entry.priority = priority;
  ready_[static_cast<int>(priority)].push_back(&keyed);
  ++entry.places;
  if (priority != Priority::kLow || low_in_process_ < max_low_) WakeOneLocked();
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
  DelayLocked(key, entries_[key], DueIn(delay), priority);
}

void WorkQueue::AddNotBefore(const ObjectKey& key, Duration delay, Priority priority) {
  {
    std::lock_guard lock(mutex_);
    // The caller reconciles the key, so it is in process and not ready.
    if (shut_downs_ == 0) entries_[key].not_before = DueIn(delay);
  }
  AddAfter(key, delay, priority);
}

void WorkQueue::DelayLocked(const ObjectKey& key, Entry& entry, TimePoint due, Priority priority) {
  const bool was_delayed = entry.delayed_until != TimePoint::max();
  entry.delayed_priority = was_delayed ? std::max(entry.delayed_priority, priority) : priority;
  if (entry.delayed_until <= due) return;
  if (!was_delayed) ++delayed_count_;
  entry.delayed_until = due;
  const bool is_next = delayed_.empty() || due < delayed_.top().due;
  delayed_.push({due, key});
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
    AddLocked(*it, it->second.delayed_priority);
  }
}

std::optional<WorkQueue::Item> WorkQueue::TakeLocked() {
  for (const Priority priority : {Priority::kNormal, Priority::kLow}) {
    const bool is_low = priority == Priority::kLow;
    auto& ready = ready_[static_cast<int>(priority)];
    while (!ready.empty() && !(is_low && low_in_process_ >= max_low_)) {
      auto& [key, entry] = *ready.front();
      ready.pop_front();
      --entry.places;
      if (!entry.is_ready || entry.priority != priority) {
        if (entry.IsIdle()) entries_.erase(entries_.find(key));
        continue;
      }
      entry.is_ready = false;
      entry.is_in_process = true;
      entry.was_taken_as_low = is_low;
      if (is_low) ++low_in_process_;
      --depth_;
      ++in_process_;
      return Item{key, clock_.Now() - entry.ready_since, priority};
    }
  }
  return std::nullopt;
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
  if (entry.was_taken_as_low && low_in_process_-- == max_low_ && !ready_[static_cast<int>(Priority::kLow)].empty()) {
    WakeOneLocked();
  }
  if (entry.is_dirty && shut_downs_ == 0) {
    entry.is_dirty = false;
    const Priority priority = entry.priority;
    --adds_;  // The add that made it dirty was counted.
    AddLocked(*it, priority);
  } else if (entry.IsIdle()) {
    entries_.erase(it);
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
