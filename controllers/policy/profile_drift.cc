// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/profile_drift.h"

#include <algorithm>
#include <cmath>

#include "controllers/policy/decimal.h"
#include "controllers/policy/wording.h"

namespace grus {
namespace {

// Not known counts as the same: a job may not tell how many nodes it is on.
bool IsSameSetting(const api::TrialConfig& measured, const api::TrialConfig& seen) {
  return measured.gpu_type == seen.gpu_type && measured.gpus == seen.gpus &&
         measured.batch_size == seen.batch_size &&
         (measured.nodes == seen.nodes || measured.nodes == 0 || seen.nodes == 0);
}

}  // namespace

std::optional<api::ProfileDrift> FindDrift(const api::WorkloadProfileSpec& profile, const ObservedStep& seen,
                                           int percent) {
  if (!std::isfinite(seen.milliseconds) || seen.milliseconds <= 0) return std::nullopt;
  const api::ProfilePoint* newest = nullptr;
  for (const api::ProfilePoint& point : profile.points) {
    if (IsSameSetting(point.config, seen.config) && (!newest || point.time > newest->time)) newest = &point;
  }
  if (!newest || newest->time > seen.time) return std::nullopt;
  const api::Measurement& measured = newest->measured;
  const std::optional<double> step = ParseDecimal(measured.step_milliseconds);
  if (!step || *step <= 0) return std::nullopt;
  const double low = std::min(*step, ParseDecimal(measured.step_milliseconds_low).value_or(*step));
  const double high = std::max(*step, ParseDecimal(measured.step_milliseconds_high).value_or(*step));
  const double slack = percent / 100.0;
  if (seen.milliseconds <= high * (1 + slack) && seen.milliseconds >= low / (1 + slack)) return std::nullopt;

  api::ProfileDrift drift;
  drift.job = seen.job;
  drift.config = newest->config;
  drift.measured_step_milliseconds = measured.step_milliseconds;
  drift.observed_step_milliseconds = ToDecimal(seen.milliseconds);
  drift.time = seen.time;
  return drift;
}

std::string DriftMessage(const api::ProfileDrift& drift) {
  const double measured = ParseDecimal(drift.measured_step_milliseconds).value_or(0);
  const double observed = ParseDecimal(drift.observed_step_milliseconds).value_or(0);
  std::string text = drift.job + " takes " + drift.observed_step_milliseconds + " ms a step on " +
                     ToText(drift.config) + ", ";
  if (measured > 0) {
    text += std::to_string(std::lround(std::abs(observed / measured - 1) * 100)) + " % " +
            (observed > measured ? "more" : "less") + " than ";
  }
  return text + "the " + drift.measured_step_milliseconds + " ms that were measured";
}

std::string ToText(const api::TrialConfig& config) {
  std::string text = Count(config.gpus, config.gpu_type.empty() ? "GPU" : config.gpu_type + " GPU");
  if (config.nodes > 0) text += " on " + Count(config.nodes, "node");
  if (config.batch_size > 0) text += " with batch size " + std::to_string(config.batch_size);
  return text;
}

}  // namespace grus
