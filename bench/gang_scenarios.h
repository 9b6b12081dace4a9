// SPDX-License-Identifier: Apache-2.0
// The scenarios of gang_bench. Each prints its table; false: something did not come to its end. A limit that is not met
// is no such thing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/gang_objects.h"
#include "bench/race_kinds.h"

namespace bench {

// All that a cluster of 100 nodes of 8 GPUs takes, as 100 gangs of 8 and as 800 plain pods; and as pods whose creator
// lifts their gates, without any controller, which is the least that gates cost.
bool RunFill(const GangWorld& world, int rounds);
// The same as 100 ElasticHorovodJobs of 8 workers, with and without the controller of gangs; and
// without it, but with gates that somebody lifts as soon as the pods are there, which is the least that gates cost.
bool RunElastic(const GangWorld& world, int rounds);
// The same of one gang of 512; 500 nodes.
bool RunLarge(const GangWorld& world, int rounds);
// How soon a gang that cannot start says so; 500 nodes of 8 GPUs.
bool RunCannotFit(const GangWorld& world, int rounds);
// grus-manager beside 4,000 plain pods; 500 nodes of 8 GPUs.
bool RunMemory(const GangWorld& world);
struct QueueOptions {
  int run_seconds = 30;  // Of each gang.
  std::string nominations = "auto";
};
// 53 whole-node gangs on 32 nodes.
bool RunKnavigator(const GangWorld& world, const QueueOptions& options);

struct RaceOptions {
  int rounds = 300;
  std::uint64_t seed = 1;
  std::vector<RaceKind> kinds;
  std::string only;         // "auto" or "never"; empty: both.
  bool is_verbose = false;  // The history of every round, not only of the bad ones.
};
// Gangs and outsiders that come at the worst moments.
bool RunRaces(const GangWorld& world, const RaceOptions& options);

// One Job of backoffLimit 6, rolled back so many times, which then starts; 6 nodes.
bool RunRollbacks(const GangWorld& world, int rollbacks);

}  // namespace bench
