// SPDX-License-Identifier: Apache-2.0
// Which of the speeds that a log tells is the job's.
//
// What the user's patterns find comes first, then a step time that the text states, one that the clock
// confirms, a running average, steps counted against the clock, and last what has evaluations in it. A series
// of fewer than three samples, one printed too coarsely ("1s/step"), and then one of too few samples for an
// interval stand behind any other. Where the best is a running average, and steps counted against the clock agree with
// it within a quarter and are known more precisely, it is these. Among equals
// the one that took the most time is the training; the time of one whose counter ended once for all, as that
// of loading does, counts a fifth.
//
// "time: 0.3" may be the time of a step, of all steps since the line before, or milliseconds. If the clock
// agrees with one of these within a quarter, it is that; if it agrees with none, it is something else; if
// nothing can be counted against the clock, it is a step's.
//
// Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "controllers/measure/speed_series.h"

namespace grus {

struct MeasuredSpeed {
  Measure measure = Measure::kStepSeconds;  // kStepSeconds, kSamplesPerSecond, kTokensPerSecond or kEpoch.
  Scope scope = Scope::kJob;
  Trust trust = Trust::kStated;
  bool is_counted = false;  // Against the times of the lines.
  SteadySpeed steady;       // Of a step, a sample, a token or an epoch.

  // Seconds of a step or an epoch; samples or tokens a second.
  double value() const {
    const bool is_rate = measure == Measure::kSamplesPerSecond || measure == Measure::kTokensPerSecond;
    return is_rate ? 1 / steady.mean_seconds : steady.mean_seconds;
  }
};

// The speed of the measure and, for throughput, of the scope. None: no series tells it.
std::optional<MeasuredSpeed> ChooseSpeed(const std::vector<SpeedSeries>& series, Measure measure, Scope scope);

}  // namespace grus
