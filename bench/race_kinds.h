// SPDX-License-Identifier: Apache-2.0
// The kinds of rounds: what gang and outsiders ask for, and who the outsiders are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/gang_objects.h"

namespace bench {

enum class RaceKind {
  kNvidia,
  kAmd,      // As kNvidia, of GPUs of another maker.
  kCpu,      // As kNvidia, of CPUs; there are no GPUs.
  kUngated,  // Outsiders belong to another gang, but have no gate.
};
const char* ToString(RaceKind kind);
std::optional<RaceKind> ParseRaceKind(const std::string& name);
std::vector<RaceKind> AllRaceKinds();

const char* ResourceOf(RaceKind kind);
// Every node has 8 units of the resource of this kind, and none of those of others that are no CPUs.
kube::Status PrepareNodes(const GangWorld& world, RaceKind kind);

}  // namespace bench
