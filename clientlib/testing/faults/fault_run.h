// SPDX-License-Identifier: Apache-2.0
// One run of a workload under one schedule of faults, in virtual time, and its outcome. Deterministic.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "clientlib/testing/faults/fault.h"
#include "clientlib/testing/faults/workload.h"

namespace kube::testing {

// The state at rest, ten minutes after everything became quiet.
struct RestState {
  // A pause between two tries (Workload::QuietTime()): the ten minutes come after `state`.
  bool is_pause = false;
  std::map<std::string, std::string> state;  // As Outcome::end.
  int writes = 0;                            // In these ten minutes.
  std::vector<std::string> complaints;       // Of Workload::CheckRest().
};

struct Outcome {
  // What is wrong by itself, one line each, whatever other runs did: a broken invariant, a step that never came, writes
  // at rest, a breach on the wire.
  std::vector<std::string> complaints;
  // "statefulsets.apps default/train-workers" -> its end state, volatile parts masked.
  std::map<std::string, std::string> end;
  std::vector<RestState> rests;  // One for each step that waits for rest.
  // "statefulsets.apps default/train-workers" -> "created 1, deleted 0".
  std::map<std::string, std::string> births;
  std::array<int, kFaultPoints> points{};  // How often each FaultPoint was passed, until all was at rest.
  bool has_faults_left = false;            // The run ended before they could happen.
  Duration took{};                         // Virtual.
  std::uint64_t last_revision = 0;
  Duration longest_takeover{};
};

Outcome Run(const Workload& workload, const Schedule& schedule);

// How `run` differs from `model`, a run without faults; empty: not at all.
std::vector<std::string> Compare(const Outcome& model, const Outcome& run);

}  // namespace kube::testing
