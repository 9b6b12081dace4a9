// SPDX-License-Identifier: Apache-2.0
// What a container has of a GPU by the driver, beside what it has by its own account. Pure; not thread-safe.
//
// The two are not read at the same instant, and a program may free gigabytes in between, so only what all of the last
// looks say is believed, and each look is compared with the most that the account said since the one before. What
// the account says may be anything: what it claims too much costs its own container, and what it hides the driver sees.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "clientlib/base/clock.h"
#include "nodeagent/limits/share_folder.h"

namespace grus {

// A process of the container on the GPU, as the driver has it.
struct DriverProcess {
  std::vector<int> pids = {};  // Its numbers in the PID namespaces that it is in; empty: not known, it has just ended.
  std::uint64_t memory_bytes = 0;
};

class ShareUse {
 public:
  // `beside`: what it is taken to have beside until three looks were noted: what an agent before has found out.
  explicit ShareUse(std::uint64_t beside) : beside_(beside) {}

  // Contexts and code that a process may have beside what its account says, as nobody counts them.
  static constexpr std::uint64_t kOfProcess = std::uint64_t{1} << 30;
  // What escaped is told of from here on, once it has been so for a while.
  static constexpr std::uint64_t kTold = std::uint64_t{64} << 20;
  static constexpr kube::Duration kToldAfter = std::chrono::seconds(10);

  void NoteMemory(std::uint64_t by_account);  // Ten times a second; 0: the account cannot be read.
  // After each look of the probe. Of one GPU.
  void NoteLook(const std::vector<DriverProcess>& processes, const std::vector<AccountCopy::Process>& account,
                kube::TimePoint at);

  std::uint64_t beside_bytes() const { return beside_; }
  // What processes have that are not in the account, or far more than is there; 0: no more than kTold, or not for long.
  std::uint64_t escaped_bytes() const { return escaped_; }

 private:
  std::uint64_t by_account_ = 0, most_by_account_ = 0;  // The most since the last look.
  std::array<std::uint64_t, 3> excesses_ = {};          // By the last looks.
  std::size_t looks_ = 0;
  std::uint64_t beside_ = 0, escaped_ = 0;
  std::optional<kube::TimePoint> escaped_since_;  // More than kTold.
};

}  // namespace grus
