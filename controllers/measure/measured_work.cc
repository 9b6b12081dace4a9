// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_numbers.h"

#include <algorithm>
#include <cmath>

#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"

namespace grus {
namespace {

constexpr double kLeast = 1e-8, kMost = 1e14;  // What kDecimalPattern has room for.

// Converts seconds per unit of work to work per second; the ends of the interval swap.
Interval RateOf(const SteadySpeed& steady, double work) {
  const double mean = steady.mean_seconds;
  const double half = std::min(steady.half_width_seconds, 0.9 * mean);  // An open end becomes wide, but finite.
  return {work / mean, work / (mean + half), work / (mean - half)};
}

// Samples in one step of the whole job; 0: not known.
double SamplesInStep(const SpeedObservation& seen, const api::TrialConfig& config, api::BatchSizeScope scope) {
  if (config.batch_size > 0) {
    return scope == api::BatchSizeScope::kPerGpu ? static_cast<double>(config.batch_size) * config.gpus
                                                 : config.batch_size;
  }
  return seen.samples_per_step;
}

}  // namespace

std::string Decimal(double value) {
  if (!std::isfinite(value) || value < kLeast || value > kMost) return {};
  const std::string decimal = ToDecimal(value);
  return decimal == "0" ? std::string() : decimal;
}

std::optional<MeasuredWork> MeasurementOf(const SpeedObservation& seen, const api::TrialConfig& config,
                                          api::BatchSizeScope scope, api::ThroughputUnit wanted) {
  using api::ThroughputUnit;
  const MeasuredSpeed* speed = seen.main();
  if (speed == nullptr || !std::isfinite(speed->steady.mean_seconds) || speed->steady.mean_seconds <= 0) {
    return std::nullopt;
  }
  const double samples = SamplesInStep(seen, config, scope);
  const bool is_per_gpu = scope == api::BatchSizeScope::kPerGpu;
  const ThroughputUnit of_steps = is_per_gpu ? ThroughputUnit::kBatchesPerSecond : ThroughputUnit::kStepsPerSecond;
  MeasuredWork work;
  Interval throughput, step;
  if (speed->measure == Measure::kSamplesPerSecond) {
    throughput = RateOf(speed->steady, speed->scope == Scope::kGpu ? config.gpus : 1);
    work.unit = ThroughputUnit::kSamplesPerSecond;
    if (samples > 0) step = {samples / throughput.mean, samples / throughput.high, samples / throughput.low};
    if (wanted != ThroughputUnit::kNotKnown && wanted != work.unit && samples > 0) {
      const double factor = (is_per_gpu ? config.gpus : 1) / samples;
      throughput = {throughput.mean * factor, throughput.low * factor, throughput.high * factor};
      work.unit = of_steps;
    }
  } else if (speed->measure == Measure::kStepSeconds) {
    step = {speed->steady.mean_seconds, 0, 0};
    const bool in_samples =
        samples > 0 && (wanted == ThroughputUnit::kNotKnown || wanted == ThroughputUnit::kSamplesPerSecond);
    work.unit = in_samples ? ThroughputUnit::kSamplesPerSecond : of_steps;
    const double amount = in_samples ? samples : is_per_gpu ? config.gpus : 1;
    throughput = RateOf(speed->steady, amount);
    step.low = amount / throughput.high;
    step.high = amount / throughput.low;
  } else {
    // Epochs and tokens are the same work on any number of GPUs.
    throughput = RateOf(speed->steady, 1);
    work.unit = ThroughputUnit::kStepsPerSecond;
    if (speed->measure == Measure::kEpoch) step = {1 / throughput.mean, 1 / throughput.high, 1 / throughput.low};
  }
  if (wanted != ThroughputUnit::kNotKnown && wanted != work.unit) return std::nullopt;
  api::Measurement& measured = work.measured;
  measured.throughput = Decimal(throughput.mean);
  measured.throughput_low = Decimal(throughput.low);
  measured.throughput_high = Decimal(throughput.high);
  if (measured.throughput.empty()) return std::nullopt;
  measured.step_milliseconds = Decimal(1000 * step.mean);
  measured.step_milliseconds_low = Decimal(1000 * step.low);
  measured.step_milliseconds_high = Decimal(1000 * step.high);
  if (speed->measure == Measure::kStepSeconds) {
    measured.steps = static_cast<std::int64_t>(std::min(speed->steady.steps, 1e15));
  }
  return work;
}

std::string UnitText(api::ThroughputUnit unit) {
  switch (unit) {
    case api::ThroughputUnit::kSamplesPerSecond: return "samples/s";
    case api::ThroughputUnit::kBatchesPerSecond: return "batches/s";
    case api::ThroughputUnit::kStepsPerSecond: return "steps/s";
    case api::ThroughputUnit::kNotKnown: break;
  }
  return "/s";
}

std::string SpeedText(const api::Measurement& measured, api::ThroughputUnit unit) {
  const std::optional<Interval> speed = ThroughputOf(measured);
  if (!speed) return "no speed yet";
  const double half = 100 * (speed->high - speed->low) / (2 * speed->mean);
  std::string text = measured.throughput + " " + UnitText(unit);
  if (half < 100) text += " +- " + std::to_string(std::lround(std::ceil(half))) + " %";
  return text;
}

}  // namespace grus
