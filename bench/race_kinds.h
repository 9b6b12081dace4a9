// SPDX-License-Identifier: Apache-2.0
// The kinds of rounds: what gang and outsiders ask for, who the outsiders are, and who makes the members.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bench {

enum class RaceKind {
  kNvidia,
  kAmd,        // As kNvidia, of GPUs of another maker.
  kCpu,        // As kNvidia, of CPUs; there are no GPUs.
  kUngated,    // Outsiders belong to another gang, but have no gate.
  kPreemptor,  // One outsider is of higher priority, and the scheduler ends another pod for it.
  kJobs,       // As kNvidia; the members are those of a Job.
};
const char* ToString(RaceKind kind);
std::optional<RaceKind> ParseRaceKind(const std::string& name);
std::vector<RaceKind> AllRaceKinds();
const char* ResourceOf(RaceKind kind);

}  // namespace bench
