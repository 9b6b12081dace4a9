// SPDX-License-Identifier: Apache-2.0
// What a test sets up for the fake driver, and asks it: who has how much, of which GPU, and how long it was busy.
//
// The file is made in a folder of the test; processes that have kVariable in their environment live in that world. What
// is asked for is exact at that time: what a dead process had is free. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/nodeagent/cuda/fake/world_file.h"

namespace grus::cuda::fake {

inline constexpr char kVariable[] = "GRUS_FAKE_CUDA";

struct WorldSetup {
  std::vector<std::uint64_t> gpus = {std::uint64_t{16} << 30};  // Bytes of each.
  int driver_version = 12090;
  std::uint64_t context_bytes = 300 * kMiB;  // Each context takes that much beside what is allocated in it.
  std::uint64_t granularity = 2 * kMiB;      // Of cuMemCreate().
  std::uint64_t rounding = 512;              // Plain allocations and arrays are charged a multiple of it.
  std::uint64_t pool_chunk = 32 * kMiB;      // Pools grow by multiples of it.
  bool reuses_addresses = false;             // Once nothing is allocated. Else each is new.
  bool can_move_managed = true;              // Else managed memory is as plain memory is.
  bool is_virtual = false;                   // GPU time passes by Advance() and by waiting for it, and not by itself.
};

class FakeWorld {
 public:
  // Throws std::runtime_error if there is such a file, or it cannot be made.
  explicit FakeWorld(std::string path, const WorldSetup& setup = {});
  ~FakeWorld();
  FakeWorld(const FakeWorld&) = delete;
  FakeWorld& operator=(const FakeWorld&) = delete;

  const std::string& path() const { return path_; }
  // As the environment names it: "GRUS_FAKE_CUDA=PATH".
  std::string Environment() const { return std::string(kVariable) + "=" + path_; }

  static std::array<unsigned char, 16> Uuid(int gpu);
  static std::string UuidText(int gpu);  // As NVML says it, "GPU-…".

  std::uint64_t Used(int gpu);  // What lies there.
  std::uint64_t Free(int gpu);
  std::uint64_t Managed(int gpu);                   // Of Used(): what can be moved from there.
  std::uint64_t InHost(int gpu);                    // What was moved, or never lay there.
  std::uint64_t UsedBy(std::int32_t pid, int gpu);  // By the process's number as it knows it itself.
  std::vector<std::int32_t> Processes();            // Those that are alive and have called cuInit().

  // GPU time that has passed until now. A process that has died has none; BusyNs(gpu) keeps what it had.
  std::uint64_t BusyNs(std::int32_t pid, int gpu);
  std::uint64_t BusyNs(int gpu);
  std::uint64_t Now();
  void Advance(std::uint64_t nanoseconds);  // REQUIRES: is_virtual.

  // The nth call from now on of an exported function, by any process, returns `code` and does nothing; 0: each call.
  void Fail(const std::string& function, std::uint32_t nth, int code);
  // cuGetProcAddress() does not know the name; that of the exported function or that which is asked for.
  void Lack(const std::string& function);
  void ForgetFaults();

  // The next call of an exported function stays in the driver, before or after it has done what it does, until LetGo();
  // ten seconds at most. One at a time.
  void HoldBefore(const std::string& function);
  void HoldAfter(const std::string& function);
  void AwaitHeld();  // That it is there.
  bool IsHeld() const;
  void LetGo();

 private:
  // Not yet seen: `fault_count` is for the caller to raise.
  FakeFault& AddFault(const std::string& function, std::uint32_t is_missing, std::uint32_t nth, int code);

  const std::string path_;
  const std::unique_ptr<WorldFile> file_;
  FakeFault* hold_ = nullptr;
};

}  // namespace grus::cuda::fake
