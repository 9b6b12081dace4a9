// SPDX-License-Identifier: Apache-2.0
#include "controllers/throughput/profile_measurements.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "controllers/policy/decimal.h"

namespace grus {
namespace {

constexpr int kUsualGpusPerNode = 8;  // If no point says how many nodes it was on.

// Batch sizes are whole numbers; those computed from rounded speeds are only close to one.
double NearestWhole(double batch) {
  const double whole = std::round(batch);
  return whole >= 1 && std::abs(whole - batch) <= 0.02 * batch ? whole : batch;
}

int NodesOf(const api::TrialConfig& config, int gpus_per_node) {
  const int nodes = config.nodes > 0 ? config.nodes : (config.gpus - 1) / gpus_per_node + 1;
  return std::min(nodes, config.gpus);
}

int LargestOf(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  int largest = 1;
  for (const api::ProfilePoint& point : profile.points) {
    if (point.config.gpu_type == gpu_type) largest = std::max(largest, point.config.gpus);
  }
  return largest;
}

struct Step {
  double seconds = 0;
  double local_batch = 0;  // Samples of one GPU; 0 if the point does not say.
};

Step StepOf(const api::WorkloadProfileSpec& profile, const api::ProfilePoint& point, int largest) {
  const int gpus = point.config.gpus;
  const double throughput = ParseDecimal(point.measured.throughput).value_or(0);
  const double seconds = ParseDecimal(point.measured.step_milliseconds).value_or(0) / 1000;
  switch (profile.throughput_unit) {
    case api::ThroughputUnit::kSamplesPerSecond:
    case api::ThroughputUnit::kTokensPerSecond: {
      if (seconds > 0) return {seconds, NearestWhole(throughput * seconds / gpus)};
      // The source gives only samples (a rate in Prometheus, say): a step is of the batch size that was tried.
      const double batch = std::max(1, point.config.batch_size);
      return throughput > 0 ? Step{batch * gpus / throughput, batch} : Step{};
    }
    case api::ThroughputUnit::kEpochsPerSecond:
    case api::ThroughputUnit::kStepsPerSecond: return {seconds, static_cast<double>(largest) / gpus};
    default: return {seconds, 1};
  }
}

std::optional<Measurement> Measured(const api::WorkloadProfileSpec& profile, const api::ProfilePoint& point,
                                    int gpus_per_node, int largest) {
  const auto [step, local] = StepOf(profile, point, largest);
  const Measurement measurement{{NodesOf(point.config, gpus_per_node), point.config.gpus, local}, step};
  if (!(step > 0) || !(local > 0) || WhyNoSize(measurement.size)) return std::nullopt;
  return measurement;
}

double Spread(const std::vector<Measurement>& points, double (*value)(const Measurement&)) {
  const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                               [&](const auto& a, const auto& b) { return value(a) < value(b); });
  return value(*high) / value(*low);
}

double Local(const Measurement& m) { return m.size.local_batch_size; }
double Total(const Measurement& m) { return m.size.local_batch_size * m.size.replicas; }

double Median(const std::vector<Measurement>& points, double (*value)(const Measurement&)) {
  std::vector<double> values;
  for (const Measurement& point : points) values.push_back(value(point));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

int GpusPerNode(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  int most = 0;
  for (const api::ProfilePoint& point : profile.points) {
    if (point.config.gpu_type != gpu_type || point.config.gpus <= 0 || point.config.nodes <= 0) continue;
    most = std::max(most, (point.config.gpus - 1) / point.config.nodes + 1);
  }
  return most > 0 ? most : kUsualGpusPerNode;
}

std::optional<Measurement> MeasurementOf(const api::WorkloadProfileSpec& profile, const api::ProfilePoint& point) {
  const std::string& type = point.config.gpu_type;
  if (point.config.gpus <= 0) return std::nullopt;
  return Measured(profile, point, GpusPerNode(profile, type), LargestOf(profile, type));
}

TypeMeasurements MeasurementsOf(const api::WorkloadProfileSpec& profile, const std::string& gpu_type) {
  TypeMeasurements result;
  const int gpus_per_node = GpusPerNode(profile, gpu_type), largest = LargestOf(profile, gpu_type);
  std::map<std::int32_t, std::vector<Measurement>> by_batch;
  for (const api::ProfilePoint& point : profile.points) {
    if (point.config.gpu_type != gpu_type || point.config.gpus <= 0) continue;
    const auto measurement = Measured(profile, point, gpus_per_node, largest);
    if (!measurement) continue;
    result.all.push_back(*measurement);
    by_batch[point.config.batch_size].push_back(*measurement);
  }
  for (auto& [batch, points] : by_batch) {
    if (points.size() >= result.chosen.size()) result.chosen = std::move(points);
  }
  if (result.chosen.empty()) return result;
  result.is_total_fixed = Spread(result.chosen, Total) < Spread(result.chosen, Local);
  result.batch_size = Median(result.chosen, result.is_total_fixed ? Total : Local);
  return result;
}

}  // namespace grus
