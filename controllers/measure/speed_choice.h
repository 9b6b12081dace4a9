// SPDX-License-Identifier: Apache-2.0
// Chooses the job's speed among the speeds in a log.
//
// The order: readings of the user's patterns, a step time stated in the text, one confirmed by the clock, a running
// average, steps counted against the clock, and last a speed that includes evaluations. A series of fewer than three
// samples, one printed too coarsely ("1s/step"), and then one with too few samples for an interval come after any
// other. If the best is a running average, and steps counted against the clock agree with it within a quarter and are
// more precise, the counted steps are taken. So they are if they clearly contradict a step time on the same lines that
// no pattern of the user found. Of equals, the series that took the most time is the training; the time of a series
// whose counter ended for good, such as that of loading, counts a fifth.
//
// "time: 0.3" may be the time of a step, of all steps since the line before, or milliseconds. The clock decides which,
// within a quarter; if it agrees with none, the number is ignored; without steps to count, it is the time of a step.
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
  ExampleLine example = {};

  // Seconds of a step or an epoch; samples or tokens per second.
  double value() const {
    const bool is_rate = measure == Measure::kSamplesPerSecond || measure == Measure::kTokensPerSecond;
    return is_rate ? 1 / steady.mean_seconds : steady.mean_seconds;
  }
};

// The speed of the measure and, for throughput, of the scope. None: no series has it.
std::optional<MeasuredSpeed> ChooseSpeed(const std::vector<SpeedSeries>& series, Measure measure, Scope scope);

}  // namespace grus
