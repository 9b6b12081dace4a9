// SPDX-License-Identifier: Apache-2.0
// TrialJobs, and speeds of their trials.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "controllers/measure/speed_reader.h"
#include "crds/types/trial_job.h"

namespace grus::testing {

inline api::TrialJob TestTrialJob(std::vector<std::int32_t> counts = {1, 2, 4},
                                  std::vector<std::int32_t> batches = {}) {
  api::TrialJob job;
  job.metadata.name = "tune";
  job.metadata.ns = "team-a";
  job.metadata.uid = "trial-job-uid";
  job.metadata.generation = 1;
  job.spec.workload.job_template.emplace();
  job.spec.space.gpu_counts = std::move(counts);
  job.spec.space.batch_sizes = std::move(batches);
  return job;
}

// A speed of `samples` a second that was seen for so long, known to within a share of it.
inline SpeedObservation Seen(double samples, double seconds, double half_width = 0.02) {
  SpeedObservation seen;
  seen.state = SpeedState::kMeasuring;
  seen.counts.matched_lines = 100;
  MeasuredSpeed speed;
  speed.measure = Measure::kSamplesPerSecond;
  speed.steady.mean_seconds = 1 / samples;
  speed.steady.half_width_seconds = half_width / samples;
  speed.steady.is_steady = true;
  seen.span = std::chrono::round<kube::Duration>(std::chrono::duration<double>(seconds));
  speed.steady.samples = 100;
  seen.throughput = speed;
  return seen;
}

}  // namespace grus::testing
