// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_grus.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace grus {
namespace {

// On one node, or on whole nodes.
std::vector<int> CompactPlacement(int gpus) {
  std::vector<int> by_node;
  for (; gpus > 0; gpus -= kReplayGpusPerNode) by_node.push_back(std::min(gpus, kReplayGpusPerNode));
  return by_node;
}

std::vector<NodeWorkers> PlacesOf(const GpuNodes& gpu_nodes) {
  std::vector<NodeWorkers> places;
  for (const int node : gpu_nodes) {
    const auto index = static_cast<std::size_t>(node);
    if (places.empty() || places.back().node != index) places.push_back({index, 0});
    ++places.back().workers;
  }
  return places;
}

GpuNodes GpuNodesOf(const std::vector<NodeWorkers>& places) {
  GpuNodes nodes;
  for (const NodeWorkers& place : places) {
    nodes.insert(nodes.end(), static_cast<std::size_t>(place.workers), static_cast<int>(place.node));
  }
  return nodes;
}

}  // namespace

std::vector<SpeedPoint> GrusPolicy::MeasureCurve(const ReplayJob& job) {
  // The normal distribution of the standard library differs between libraries; the sum of twelve uniform draws does
  // not.
  const auto normal = [this] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_()) / std::mt19937::max();
    return sum;
  };
  std::vector<SpeedPoint> curve;
  for (int gpus = 1; gpus <= job.max_gpus(); gpus += gpus < kReplayGpusPerNode ? 1 : kReplayGpusPerNode) {
    const double error = options_.curve_error_percent / 100.0;
    const double speed = job.SpeedOn(CompactPlacement(gpus)) * std::exp(error * normal());
    const double band = std::exp(1.645 * error);  // 90 %.
    curve.push_back({gpus, speed, speed / band, speed * band});
  }
  return curve;
}

void GrusPolicy::Learn(const ReplayJob& job, std::vector<SpeedPoint>& curve) {
  const auto gpus = static_cast<int>(job.gpu_nodes().size());
  if (gpus == 0) return;
  const auto at = std::lower_bound(curve.begin(), curve.end(), gpus,
                                   [](const SpeedPoint& point, int wanted) { return point.gpus < wanted; });
  if (at != curve.end() && at->gpus == gpus) return;
  std::vector<int> by_node;
  for (const NodeWorkers& place : PlacesOf(job.gpu_nodes())) by_node.push_back(place.workers);
  const double speed = job.SpeedOn(by_node);
  curve.insert(at, {gpus, speed, speed, speed});
}

const std::vector<SpeedPoint>& GrusPolicy::CurveOf(const ReplayJob& job) {
  const auto [entry, is_new] = curves_.try_emplace(job.name());
  if (!options_.has_curves) {
    Learn(job, entry->second);
  } else if (is_new) {
    entry->second = MeasureCurve(job);
  }
  return entry->second;
}

std::vector<GpuNodes> GrusPolicy::Place(double now_s, const std::vector<const ReplayJob*>& jobs) {
  AllocationSnapshot snapshot;
  for (int i = 0; i < kReplayNodes; ++i) snapshot.nodes.push_back({"node-" + std::to_string(i), kReplayGpusPerNode});
  for (const ReplayJob* job : jobs) {
    PoolJob& seen = snapshot.jobs.emplace_back();
    seen.key = job->name();
    seen.max_workers = job->max_gpus();
    seen.curve = CurveOf(*job);
    seen.places = PlacesOf(job->gpu_nodes());
    seen.attained_gpu_seconds = job->attained_gpu_s();
    seen.age_seconds = now_s - job->submitted_s();
    seen.resizes = job->restarts();
    seen.resize_cost_seconds = ReplayJob::kRestartSeconds;
  }
  std::vector<GpuNodes> places;
  for (const Grant& grant : Allocate(snapshot)) places.push_back(GpuNodesOf(grant.places));
  return places;
}

}  // namespace grus
