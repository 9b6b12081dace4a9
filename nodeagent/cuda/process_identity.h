// SPDX-License-Identifier: Apache-2.0
// Which process it is: its number and when it started, by /proc. It stays the same over exec, and no other process of
// the container ever has the same.
//
// The numbers are those of the mounted /proc, so a process in a PID namespace of its own that still sees the /proc of
// its container (as of `unshare --pid` without `--mount-proc`) has one that the others know. With a /proc of its own it
// has not: the others may take it for dead. SharedAccount says what then happens.
// Thread-safe. All set errno.
#pragma once

#include <cstdint>

namespace grus::cuda {

struct ProcessIdentity {
  std::int32_t pid;       // 0: none.
  std::uint64_t started;  // In the kernel's ticks since boot; 0: not known, as there is no /proc.
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

ProcessIdentity ThisProcess();

// False once it has ended, also while its parent has not waited for it. True in doubt: it cannot be looked at.
bool IsAlive(const ProcessIdentity& process);

}  // namespace grus::cuda
