// SPDX-License-Identifier: Apache-2.0
// How many GPUs each job of a pool gets, and on which nodes: a snapshot in, a plan out.
//
//  1. Minimum: gangs get theirs, the one with the least attained service first. Service is aged: a job is owed a
//     small share of its minimum for as long as it exists. One that is owed much comes before all younger jobs
//     until it has got it, so that nobody starves.
//  2. Gain: what is left goes, step by step, to the job whose work gains most for a GPU. A step may be any larger
//     legal size, because speed may stand still up to the border of a node and rise behind it. Jobs with little
//     attained service count more: most jobs are short, and short ones end soonest. Of those that have had very much,
//     one is favoured: it counts nearly as a new one until it ends. Shared equally, they would all end last.
//  3. Place: jobs whose size stays keep their nodes. The others follow, the largest first, on one node if they
//     fit, else on whole nodes. Where room is scattered, small jobs are moved; where that does not help, the job
//     gets less.
// A size other than the current one must pay for the restart (see size_ladder.h), so jobs do not change all the time.
//
// The same snapshot gives the same plan, whatever the order of its jobs. O(J log J + S + G log J) for J jobs with S
// legal sizes in total that share G GPUs; O(N) more, N nodes, for each job that small jobs are moved for.
//
// Pure: no I/O, clock or random source; safe from any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace grus {

enum class SizeStep {
  kAny,         // Any number of workers. Above one node only whole nodes are tried, and the maximum.
  kPowerOfTwo,  // 1, 2, 4, ... workers.
  kWholeNodes,  // As many workers as fill a number of nodes.
};

// A point of a job's speed curve. The unit of speed is that of all points of the job, for example samples a second.
struct SpeedPoint {
  int gpus = 0;
  double speed = 0;
  double low = 0, high = 0;  // The band: low <= speed <= high.
};

struct NodeWorkers {
  std::size_t node = 0;  // Index into AllocationSnapshot::nodes.
  int workers = 0;

  friend bool operator==(const NodeWorkers&, const NodeWorkers&) = default;
};

struct PoolNode {
  std::string name;
  int gpus = 0;  // For jobs of the snapshot: what pods of others hold is not among them.
};

struct PoolJob {
  std::string key;      // NAMESPACE/NAME; unique. Of jobs that are equal in all else, the smallest key comes first.
  int min_workers = 1;  // At least 1: fewer are no gang.
  int max_workers = 1;
  SizeStep step = SizeStep::kAny;
  int gpus_per_worker = 1;          // On one node.
  std::vector<SpeedPoint> curve;    // Ascending by GPUs; empty before any measurement.
  std::vector<NodeWorkers> places;  // Now, ascending by node; empty: it waits.
  double attained_gpu_seconds = 0;  // Since it was queued, as are the next two.
  double age_seconds = 0;
  int resizes = 0;                 // Starts are none.
  double resize_cost_seconds = 0;  // That a restart takes.
};

// One pool: nodes alike, one queue. GPUs of other pools or queues are another snapshot.
struct AllocationSnapshot {
  std::vector<PoolNode> nodes;  // Of equal nodes the first is taken: keep their order from pass to pass.
  std::vector<PoolJob> jobs;
};

enum class GrantReason {
  kKept,       // As it was.
  kStarted,    // 0 -> at least its minimum.
  kGrown,      // More workers gain more than others would with these GPUs.
  kShrunk,     // Others gain more, or are owed their minimum.
  kMoved,      // Same size, other nodes: it makes room for a larger job.
  kPreempted,  // Running -> 0: jobs with less service are owed their minimum.
  kWaiting,    // 0 -> 0: jobs with less service come first.
  kCannotFit,  // 0: no legal size, or the empty pool could not hold it at its minimum.
};
std::string_view ToString(GrantReason reason);

struct Grant {
  std::string_view job;             // PoolJob::key of the snapshot, which must outlive the plan.
  int from = 0, to = 0;             // Workers.
  std::vector<NodeWorkers> places;  // Ascending by node; their workers are `to`.
  GrantReason reason = GrantReason::kKept;
};

// One grant for each job, in the order of the snapshot's jobs.
// REQUIRES: keys are unique; 1 <= min_workers <= max_workers; gpus_per_worker >= 1; curves ascend and have positive
// speeds; places name nodes of the snapshot. Nodes may have lost GPUs: places that they cannot hold any more are given
// up.
std::vector<Grant> Allocate(const AllocationSnapshot& snapshot);

}  // namespace grus
