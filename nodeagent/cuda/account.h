// SPDX-License-Identifier: Apache-2.0
// The memory that the processes of a container have on its GPUs, as all of them count it together, and what they may
// have: the two files of share_files.h, as a process in the container uses them.
//
// What holds:
// - The sum of a GPU is that of the processes' own places, also after one was killed at any instruction.
// - Reserve() never takes the sum past the limit; Settle() may, by what the driver took beyond what was reserved.
// - A process has one place, by which it is found again after exec: then it has nothing any more. A forked child has
//   nothing of its parent's and takes a place of its own when it first reserves (see wiped_memory.h).
// - Each process knows itself what it has, and writes that, whatever stood in its place. So one that was taken for dead
//   while it was alive (in a PID or time namespace of its own below the container's) is counted again from its next
//   call on; until then the agent counts what the driver says it has, as `beside`.
//
// Other programs of the container can write anything into `account`. Numbers there cost at most refusals. A lock that
// is never released costs each call 2 s once, then 10 ms, and is refused. A file that is cut short or overwritten is
// found out within a tick of the kernel's clock (10 ms at most), and all is refused from then on; a call within that
// tick gets SIGBUS, and so does whoever reads time(). A program that rewrites the mutex at the very instant at which
// another holds it can crash that one; it could as well kill it.
//
// Thread-safe, but not for signal handlers. Time: the kernel's coarse monotonic clock, only to look at the file now and
// then; the clock may stand still or jump. Keeps errno. Prints one line for each reason why all is refused.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nodeagent/cuda/process_identity.h"
#include "nodeagent/cuda/share_files.h"

namespace grus::cuda {

// Says in one line on stderr that nothing more is allocated, and why.
void TellRefused(const char* why);

class SharedAccount {
 public:
  // Never freed. To be called when a program starts, before it allocates, and once for a folder: it forgets what this
  // process had before an exec. Null: if `why` is null too, there is no such folder, and nothing is limited; otherwise
  // it says what is wrong with the files, and all is to be refused.
  static SharedAccount* Open(const char* folder, const char** why);

  SharedAccount(const SharedAccount&) = delete;
  SharedAccount& operator=(const SharedAccount&) = delete;

  int gpu_count() const { return gpu_count_; }
  int IndexOf(const unsigned char (&uuid)[16]) const;  // -1: the container has no part of that GPU.

  // REQUIRES of all below: 0 <= gpu < gpu_count().
  const Limits& files() const { return *limits_; }
  const GpuLimits& limits(int gpu) const { return limits_->gpus[gpu]; }
  GpuTime& time(int gpu) { return account_->time[gpu]; }
  std::uint64_t Limit(int gpu) const;  // Bytes; 0: none.
  // Where memory past that limit counts, which has one of its own and may lie in the host's memory; -1: nowhere.
  int PagedOf(int gpu) const;

  // What all processes have that are alive, and what the agent knows beside. A damaged account: the limit, as nothing
  // can be had.
  std::uint64_t Used(int gpu);

  // False: it would go past the limit, also without the processes that are dead; or the account is of no use. Counts
  // also without a limit. `is_last`: it counts as refused then, as there is nowhere else to ask.
  bool Reserve(int gpu, std::uint64_t bytes, bool is_last = true);
  // What this process has does not go below 0.
  void GiveBack(int gpu, std::uint64_t bytes) { Settle(gpu, bytes, 0); }
  // Of `reserved`, `taken` were really taken, more or less. What the lock keeps from being written is written later.
  void Settle(int gpu, std::uint64_t reserved, std::uint64_t taken);
  void ForgetMine();

  // False: the files are damaged, for good. Cheap enough for each launch: it looks once in a tick of the clock.
  bool IsWhole();

 private:
  // Of this process alone. The lock guards what is not atomic.
  struct Mine {
    std::atomic<bool> is_known;  // `identity` is.
    ProcessIdentity identity;
    int place;  // In `processes`, counted from 1; 0: none yet.
    std::uint64_t memory[kMostGpus];
    std::atomic<std::uint64_t> looked;  // When the file was last looked at.
    std::atomic<bool> was_stuck, has_late;
    std::atomic<std::int64_t> late[kMostGpus];  // What `memory` lacks, as the lock was not to be had.
  };
  enum Trouble : unsigned { kDamaged = 1, kStuck = 2, kFull = 4 };

  SharedAccount() = default;
  bool Lock();
  void Unlock() { pthread_mutex_unlock(&account_->mutex); }
  // False: released again, as the account is damaged.
  bool BeginLocked(const ProcessIdentity& me, bool has_owner_died);
  void AddLateLocked();
  ProcessAccount* PlaceLocked();  // Null: there is none, or others took it away.
  bool TakePlaceLocked();         // False: all are taken.
  void SetMineLocked(int gpu, std::uint64_t bytes);
  void SetSumLocked(int gpu, std::uint64_t bytes);
  void FreeLocked(ProcessAccount& place);
  void RecountLocked();
  void Sweep();                   // Frees the places of the dead.
  bool Damaged(const char* why);  // False.
  void Tell(Trouble trouble, const char* why);

  const Limits* limits_;
  Account* account_;
  Mine* mine_;
  int gpu_count_;
  std::atomic<bool> is_damaged_;
  std::atomic<unsigned> told_;
};

}  // namespace grus::cuda
