// SPDX-License-Identifier: Apache-2.0
// The steady speed of a job, from samples of it in the order of time.
//
// The warm-up ends where MSER says (White 1997, "An effective truncation heuristic for bias reduction in simulation
// output"): the cut after which the variance of the mean of the rest, as if its samples were independent, is least. As
// usual the cut is sought in the first half, on means of five samples once there are a hundred (MSER-5, White, Cobb and
// Spratt 2000). A cut at the very end of what is searched means that no steady state was reached.
//
// Pauses, for example for a checkpoint or an evaluation, do not count. A sample is a pause if it exceeds the median by
// more than half of it and by more than five robust standard deviations, and at most a tenth of the samples do.
//
// The 90 % interval is that of nonoverlapping batch means (Law and Kelton, "Simulation Modeling and Analysis", 9.5.3):
// as many batches as leave no strong correlation between neighbours; the correlation that remains with the largest
// batches widens the interval as for an AR(1) process (Priestley 1981, 5.3.2). The rounding of the numbers is added.
//
// Pure functions.
#pragma once

#include <optional>
#include <span>

namespace grus {

// `steps` steps took `seconds` together. For a rate: that many samples.
struct SpeedSample {
  double seconds = 0;
  double steps = 0;
};

struct SteadySpeed {
  double mean_seconds = 0;        // Of a step.
  double half_width_seconds = 0;  // Of the 90 % interval; infinite with too few samples.
  bool is_steady = false;         // The warm-up is over.
  double steps = 0;               // That were used,
  double seconds = 0;             // and how long they took.
  int samples = 0;
  int warm_up_samples = 0;
  int pauses = 0;

  // Half the interval's width against the mean.
  double relative_half_width() const { return half_width_seconds / mean_seconds; }
  bool has_precision(double precision) const { return is_steady && relative_half_width() <= precision; }
};

// REQUIRES: samples with finite seconds and steps above zero. `resolution_seconds` is half a unit of the last
// place that the step times were printed with. None without samples.
std::optional<SteadySpeed> FindSteadySpeed(std::span<const SpeedSample> samples, double resolution_seconds);

}  // namespace grus
