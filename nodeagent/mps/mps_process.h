// SPDX-License-Identifier: Apache-2.0
// Programs that outlive the agent, and short ones that read commands. Not by a Clock: they run in real time, also in
// tests.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

// A process, also after another one got its PID.
struct ProcessMark {
  pid_t pid = 0;
  std::uint64_t started = 0;  // In clock ticks since the machine started.
  friend bool operator==(const ProcessMark&, const ProcessMark&) = default;
};

using Variables = std::vector<std::pair<std::string, std::string>>;  // Added to our environment; they replace.

// Starts a program in a session of its own, without our files, and with its output at the end of the file `output`. Its
// process group has its PID. Errors: kNotFound (no such program), kUnavailable.
kube::Result<ProcessMark> StartProcess(const std::vector<std::string>& words, const Variables& variables,
                                       const std::string& output);
// False also for one that has ended and that nobody has waited for. If it is a child of ours, its end is collected.
bool IsRunning(const ProcessMark& process);
// To it and its process group. No effect if it has ended.
void SignalGroup(const ProcessMark& process, int signal);

// Runs a program with `input` on its standard input; its output is dropped. Blocks for `limit` at most: then it is
// killed. Errors: kNotFound, kUnavailable (it failed), kTimeout.
kube::Status RunWithInput(const std::vector<std::string>& words, const Variables& variables, const std::string& input,
                          std::chrono::milliseconds limit);

}  // namespace grus
