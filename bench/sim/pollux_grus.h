// SPDX-License-Identifier: Apache-2.0
// grus's allocation policy (controllers/policy/allocation.h) as a policy of the replay. It does not know how much work
// a job has left.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/sim/pollux_replay.h"
#include "controllers/policy/allocation.h"

namespace grus {

struct GrusPolicyOptions {
  bool has_curves = true;       // False: a job's curve has only the sizes that it had so far in the replay.
  int curve_error_percent = 0;  // Standard deviation of each point's error, on a logarithmic scale.
  unsigned seed = 1;            // Of these errors.
  double restart_s = 30;        // That a job stands still after a change of size, as far as the policy knows.
  double speedup = 1;           // The policy sees times so much shorter, as grus-manager where time runs faster.
};

// On one node, or on whole nodes: GPUs by node.
std::vector<int> CompactPlacement(int gpus);

class GrusPolicy final : public ReplayPolicy {
 public:
  explicit GrusPolicy(GrusPolicyOptions options) : options_(options), random_(options.seed) {}

  std::vector<GpuNodes> Place(double now_s, const std::vector<const ReplayJob*>& jobs) override;

 private:
  struct KnownSize {
    std::vector<int> gpus_by_node;
    double error = 1;  // The factor by which its speed is known wrongly.
  };
  struct Knowledge {
    std::map<int, KnownSize> sizes;  // By GPUs.
    std::vector<SpeedPoint> curve;   // Of these sizes in that epoch.
    int epoch = -1;
  };

  void Measure(const ReplayJob& job, Knowledge& known);
  const std::vector<SpeedPoint>& CurveOf(const ReplayJob& job);

  GrusPolicyOptions options_;
  std::mt19937 random_;
  std::map<std::string, Knowledge> known_;  // By job.
};

}  // namespace grus
