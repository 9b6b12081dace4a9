// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_grus.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace grus {
namespace {

std::vector<NodeWorkers> PlacesOf(const GpuNodes& gpu_nodes) {
  std::vector<NodeWorkers> places;
  for (const int node : gpu_nodes) {
    const auto index = static_cast<std::size_t>(node);
    if (places.empty() || places.back().node != index) places.push_back({index, 0});
    ++places.back().workers;
  }
  return places;
}

std::vector<int> GpusByNode(const GpuNodes& gpu_nodes) {
  std::vector<int> by_node;
  for (const NodeWorkers& place : PlacesOf(gpu_nodes)) by_node.push_back(place.workers);
  return by_node;
}

GpuNodes GpuNodesOf(const std::vector<NodeWorkers>& places) {
  GpuNodes nodes;
  for (const NodeWorkers& place : places) {
    nodes.insert(nodes.end(), static_cast<std::size_t>(place.workers), static_cast<int>(place.node));
  }
  return nodes;
}

}  // namespace

std::vector<int> CompactPlacement(int gpus) {
  std::vector<int> by_node;
  for (; gpus > 0; gpus -= kReplayGpusPerNode) by_node.push_back(std::min(gpus, kReplayGpusPerNode));
  return by_node;
}

void GrusPolicy::Measure(const ReplayJob& job, Knowledge& known) {
  // The normal distribution of the standard library differs between libraries; the sum of twelve uniform draws does
  // not.
  const auto normal = [this] {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_()) / std::mt19937::max();
    return sum;
  };
  for (int gpus = 1; gpus <= job.max_gpus(); gpus += gpus < kReplayGpusPerNode ? 1 : kReplayGpusPerNode) {
    known.sizes[gpus] = {CompactPlacement(gpus), std::exp(options_.curve_error_percent / 100.0 * normal())};
  }
}

const std::vector<SpeedPoint>& GrusPolicy::CurveOf(const ReplayJob& job) {
  const auto [entry, is_new] = known_.try_emplace(job.name());
  Knowledge& known = entry->second;
  const auto gpus = static_cast<int>(job.gpu_nodes().size());
  if (options_.has_curves) {
    if (is_new) Measure(job, known);
  } else if (gpus > 0 && !known.sizes.contains(gpus)) {
    known.sizes[gpus].gpus_by_node = GpusByNode(job.gpu_nodes());
    known.epoch = -1;
  }
  if (std::exchange(known.epoch, job.epoch()) == job.epoch()) return known.curve;
  known.curve.clear();
  const double band = std::exp(1.645 * options_.curve_error_percent / 100.0);  // 90 %.
  for (const auto& [size, how] : known.sizes) {
    const double speed = job.SpeedOn(how.gpus_by_node) * how.error;
    known.curve.push_back({size, speed, speed / band, speed * band});
  }
  return known.curve;
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
    seen.attained_gpu_seconds = job->attained_gpu_s() / options_.speedup;
    seen.age_seconds = (now_s - job->submitted_s()) / options_.speedup;
    seen.resizes = job->restarts();
    seen.resize_cost_seconds = options_.restart_s / options_.speedup;
  }
  std::vector<GpuNodes> places;
  for (const Grant& grant : Allocate(snapshot)) places.push_back(GpuNodesOf(grant.places));
  return places;
}

}  // namespace grus
