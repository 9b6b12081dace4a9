// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/speed_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "controllers/throughput/curve.h"
#include "controllers/throughput/profile_measurements.h"

namespace grus {
namespace {

using NodesBySize = std::map<int, int>;  // By GPUs.

// Which type of the profile is meant, as in JobProfileOf(); none: it has several.
std::optional<std::string> TypeMeant(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  if (!gpu_type.empty() || profile.points.empty()) return gpu_type;
  const std::string& only = profile.points.front().config.gpu_type;
  const bool is_only = std::all_of(profile.points.begin(), profile.points.end(),
                                   [&](const api::ProfilePoint& point) { return point.config.gpu_type == only; });
  return is_only ? std::optional(only) : std::nullopt;
}

// Of the layouts of one size, the one on the fewest nodes: jobs are placed so.
NodesBySize Measured(const std::vector<Measurement>& measurements) {
  NodesBySize nodes_of;
  for (const Measurement& m : measurements) {
    int& nodes = nodes_of.emplace(m.size.replicas, m.size.nodes).first->second;
    nodes = std::min(nodes, m.size.nodes);
  }
  return nodes_of;
}

std::vector<CurveSize> SizesOf(const NodesBySize& measured, int gpus_per_worker, int most_workers, int gpus_per_node) {
  NodesBySize nodes_of;
  for (const auto& [gpus, nodes] : measured) {
    if (gpus % gpus_per_worker == 0) nodes_of[gpus] = nodes;
  }
  const int workers_per_node = std::max(gpus_per_node / gpus_per_worker, 1);
  const int most = std::min(most_workers, std::numeric_limits<int>::max() / gpus_per_worker);
  for (const CurveSize& workers : DoublingSizes(most, workers_per_node)) {
    nodes_of.emplace(workers.replicas * gpus_per_worker, workers.nodes);
  }
  std::vector<CurveSize> sizes;
  for (const auto& [gpus, nodes] : nodes_of) sizes.push_back({nodes, gpus});
  return sizes;
}

bool IsAnswer(const CurvePoint& point) {
  // Sizes beyond those that were measured are left to AppendLadder(), which tries the next ones first.
  const bool is_known = point.source == PredictionSource::kMeasured || point.source == PredictionSource::kInterpolated;
  return is_known && point.low > 0 && point.low <= point.throughput && point.throughput <= point.high &&
         std::isfinite(point.high);
}

}  // namespace

std::vector<SpeedPoint> SpeedTableOf(const api::WorkloadProfileSpec& profile, const std::string& gpu_type,
                                     int gpus_per_worker, int most_workers, int gpus_per_node) {
  if (gpus_per_worker < 1 || most_workers < 1 || gpus_per_node < 1) return {};
  const std::optional<std::string> type = TypeMeant(profile, gpu_type);
  if (!type) return {};
  const TypeMeasurements measurements = MeasurementsOf(profile, *type);
  const NodesBySize measured = Measured(measurements.chosen);
  if (measured.size() < 2) return {};  // One size does not show how the speed grows.
  const kube::Result<ThroughputFit> fit = FitThroughput(measurements.chosen);
  if (!fit) return {};
  CurveQuestion question;
  question.sizes = SizesOf(measured, gpus_per_worker, most_workers, gpus_per_node);
  question.fixed = measurements.is_total_fixed ? FixedBatch::kTotal : FixedBatch::kPerReplica;
  question.batch_size = measurements.batch_size;
  const kube::Result<std::vector<CurvePoint>> curve = CurveOf(*fit, question);
  if (!curve) return {};
  std::vector<SpeedPoint> table;
  for (const CurvePoint& point : *curve) {
    if (IsAnswer(point)) table.push_back({point.size.replicas, point.throughput, point.low, point.high});
  }
  return table;
}

}  // namespace grus
