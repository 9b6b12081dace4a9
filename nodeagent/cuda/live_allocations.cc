// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/live_allocations.h"

#include <pthread.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <new>

#include "nodeagent/cuda/wiped_memory.h"

namespace grus::cuda {

// Zeroed in a forked child: an unlocked lock and no table. The table itself is not even mapped there.
struct LiveAllocations::State {
  pthread_mutex_t mutex;
  LiveAllocation* slots;  // Those with key 0 are free.
  std::size_t capacity;   // A power of two.
  std::size_t count;
};

namespace {

constexpr std::size_t kFirstCapacity = 1024;

class Locked {
 public:
  explicit Locked(pthread_mutex_t& mutex) : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Locked() {
    pthread_mutex_unlock(&mutex_);
    errno = errno_;
  }

 private:
  const int errno_ = errno;
  pthread_mutex_t& mutex_;
};

LiveAllocation* MapSlots(std::size_t capacity) {
  if (capacity > SIZE_MAX / sizeof(LiveAllocation)) return nullptr;
  const std::size_t bytes = capacity * sizeof(LiveAllocation);
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  madvise(start, bytes, MADV_DONTFORK);
  return static_cast<LiveAllocation*>(start);
}

// Keys are multiples of 512 and more, often at equal distances: Fibonacci hashing spreads those.
std::size_t HomeOf(std::uint64_t key, std::size_t capacity) {
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >> (64 - std::countr_zero(capacity)));
}

// Where `key` is, or where it would go. REQUIRES: a slot is free.
std::size_t SlotOf(const LiveAllocation* slots, std::size_t capacity, std::uint64_t key) {
  std::size_t at = HomeOf(key, capacity);
  while (slots[at].key != 0 && slots[at].key != key) at = (at + 1) & (capacity - 1);
  return at;
}

// Closes the gap that it leaves, so that no search passes over slots of what is gone.
void RemoveAt(LiveAllocation* slots, std::size_t capacity, std::size_t gap) {
  const std::size_t mask = capacity - 1;
  for (std::size_t at = (gap + 1) & mask; slots[at].key != 0; at = (at + 1) & mask) {
    const std::size_t distance = (at - HomeOf(slots[at].key, capacity)) & mask;
    if (distance < ((at - gap) & mask)) continue;  // It would come to lie before its home.
    slots[gap] = slots[at];
    gap = at;
  }
  slots[gap] = {};
}

}  // namespace

LiveAllocations* LiveAllocations::Make() {
  const int kept = errno;
  void* const state = MapWipedOnFork(sizeof(State));
  void* const self = mmap(nullptr, sizeof(LiveAllocations), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = kept;
  if (state == nullptr || self == MAP_FAILED) return nullptr;
  return new (self) LiveAllocations(static_cast<State*>(state));
}

bool LiveAllocations::Insert(const LiveAllocation& allocation, LiveAllocation* replaced) {
  *replaced = {};
  if (allocation.key == 0) return false;
  const Locked lock(state_->mutex);
  // At most three slots of four are taken.
  if ((state_->count + 1) * 4 > state_->capacity * 3) {
    const std::size_t capacity = state_->capacity == 0 ? kFirstCapacity : state_->capacity * 2;
    LiveAllocation* const slots = MapSlots(capacity);
    if (slots == nullptr && state_->count + 1 >= state_->capacity) return false;
    if (slots != nullptr) {
      for (std::size_t i = 0; i < state_->capacity; ++i) {
        const LiveAllocation& one = state_->slots[i];
        if (one.key != 0) slots[SlotOf(slots, capacity, one.key)] = one;
      }
      if (state_->slots != nullptr) munmap(state_->slots, state_->capacity * sizeof(LiveAllocation));
      state_->slots = slots;
      state_->capacity = capacity;
    }
  }
  LiveAllocation& slot = state_->slots[SlotOf(state_->slots, state_->capacity, allocation.key)];
  if (slot.key != 0) *replaced = slot;
  else ++state_->count;
  slot = allocation;
  return true;
}

bool LiveAllocations::Find(std::uint64_t key, LiveAllocation* found) {
  if (key == 0) return false;
  const Locked lock(state_->mutex);
  if (state_->count == 0) return false;
  const LiveAllocation& slot = state_->slots[SlotOf(state_->slots, state_->capacity, key)];
  if (slot.key == 0) return false;
  *found = slot;
  return true;
}

bool LiveAllocations::Take(std::uint64_t key, LiveAllocation* taken) {
  if (key == 0) return false;
  const Locked lock(state_->mutex);
  if (state_->count == 0) return false;
  const std::size_t at = SlotOf(state_->slots, state_->capacity, key);
  if (state_->slots[at].key == 0) return false;
  *taken = state_->slots[at];
  RemoveAt(state_->slots, state_->capacity, at);
  --state_->count;
  return true;
}

void LiveAllocations::EraseAllOf(std::uint64_t context, Callback callback, void* data) {
  constexpr std::size_t kAtOnce = 64;
  LiveAllocation erased[kAtOnce];
  std::size_t next = 0;
  // Until a whole pass finds none: between two holds of the lock others may move slots to where it has looked already.
  // Programs that never stop to insert are not waited for.
  constexpr int kMostPasses = 8;
  bool is_clean = false;
  for (int passes = 0; !is_clean && passes < kMostPasses;) {
    std::size_t count = 0;
    {
      const Locked lock(state_->mutex);
      const bool is_whole_pass = next == 0;
      while (next < state_->capacity && count < kAtOnce) {
        const LiveAllocation& slot = state_->slots[next];
        if (slot.key == 0 || slot.context != context) {
          ++next;
          continue;
        }
        erased[count++] = slot;
        RemoveAt(state_->slots, state_->capacity, next);  // Another one may lie at `next` now.
        --state_->count;
      }
      is_clean = is_whole_pass && count == 0;
      if (next >= state_->capacity) {
        next = 0;
        ++passes;
      }
    }
    for (std::size_t i = 0; i < count; ++i) callback(erased[i], data);
  }
}

void LiveAllocations::Reassign(std::uint64_t context, std::uint64_t other) {
  const Locked lock(state_->mutex);
  for (std::size_t i = 0; i < state_->capacity; ++i) {
    LiveAllocation& slot = state_->slots[i];
    if (slot.key != 0 && slot.context == context) slot.context = other;
  }
}

std::size_t LiveAllocations::size() {
  const Locked lock(state_->mutex);
  return state_->count;
}

}  // namespace grus::cuda
