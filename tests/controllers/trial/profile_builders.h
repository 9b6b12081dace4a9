// SPDX-License-Identifier: Apache-2.0
// Points of WorkloadProfiles for tests.
#pragma once

#include <string>

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
  point.gpu_seconds = 60 * config.gpus;
  point.measured_by = "team-a/try";
  point.time = AtSecond(at_second);
  return point;
}

}  // namespace grus::testing
