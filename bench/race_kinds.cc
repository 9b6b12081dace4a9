// SPDX-License-Identifier: Apache-2.0
#include "bench/race_kinds.h"

#include "bench/gang_objects.h"
#include "bench/race_objects.h"

namespace bench {
namespace {

struct Description {
  RaceKind kind;
  const char* name;
  const char* resource;
};
constexpr Description kDescriptions[] = {
    {RaceKind::kNvidia, "nvidia", kGpus},
    {RaceKind::kAmd, "amd", kAmdGpus},
    {RaceKind::kCpu, "cpu", kCpus},
    {RaceKind::kUngated, "ungated", kGpus},
    {RaceKind::kPreemptor, "preemptor", kGpus},
    {RaceKind::kJobs, "jobs", kGpus},
};

const Description& Describe(RaceKind kind) { return kDescriptions[static_cast<int>(kind)]; }

}  // namespace

const char* ToString(RaceKind kind) { return Describe(kind).name; }

std::optional<RaceKind> ParseRaceKind(const std::string& name) {
  for (const Description& description : kDescriptions) {
    if (description.name == name) return description.kind;
  }
  return std::nullopt;
}

std::vector<RaceKind> AllRaceKinds() {
  std::vector<RaceKind> all;
  for (const Description& description : kDescriptions) all.push_back(description.kind);
  return all;
}

const char* ResourceOf(RaceKind kind) { return Describe(kind).resource; }

}  // namespace bench
