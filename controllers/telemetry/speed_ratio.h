// SPDX-License-Identifier: Apache-2.0
// How many times as fast a job is at another size. Pure functions.
#pragma once

#include "controllers/policy/allocation.h"

namespace grus {

struct SpeedRatio {
  double usual = 1, least = 1, most = 1;  // Positive.
};

// By the curve of its workload. The two bands are taken as independent of each other.
// REQUIRES: speeds and bands are positive.
SpeedRatio RatioBetween(const SpeedPoint& from, const SpeedPoint& to);

// By the number of workers alone: what it gains or loses of them shows as speed with nothing, or with all.
// REQUIRES: both are positive.
SpeedRatio RatioBetween(int from_workers, int to_workers);

}  // namespace grus
