// SPDX-License-Identifier: Apache-2.0
// The sizes that a job may have, and what each is worth.
//
// Pure functions.
#pragma once

#include <span>
#include <vector>

#include "controllers/policy/allocation.h"

namespace grus {

// The smallest legal size above `workers`, as the job's step says; 0 if there is none up to its maximum.
// REQUIRES: workers_per_node >= 1.
int NextLegalSize(const PoolJob& job, int workers_per_node, int workers);

// Straight between the points of the curve. Beyond its ends in proportion to GPUs; but above its largest size, the low
// end of the band rises only with the square root. Without a curve as if one GPU had been measured, at speed 1.
SpeedPoint SpeedAt(std::span<const SpeedPoint> curve, int gpus);

struct Rung {
  int workers = 0;
  int gpus = 0;
  double value = 0;  // Of the job's work at this size; more is better. Comparable between jobs.
};

// The legal sizes that are known well enough to try: up to four times the largest size that was measured, or up to a
// node before any measurement; at least the smallest. So a job whose speed is not known starts with what a node can
// give and climbs in few restarts. Appended to `ladder`, ascending; nothing if there is no legal size.
//
// Value = weight * log(speed): with it, the steps of largest gain lead to proportional fairness, whatever the units of
// speeds. The weight falls with the service that a job has attained. A size other than the current one has to earn back
// the restart: it counts as if it had 0.9 of its speed, and of that only the share of time that is left to a job which
// restarts as often as this one does. And of its band, such a size counts with the lower end: the restart is certain,
// the speed is not. REQUIRES: workers_per_node >= 1.
void AppendLadder(const PoolJob& job, int current_workers, int workers_per_node, std::vector<Rung>& ladder);

// Gives the job's ladder the weight of the favoured one (see Allocate()): nearly that of a new job.
void WeighFavoured(const PoolJob& job, std::span<Rung> ladder);

// The index of the rung above `from` with the largest gain in value per GPU, among those with at most `most_gpus` in
// total; `from` if none gains.
std::size_t BestStep(std::span<const Rung> ladder, std::size_t from, int most_gpus);

// REQUIRES: from < to < ladder.size().
double GainPerGpu(std::span<const Rung> ladder, std::size_t from, std::size_t to);

}  // namespace grus
