// SPDX-License-Identifier: Apache-2.0
// The folder by which the agent tells a container its parts of GPUs, and learns what its processes have: the agent's
// side of nodeagent/cuda/share_files.h. And the file that brings the library into its programs: each container has its
// own, as its root can take a lease on it, for which whoever starts a program there waits.
//
// What is read of `account` was written by the container, and may be anything: it is copied, never mapped, and each
// number is held within what can be. Nothing waits for the container: no lock is taken, and nor is a
// file read of which it has a lease. Threads may use several of
// these at once; Make() and WriteLimits() of one folder are for one thread at a time. Blocks for files alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

inline constexpr char kPreloadFile[] = "ld.so.preload";

// What a container may have of a GPU.
struct ShareLimits {
  std::string gpu;                 // "GPU-…" or "MIG-…".
  std::uint64_t memory_bytes = 0;  // 0: no limit.
  std::uint64_t context_bytes = 0;
  std::uint64_t beside_bytes = 0;
  // What it may have past memory_bytes, which lies in the host's memory while the GPU has no room; 0: nothing.
  std::uint64_t paged_bytes = 0;
  std::uint32_t milli = 0;  // 0: time is not limited.
  std::uint32_t rate_milli = 0;
};

// What a container says it has.
struct AccountCopy {
  struct Gpu {
    std::uint64_t memory_bytes = 0;  // The sum of its processes.
    std::uint64_t most_memory_bytes = 0;
    std::uint64_t refused = 0;
    std::chrono::nanoseconds balance = {}, charged = {}, waited = {};
    std::chrono::nanoseconds filled = {};  // Of the monotonic clock.
    std::vector<std::uint32_t> busy = {};  // Its timeline; see lending.h.
  };
  struct Process {
    int pid = 0;                              // As the container counts; it may have ended.
    std::uint64_t started = 0;                // In ticks since boot.
    std::vector<std::uint64_t> memory_bytes;  // Of each entry.
  };
  std::vector<Gpu> gpus;  // Entries: see EntriesOf().
  std::vector<Process> processes;
};

// How many entries the files have for these parts: one for each, in their order, and then one for each that may have
// paged memory, where that counts.
std::size_t EntriesOf(std::span<const ShareLimits> parts);

class ShareFolder {
 public:
  explicit ShareFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // All files, with an account in which nobody has anything; each of them whole or not at all. Only before a start of
  // the container: what runs in it keeps the files that it found. Their room on the disk is taken here. A folder in the
  // place of one, as container runtimes make where they find no file to mount, goes.
  kube::Status Make(std::span<const ShareLimits> parts, std::chrono::nanoseconds monotonic_now) const;

  // Changes the limits in place. REQUIRES: the GPUs of Make(), in the same order, with paged memory where there was
  // some.
  kube::Status WriteLimits(std::span<const ShareLimits> parts, std::chrono::nanoseconds monotonic_now) const;

  // As the agent wrote them last, also an earlier agent, but for the rate, which is what is guaranteed: nothing is lent
  // at first. `gpu`: the UUID of the one GPU that they are to be for. Errors: there are none, or they were written by
  // another version, or for another GPU.
  kube::Result<ShareLimits> ReadLimits(const std::string& gpu) const;
  bool HasLimits() const;  // Of any version of grus.
  bool HasAccount() const;
  void RemoveAccount() const;

  // The first `entries` of them.
  kube::Result<AccountCopy> ReadAccount(std::size_t entries) const;
  // The same without processes, with the sums as the container's own programs keep them: a hundredth of the work.
  kube::Result<std::vector<AccountCopy::Gpu>> ReadSums(std::size_t entries) const;

 private:
  const std::string path_;
};

}  // namespace grus
