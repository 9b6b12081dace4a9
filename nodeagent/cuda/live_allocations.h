// SPDX-License-Identifier: Apache-2.0
// What this process has allocated and not freed yet: by the driver's pointer or handle, what it takes in the account.
//
// A hash table in memory of its own, with open addressing: a call costs the same with 10 and with 10,000 live ones, but
// for the few that double it. It does not shrink. A forked child finds it empty, as it cannot use what its parent has.
// Thread-safe, but not for signal handlers. Keeps errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace grus::cuda {

struct LiveAllocation {
  std::uint64_t key;      // Pointer or handle; not 0.
  std::uint64_t bytes;    // As the account was charged.
  std::uint64_t context;  // With which it ends; 0: with none.
  std::int32_t gpu;
  std::uint32_t kind;  // As the caller numbers them.
};

class LiveAllocations {
 public:
  // Never freed; null: there is no memory.
  static LiveAllocations* Make();
  LiveAllocations(const LiveAllocations&) = delete;
  LiveAllocations& operator=(const LiveAllocations&) = delete;

  // False: there is no memory for it, or the key is 0. One with the same key was freed in a way that nobody saw: it is
  // replaced, and then in `replaced`, whose key is otherwise 0.
  bool Insert(const LiveAllocation& allocation, LiveAllocation* replaced);
  bool Find(std::uint64_t key, LiveAllocation* found);
  bool Take(std::uint64_t key, LiveAllocation* taken);  // Removes it, for one caller alone.

  // Removes those of a context and calls `callback` for each, without the lock. Those that are inserted meanwhile may
  // stay. Looks through all.
  using Callback = void (*)(const LiveAllocation& allocation, void* data);
  void EraseAllOf(std::uint64_t context, Callback callback, void* data);
  // Those of a context are of another from now on.
  void Reassign(std::uint64_t context, std::uint64_t other);

  std::size_t size();

 private:
  struct State;
  explicit LiveAllocations(State* state) : state_(state) {}
  State* const state_;  // Guarded by its own lock.
};

}  // namespace grus::cuda
