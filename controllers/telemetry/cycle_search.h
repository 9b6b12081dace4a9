// SPDX-License-Identifier: Apache-2.0
// The cycles of a job in one of its series: epochs with their evaluations, long steps, or both, one within the other.
//
// The series is searched at growing coarseness, so that a cycle of hours costs no more than one of seconds. Loading at
// its begin is passed over. If the whole does not repeat itself, its latter half may: a job that changed its size has
// other cycles since. A cycle shorter than four samples cannot be seen. Pure functions.
#pragma once

#include <optional>

#include "controllers/telemetry/series.h"

namespace grus {

struct Cycle {
  double period_s = 0;
  double agreement = 0;  // Of a cycle with the next, up to 1.
  double count = 0;      // That were seen; those at the edges may be cut.
};

struct Cycles {
  std::optional<Cycle> outer = {};  // The longest.
  std::optional<Cycle> inner = {};  // One within it, of which it holds several.
  double from = 0;                  // Unix time since when they were counted; without any, when the loading ended.
};

// `least_spread`: a series whose standard deviation is less is flat, and has no cycles.
Cycles FindCycles(const Series& series, double least_spread);

}  // namespace grus
