// SPDX-License-Identifier: Apache-2.0
// The file of a fake driver's world, mapped: its lock, who is alive, and what each has.
//
// BasicLockable; what is marked REQUIRES LOCK is called with it held. A process that dies with it is no obstacle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/nodeagent/cuda/fake/world_state.h"

namespace grus::cuda::fake {

class WorldFile {
 public:
  // Null where there is none, or where it is not one of these.
  static std::unique_ptr<WorldFile> Open(const std::string& path);
  // An empty one, with nothing set but the lock. Null if it cannot be made.
  static std::unique_ptr<WorldFile> Make(const std::string& path);
  // Frees the place of this process too, as each closing of the file in it does.
  ~WorldFile();
  WorldFile(const WorldFile&) = delete;
  WorldFile& operator=(const WorldFile&) = delete;

  WorldState& state() { return *state_; }
  void lock();
  void unlock();

  std::int32_t TakePlace();  // REQUIRES LOCK. kNobody: all are taken.
  void Sweep();              // REQUIRES LOCK. Frees the places of the dead.
  // What needs room moves managed memory to the host. REQUIRES LOCK. False: there is not enough.
  bool Charge(std::int32_t place, int gpu, std::uint64_t bytes);
  void GiveBack(std::int32_t place, int gpu, std::uint64_t bytes);  // REQUIRES LOCK.

  // Managed memory lies on the GPU as far as there is room, and comes back there when a kernel of its process runs, in
  // the place of that of others. Each process has bytes of it, and no places in them. REQUIRES LOCK.
  void AddManaged(std::int32_t place, int gpu, std::uint64_t bytes);
  void TakeManaged(std::int32_t place, int gpu, std::uint64_t bytes);

  // Nanoseconds of CLOCK_MONOTONIC, or of the world's own clock.
  std::uint64_t Now() const;
  // Returns at `time`, which is at once in virtual time: its clock is moved there.
  void WaitUntil(std::uint64_t time);

  // Queues work of that many nanoseconds behind all that is queued on the GPU and says when it ends; 0: the queue is
  // full, until `*retry`. Nothing else is known of a GPU: it does one thing at a time, in order. REQUIRES LOCK.
  std::uint64_t Queue(std::int32_t place, int gpu, std::uint64_t nanoseconds, std::uint64_t* retry);
  std::uint64_t BusyOf(std::int32_t place, int gpu);  // Until now. REQUIRES LOCK.
  std::uint64_t BusyOfAll(int gpu);                   // REQUIRES LOCK.

 private:
  WorldFile(int file, WorldState* state) : file_(file), state_(state) {}
  bool IsAlive(std::int32_t place) const;
  void Free(std::int32_t place);
  void Repair();
  // Until there are so many bytes of room, or all of it but that of `but_place` is in the host's memory.
  void Evict(int gpu, std::uint64_t room, std::int32_t but_place);
  void BringBack(std::int32_t place, int gpu);
  void Retire(FakeGpu& gpu);

  const int file_;
  WorldState* const state_;
};

// When a process started, in the kernel's ticks since boot; 0: there is none.
std::uint64_t StartOf(std::int32_t pid);

}  // namespace grus::cuda::fake
