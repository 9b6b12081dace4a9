// SPDX-License-Identifier: Apache-2.0
// Tiresias as AdaptDL's simulator plays it (simulator/tiresias.py): each job gets exactly the GPUs it asks for. Jobs
// that have used less than 16 GPU hours come first, in both groups in the order in which they entered it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/sim/pollux_replay.h"

namespace grus {

class TiresiasPolicy final : public ReplayPolicy {
 public:
  std::vector<GpuNodes> Place(double now_s, const std::vector<const ReplayJob*>& jobs) override;

 private:
  struct Standing {
    bool is_running = false;
    double checked_s = 0;
    double ran_s = 0;
  };

  void Demote(double now_s, const std::vector<const ReplayJob*>& jobs);

  std::map<std::string, Standing> standings_;
  std::vector<std::string> first_, second_;  // The groups.
};

}  // namespace grus
