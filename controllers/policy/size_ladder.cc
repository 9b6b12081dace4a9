// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/size_ladder.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace grus {
namespace {

// Replays of the Pollux workloads 1 to 4 (grus-sim pollux) chose these numbers; on workloads drawn like them
// (scripts/bench-pollux), averages lie within 1 % from half to twice kHalfWeightGpuSeconds, from 0.35 to 1 for
// kFavouredWeight, and from 0.8 to 0.95 for kWorthOfChange, which trades speed for restarts.
// Without curves, averages are 1 to 2.5 % worse with a kTriesTimesLargest of 2, 3 or 8.
constexpr double kHalfWeightGpuSeconds = 4 * 3600;
constexpr double kFavouredWeight = 0.7;  // A new job has 1.
constexpr double kWorthOfChange = 0.9;
constexpr int kTriesTimesLargest = 4;
constexpr double kLeastShare = 1e-3;  // Keeps values finite.

// The share of its time in which a job works, if it restarts once more and later as often as it did so far.
double ShareAfterRestart(const PoolJob& job) {
  const double age = job.age_seconds, cost = job.resize_cost_seconds;
  if (cost <= 0) return 1;
  return std::max(age - job.resizes * cost, 0.0) / (age + cost);
}

double WeightOf(const PoolJob& job) { return 1 / (1 + job.attained_gpu_seconds / kHalfWeightGpuSeconds); }

}  // namespace

int NextLegalSize(const PoolJob& job, int workers_per_node, int workers) {
  const int least = std::max(workers + 1, job.min_workers);
  const int in_whole_nodes = (least + workers_per_node - 1) / workers_per_node * workers_per_node;
  int next = 0;
  switch (job.step) {
    case SizeStep::kAny:
      if (least > job.max_workers) return 0;
      if (least <= workers_per_node || least == job.min_workers) return least;
      return std::min(in_whole_nodes, job.max_workers);
    case SizeStep::kPowerOfTwo: next = static_cast<int>(std::bit_ceil(static_cast<unsigned>(least))); break;
    case SizeStep::kWholeNodes: next = in_whole_nodes; break;
  }
  return next <= job.max_workers ? next : 0;
}

SpeedPoint SpeedAt(std::span<const SpeedPoint> curve, int gpus) {
  const auto beyond = [gpus](const SpeedPoint& point) {
    const double ratio = static_cast<double>(gpus) / point.gpus;
    return SpeedPoint{gpus, point.speed * ratio, point.low * std::min(ratio, std::sqrt(ratio)), point.high * ratio};
  };
  if (curve.empty()) return beyond({1, 1, 1, 1});
  const auto above = std::lower_bound(curve.begin(), curve.end(), gpus,
                                      [](const SpeedPoint& point, int wanted) { return point.gpus < wanted; });
  if (above == curve.begin()) return beyond(*above);
  const SpeedPoint& below = *std::prev(above);
  if (above == curve.end()) return beyond(below);
  const double share = static_cast<double>(gpus - below.gpus) / (above->gpus - below.gpus);
  return {gpus, std::lerp(below.speed, above->speed, share), std::lerp(below.low, above->low, share),
          std::lerp(below.high, above->high, share)};
}

void AppendLadder(const PoolJob& job, int current_workers, int workers_per_node, std::vector<Rung>& ladder) {
  int workers = NextLegalSize(job, workers_per_node, 0);
  const int tried = job.curve.empty() ? 0 : job.curve.back().gpus;
  const int known = tried > 0 ? kTriesTimesLargest * tried : workers_per_node * job.gpus_per_worker;
  const int most = std::max(known, workers * job.gpus_per_worker);
  const double weight = WeightOf(job);
  const double kept = std::max(kWorthOfChange * ShareAfterRestart(job), kLeastShare);
  for (; workers > 0; workers = NextLegalSize(job, workers_per_node, workers)) {
    const int gpus = workers * job.gpus_per_worker;
    if (gpus > most) break;
    const SpeedPoint point = SpeedAt(job.curve, gpus);
    const bool is_resize = current_workers > 0 && workers != current_workers;
    ladder.push_back({workers, gpus, weight * std::log(is_resize ? kept * point.low : point.speed)});
  }
}

void WeighFavoured(const PoolJob& job, std::span<Rung> ladder) {
  const double factor = kFavouredWeight / WeightOf(job);
  for (Rung& rung : ladder) rung.value *= factor;
}

double GainPerGpu(std::span<const Rung> ladder, std::size_t from, std::size_t to) {
  return (ladder[to].value - ladder[from].value) / (ladder[to].gpus - ladder[from].gpus);
}

std::size_t BestStep(std::span<const Rung> ladder, std::size_t from, int most_gpus) {
  std::size_t best = from;
  double best_gain = 0;
  for (std::size_t to = from + 1; to < ladder.size() && ladder[to].gpus <= most_gpus; ++to) {
    const double gain = GainPerGpu(ladder, from, to);
    if (gain > best_gain) {
      best = to;
      best_gain = gain;
    }
  }
  return best;
}

}  // namespace grus
