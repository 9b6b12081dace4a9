// SPDX-License-Identifier: Apache-2.0
// grus's allocation policy (controllers/policy/allocation.h) as a policy of the replay. It does not know how much work
// a job has left. Batch sizes stay as submitted.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/sim/pollux_replay.h"
#include "controllers/policy/allocation.h"

namespace grus {

struct GrusPolicyOptions {
  bool has_curves = true;       // False: a job's curve is what it had of speeds so far in the replay.
  int curve_error_percent = 0;  // Standard deviation of each point's error, on a logarithmic scale.
  unsigned seed = 1;            // Of these errors.
};

class GrusPolicy final : public ReplayPolicy {
 public:
  explicit GrusPolicy(GrusPolicyOptions options) : options_(options), random_(options.seed) {}

  std::vector<GpuNodes> Place(double now_s, const std::vector<const ReplayJob*>& jobs) override;

 private:
  const std::vector<SpeedPoint>& CurveOf(const ReplayJob& job);
  std::vector<SpeedPoint> MeasureCurve(const ReplayJob& job);
  void Learn(const ReplayJob& job, std::vector<SpeedPoint>& curve);

  GrusPolicyOptions options_;
  std::mt19937 random_;
  std::map<std::string, std::vector<SpeedPoint>> curves_;  // By job.
};

}  // namespace grus
