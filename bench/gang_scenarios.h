// SPDX-License-Identifier: Apache-2.0
// The scenarios of gang_bench. Each prints its table; false: a part did not finish. A missed limit does not count as
// that.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/gang_objects.h"
#include "bench/race_kinds.h"

namespace bench {

// Fills a cluster of 100 nodes of 8 GPUs with 100 gangs of 8 and with 800 plain pods; and with pods whose creator lifts
// their gates, without any controller, which is the least that gates cost.
bool RunFill(const GangWorld& world, int rounds);
// The same with 100 ElasticHorovodJobs of 8 workers, with and without the gang controller; and without it, but with
// gates that are lifted as soon as the pods exist, which is the least that gates cost.
bool RunElastic(const GangWorld& world, int rounds);
// The same of one gang of 512; 500 nodes.
bool RunLarge(const GangWorld& world, int rounds);
// How soon the status of a gang that cannot start says so; 500 nodes of 8 GPUs.
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
// Gangs, and outsiders that arrive at the worst moments.
bool RunRaces(const GangWorld& world, const RaceOptions& options);

// 1,000 pods that ask for parts of the GPUs of 100 nodes, as gangs of 8 and of one, against as many that ask for whole
// GPUs of 125 others. Also false: a GPU was given twice, by any revision of any pod.
bool RunParts(const GangWorld& world, int rounds);

// One Job of backoffLimit 6, rolled back so many times, which then starts; 6 nodes.
bool RunRollbacks(const GangWorld& world, int rollbacks);

}  // namespace bench
