// SPDX-License-Identifier: Apache-2.0
// Points of WorkloadProfiles for tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controllers/policy/decimal.h"
#include "crds/types/workload_profile.h"

namespace grus::testing {

inline kube::Time AtSecond(int seconds) { return kube::Time{kube::WallTime(std::chrono::seconds(seconds))}; }

// Of a batch size that all GPUs have for themselves.
inline api::ProfilePoint MakePoint(const api::TrialConfig& config, double step_milliseconds, int at_second = 1000,
                                   double samples_per_gpu = 32) {
  api::ProfilePoint point;
  point.config = config;
  point.measured.step_milliseconds = ToDecimal(step_milliseconds, 6);
  point.measured.throughput = ToDecimal(samples_per_gpu * config.gpus / step_milliseconds * 1000, 6);
  point.gpu_seconds = std::int64_t{60} * config.gpus;
  point.measured_by = "team-a/try";
  point.time = AtSecond(at_second);
  return point;
}

inline api::WorkloadProfile MakeProfile(std::vector<api::ProfilePoint> points) {
  api::WorkloadProfile profile;
  profile.metadata.generation = 3;
  profile.spec.throughput_unit = api::ThroughputUnit::kSamplesPerSecond;
  profile.spec.points = std::move(points);
  return profile;
}

// Fast up to 8 GPUs; 16, on two nodes, bring nothing.
inline std::vector<api::ProfilePoint> WithKneeAt8(const std::string& gpu_type) {
  return {MakePoint({gpu_type, 1, 1, 32}, 100), MakePoint({gpu_type, 2, 1, 32}, 102),
          MakePoint({gpu_type, 4, 1, 32}, 104), MakePoint({gpu_type, 8, 1, 32}, 106),
          MakePoint({gpu_type, 16, 2, 32}, 210)};
}

}  // namespace grus::testing
