// SPDX-License-Identifier: Apache-2.0
// Runs a program, without a shell, and returns what it prints. Thread-safe; blocks until the program has ended.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/result.h"

namespace kube {

struct ProgramCall {
  std::string program{};                                   // Searched in PATH if it has no slash.
  std::vector<std::string> args{};                         // Without the program's own name.
  std::vector<std::pair<std::string, std::string>> env{};  // Added to our environment; replaces.
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
  std::size_t output_limit = 1UL << 20;
  std::stop_token stop{};  // Ends it as the time limit does.
};

// Returns the standard output if the program ends with status 0. Its standard input is empty, its standard error is
// ours. Blocks for the time limit at most: then the program and its children are killed. Errors: kNotFound (no such
// program), kUnavailable (it failed), kTimeout, kCancelled, kTooLarge; no message contains what it printed.
Result<std::string> RunProgram(const ProgramCall& call);

}  // namespace kube
