// SPDX-License-Identifier: Apache-2.0
// How well a model that is fitted to some co-runs tells the others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controllers/interference/shared_job.h"

namespace grus {

// Means over co-runs that the fit did not see.
struct LeftOutFigures {
  int co_runs = 0;
  double slow_down_error = 0;  // |predicted - measured| / measured, of 1 / speed.
  double speed_error = 0;      // The same of the speed.
  double in_interval = 0;      // The share whose speed lies in the 90 % interval.
  double constant_error = 0;   // slow_down_error of one number for all, the median of what was seen.
};

enum class LeftOutUnit { kJob, kFamily };

// Leaves out each job (or family) in turn, as job and as partner, and tells its own slow-downs (`only_own`) or all that
// were left out. `seen_co_runs`: of each job that is left out, so many pairs, drawn at random, are known all the same,
// in both orders.
LeftOutFigures LeaveOutEach(const std::vector<CoRunSample>& samples, LeftOutUnit unit, bool only_own,
                            int seen_co_runs = 0);

struct SeenAndAsked {
  std::vector<CoRunSample> seen = {}, asked = {};
};

// Seen is a fifth of the pairs on `gpu_type`, in both orders, drawn by `seed`; on other types the same pairs, or all
// (`knows_other_types`). Asked is the rest on `gpu_type`.
SeenAndAsked DrawAFifth(const std::vector<CoRunSample>& samples, const std::string& gpu_type, bool knows_other_types,
                        std::uint32_t seed);

// Knows what DrawAFifth() lets be seen, and tells the rest.
LeftOutFigures KnowAFifth(const std::vector<CoRunSample>& samples, const std::string& gpu_type, bool knows_other_types,
                          std::uint32_t seed);

LeftOutFigures MeanOf(const std::vector<LeftOutFigures>& figures);  // Each counts the same.

}  // namespace grus
