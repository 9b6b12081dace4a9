// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/profile_drift.h"

#include <algorithm>

#include "controllers/policy/decimal.h"
#include "controllers/queues/wording.h"

namespace grus {
namespace {

bool IsSameSetting(const api::TrialConfig& measured, const api::TrialConfig& seen) {
  return measured.gpu_type == seen.gpu_type && measured.gpus == seen.gpus && measured.batch_size == seen.batch_size &&
         (measured.nodes == seen.nodes || measured.nodes == 0 || seen.nodes == 0);
}

}  // namespace

std::string_view UnitText(api::ThroughputUnit unit) {
  switch (unit) {
    case api::ThroughputUnit::kSamplesPerSecond: return "samples/s";
    case api::ThroughputUnit::kBatchesPerSecond: return "batches/s";
    case api::ThroughputUnit::kStepsPerSecond: return "steps/s";
    case api::ThroughputUnit::kTokensPerSecond: return "tokens/s";
    case api::ThroughputUnit::kEpochsPerSecond: return "epochs/s";
    case api::ThroughputUnit::kNotKnown: break;
  }
  return "work/s";
}

std::optional<Interval> ThroughputOf(const api::Measurement& measured) {
  const std::optional<double> mean = ParsePositive(measured.throughput);
  if (!mean) return std::nullopt;
  return Interval{*mean, std::min(*mean, ParsePositive(measured.throughput_low).value_or(*mean)),
                  std::max(*mean, ParsePositive(measured.throughput_high).value_or(*mean))};
}

const api::ProfilePoint* FindPoint(const api::WorkloadProfileSpec& profile, const api::TrialConfig& config) {
  const api::ProfilePoint* newest = nullptr;
  for (const api::ProfilePoint& point : profile.points) {
    if (IsSameSetting(point.config, config) && (!newest || point.time > newest->time)) newest = &point;
  }
  return newest;
}

std::optional<bool> DoAgree(const api::Measurement& a, const api::Measurement& b, int percent) {
  const std::optional<Interval> one = ThroughputOf(a), other = ThroughputOf(b);
  if (!one || !other) return std::nullopt;
  const double slack = 1 + percent / 100.0;
  return one->low <= other->high * slack && other->low <= one->high * slack;
}

std::optional<api::ProfileDrift> FindDrift(const api::WorkloadProfileSpec& profile, const ObservedSpeed& seen,
                                           int percent) {
  const api::ProfilePoint* point = FindPoint(profile, seen.config);
  if (!point || point->time > seen.time) return std::nullopt;
  if (DoAgree(point->measured, seen.measured, percent).value_or(true)) return std::nullopt;
  return api::ProfileDrift{seen.job, point->config, point->measured, seen.measured, seen.time};
}

bool IsSlower(const api::ProfileDrift& drift) {
  return ParseDecimal(drift.observed.throughput).value_or(0) < ParseDecimal(drift.expected.throughput).value_or(0);
}

api::TrialConfig WithoutNodes(api::TrialConfig config) {
  config.nodes = 0;
  return config;
}

std::string ToText(const api::TrialConfig& config) {
  std::string text = Count(config.gpus, config.gpu_type.empty() ? "GPU" : config.gpu_type + " GPU");
  if (config.nodes > 0) text += " on " + Count(config.nodes, "node");
  else if (config.min_nodes > 0) text += " spread over " + Count(config.min_nodes, "node");
  if (config.batch_size > 0) text += " with batch size " + std::to_string(config.batch_size);
  return text;
}

}  // namespace grus
