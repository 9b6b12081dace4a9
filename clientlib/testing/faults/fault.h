// SPDX-License-Identifier: Apache-2.0
// What can go wrong, and when: a schedule is one line of text, and the same line gives the same run. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"

namespace kube::testing {

// What the number of a fault counts: from 0, over all processes of a run.
enum class FaultPoint {
  kWrite,    // Writes of objects that are not events or leases.
  kRead,     // GETs and lists.
  kOpen,     // Openings of watches and logs.
  kEvent,    // Lines of watches, and pieces of logs, that readers get.
  kRenewal,  // Writes of leases.
  kQuery,    // Questions to the server that World::asked is.
};
inline constexpr std::size_t kFaultPoints = 6;

struct FaultKind {
  std::string_view name;  // "crash-after"
  FaultPoint point;
  std::string_view what;  // One line for people.
};

// All kinds, grouped by point.
const std::vector<FaultKind>& AllFaultKinds();
const FaultKind* FindFaultKind(std::string_view name);  // Null: there is none.

struct Fault {
  const FaultKind* kind = nullptr;
  int at = 0;
  bool Is(std::string_view name) const { return kind->name == name; }
};

struct Schedule {
  std::string workload;
  std::uint64_t seed = 1;
  std::vector<Fault> faults;  // None: the run that others are compared with.
};

// "elastic-start seed=7 crash-after@12 watch-gone@3"
std::string ToText(const Schedule& schedule);
// Errors: kInvalidArgument, which says what is allowed.
Result<Schedule> ParseSchedule(std::string_view text);

}  // namespace kube::testing
