// SPDX-License-Identifier: Apache-2.0
// What an InterferenceModel has learned, besides the co-runs themselves: scales of its processes, then their weights
// and the widths of intervals, by leaving out families and co-runs.
#pragma once

#include <vector>

#include "controllers/interference/pair_process.h"

namespace grus {

struct InterferenceParameters {
  PairScales with_features = PriorScales(), without_features = PriorScales();
  double features_weight = 1;  // Of the first of these in a prediction; the other has the rest.
  // By how much intervals are wider than the process says: for jobs that were seen, by GPU type, in the order of the
  // indices that PairEncoder gives them; at least, for new jobs and for new families.
  std::vector<double> known_jobs_widths = {};
  double new_job_width = 1, new_family_width = 1;
};

// `deviations`: for each target, what one unit of it is in the logarithm of the slow-down. REQUIRES: there are targets.
InterferenceParameters LearnParameters(const PairTargets& known, const std::vector<double>& deviations);

}  // namespace grus
