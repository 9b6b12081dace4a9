// SPDX-License-Identifier: Apache-2.0
// The jobs of three teams that share a cluster: drawn from a seed, the same for all sides of the bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// As the YAML files beside this say: of the cluster's GPUs vision is guaranteed a half, the others a quarter each.
struct Team {
  std::string name;  // And that of its namespace.
  int guaranteed = 0;
};
std::vector<Team> TeamsOf(int gpus);

enum class MixClass { kInteractive, kInference, kUnattended, kGang };

struct MixJob {
  std::string name;
  int team = 0;
  MixClass job_class = MixClass::kUnattended;
  int workers = 1;  // What a user asks for who has to choose one number.
  int min_workers = 1, max_workers = 1;
  int gpus = 1;              // Of each worker.
  bool has_launcher = true;  // Set by the side: it trains only while a launcher runs, too.
  double run_seconds = 0;    // With `workers`; as long again with half of them. 0: it does not end by itself.
  double submitted_at = 0;   // Seconds.

  double Work() const { return run_seconds * workers * gpus; }  // GPU seconds.
};

// For fill: more than the cluster holds, of all classes and teams, submitted at once and without end.
std::vector<MixJob> DrawCrowd(int gpus, std::uint64_t seed);
// For reclaim: trainings and gangs of one team, half as much again as the cluster holds, without end.
std::vector<MixJob> DrawBorrowers(int gpus, std::uint64_t seed);
// What a team asks for that wants its guarantee back: trainings of 8 workers that cannot do with fewer.
std::vector<MixJob> MakeAsk(const Team& team, int index);
// For the big gang: 1 to 4 GPUs for some seconds, of all teams, so many that the cluster is always full.
std::vector<MixJob> DrawSmallJobs(int gpus, double seconds, std::uint64_t seed);
// All classes and teams; they come over `seconds` and use about as much as the cluster has in that time.
std::vector<MixJob> DrawDay(int gpus, double seconds, std::uint64_t seed);

}  // namespace bench
