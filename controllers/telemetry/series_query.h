// SPDX-License-Identifier: Apache-2.0
// What Prometheus is asked about one job over a time, and what its answer says. Pure.
//
// Sources are those of pod_usage.h. A moment that no source told is missing, and so is one that is told as a blank.
#pragma once

#include <string>
#include <vector>

#include "controllers/telemetry/job_series.h"
#include "controllers/telemetry/pod_usage.h"

namespace grus {

struct NamedPods {
  std::string ns = {};
  std::vector<std::string> names = {};  // At least one; pods of one job do alike, so that some stand for all.
};

// A range query whose answer has one series for each of JobSeries. `selector`: as in UsageQueries().
std::string SeriesQuery(const NamedPods& pods, const std::string& selector);

// Empty series of this time: from `start` on, one sample each `step` seconds.
JobSeries EmptySeries(std::int64_t start, std::int64_t end, std::int64_t step);

// Takes a sample of the answer. `cores`: that each pod may use; 0: not known, and then there is
// no series of the CPU. One that is outside of the series' time, or impossible, is none.
void AddMoment(const QueryLabels& labels, double time, double value, double cores, JobSeries& job);

}  // namespace grus
