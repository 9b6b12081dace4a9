// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/measured_work.h"

#include <algorithm>
#include <cmath>

#include "controllers/policy/decimal.h"
#include "controllers/policy/profile_drift.h"

namespace grus {
namespace {

constexpr double kNear = 1.25;                 // How far samples in a step may be from those that are expected.
constexpr double kLeast = 1e-8, kMost = 1e14;  // What kDecimalPattern has room for.

// Converts seconds per unit of work to work per second; the ends of the interval swap.
Interval RateOf(const SteadySpeed& steady, double work) {
  const double mean = steady.mean_seconds;
  const double half = std::min(steady.half_width_seconds, 0.9 * mean);  // An open end becomes wide, but finite.
  return {work / mean, work / (mean + half), work / (mean - half)};
}

// GPUs whose work is a batch, or a rate, of that scope; 0: not known.
int GpusIn(Scope scope, const MeasuredSetting& setting) {
  if (setting.config.gpus <= 1) return setting.config.gpus;
  switch (scope) {
    case Scope::kGpu: return 1;
    case Scope::kProcess: return setting.has_process_per_gpu ? 1 : 0;
    case Scope::kJob: return setting.config.gpus;
    case Scope::kNotSaid: break;
  }
  return 0;
}

// Samples in one step of the whole job; 0: not known.
double SamplesInStep(const SpeedObservation& seen, const MeasuredSetting& setting) {
  const api::TrialConfig& config = setting.config;
  if (config.batch_size > 0) {
    return setting.batch_scope == api::BatchSizeScope::kPerGpu ? static_cast<double>(config.batch_size) * config.gpus
                                                               : config.batch_size;
  }
  const int gpus = GpusIn(seen.batch_scope, setting);
  return gpus > 0 ? seen.samples_per_step * config.gpus / gpus : 0;
}

Interval Scaled(const Interval& interval, double factor) {
  return {interval.mean * factor, interval.low * factor, interval.high * factor};
}

// The time of a step, which holds `work`.
Interval TimeOf(const Interval& rate, double work) { return {work / rate.mean, work / rate.high, work / rate.low}; }

struct Converter {
  const SpeedObservation& seen;
  const MeasuredSetting& setting;
  const api::ThroughputUnit wanted;
  const double samples = SamplesInStep(seen, setting);
  const bool has_batch_per_gpu = setting.batch_scope == api::BatchSizeScope::kPerGpu;
  // What a step is in the unit of steps: a batch of each GPU, or one of all.
  const double work_of_step = has_batch_per_gpu ? setting.config.gpus : 1;
  const api::ThroughputUnit of_steps =
      has_batch_per_gpu ? api::ThroughputUnit::kBatchesPerSecond : api::ThroughputUnit::kStepsPerSecond;

  bool IsWanted(api::ThroughputUnit unit) const { return wanted == api::ThroughputUnit::kNotKnown || wanted == unit; }

  std::optional<MeasuredWork> Of(const MeasuredSpeed& speed) const;
  std::optional<MeasuredWork> OfRate(const MeasuredSpeed& speed) const;
  std::optional<MeasuredWork> OfStep(const MeasuredSpeed& speed) const;
  std::optional<MeasuredWork> Made(const MeasuredSpeed& speed, api::ThroughputUnit unit, const Interval& throughput,
                                   const std::optional<Interval>& step) const;
};

std::optional<MeasuredWork> Converter::Made(const MeasuredSpeed& speed, api::ThroughputUnit unit,
                                            const Interval& throughput, const std::optional<Interval>& step) const {
  if (!IsWanted(unit)) return std::nullopt;
  MeasuredWork work;
  work.unit = unit;
  work.speed = &speed;
  api::Measurement& measured = work.measured;
  measured.throughput = Decimal(throughput.mean);
  measured.throughput_low = Decimal(throughput.low);
  measured.throughput_high = Decimal(throughput.high);
  if (measured.throughput.empty()) return std::nullopt;
  if (step) {
    measured.step_milliseconds = Decimal(1000 * step->mean);
    measured.step_milliseconds_low = Decimal(1000 * step->low);
    measured.step_milliseconds_high = Decimal(1000 * step->high);
  }
  if (speed.measure == Measure::kStepSeconds) {
    measured.steps = static_cast<std::int64_t>(std::min(speed.steady.steps, 1e15));
  }
  return work;
}

std::optional<MeasuredWork> Converter::OfRate(const MeasuredSpeed& speed) const {
  const bool has_samples = speed.measure == Measure::kSamplesPerSecond;
  const api::ThroughputUnit unit =
      has_samples ? api::ThroughputUnit::kSamplesPerSecond : api::ThroughputUnit::kTokensPerSecond;
  const int all = setting.config.gpus;
  std::optional<Interval> step;
  if (seen.step && seen.step->trust != Trust::kMixed) step = TimeOf(RateOf(seen.step->steady, 1), 1);
  int gpus = GpusIn(speed.scope, setting);
  if (gpus == 0 && has_samples && step) gpus = GpusBehind(step->mean / speed.steady.mean_seconds, samples, all);
  const bool is_scope_known = gpus > 0;
  const Interval rate = RateOf(speed.steady, is_scope_known ? static_cast<double>(all) / gpus : 1);
  if (has_samples && is_scope_known && samples > 0) step = TimeOf(rate, samples);
  if (auto work = Made(speed, unit, rate, step)) {
    work->measured.is_scope_unknown = !is_scope_known;
    return work;
  }
  if (!has_samples || !is_scope_known || samples <= 0) return std::nullopt;
  return Made(speed, of_steps, Scaled(rate, work_of_step / samples), step);
}

std::optional<MeasuredWork> Converter::OfStep(const MeasuredSpeed& speed) const {
  const Interval rate = RateOf(speed.steady, 1), step = TimeOf(rate, 1);
  if (samples > 0) {
    if (auto work = Made(speed, api::ThroughputUnit::kSamplesPerSecond, Scaled(rate, samples), step)) return work;
  }
  return Made(speed, of_steps, Scaled(rate, work_of_step), step);
}

std::optional<MeasuredWork> Converter::Of(const MeasuredSpeed& speed) const {
  if (!std::isfinite(speed.steady.mean_seconds) || speed.steady.mean_seconds <= 0) return std::nullopt;
  if (speed.measure == Measure::kStepSeconds) return OfStep(speed);
  if (speed.measure != Measure::kEpoch) return OfRate(speed);
  // An epoch is the same work on any number of GPUs.
  const Interval rate = RateOf(speed.steady, 1);
  return Made(speed, api::ThroughputUnit::kEpochsPerSecond, rate, TimeOf(rate, 1));
}

Scope ScopeOf(api::SpeedScope scope) {
  switch (scope) {
    case api::SpeedScope::kPerGpu: return Scope::kGpu;
    case api::SpeedScope::kPerProcess: return Scope::kProcess;
    case api::SpeedScope::kPerJob: return Scope::kJob;
    case api::SpeedScope::kNotSaid: break;
  }
  return Scope::kNotSaid;
}

}  // namespace

std::string Decimal(double value) {
  if (!std::isfinite(value) || value < kLeast || value > kMost) return {};
  const std::string decimal = ToDecimal(value);
  return decimal == "0" ? std::string() : decimal;
}

int GpusBehind(double samples, double of_job, int gpus) {
  const auto is_near = [&](double expected) { return std::abs(std::log(samples / expected)) < std::log(kNear); };
  if (!(samples > 0) || !(of_job > 0) || is_near(of_job) == is_near(of_job / gpus)) return 0;
  return is_near(of_job) ? gpus : 1;
}

std::optional<MeasuredWork> MeasurementOf(const SpeedObservation& seen, const MeasuredSetting& setting,
                                          api::ThroughputUnit wanted) {
  const Converter converter{seen, setting, wanted};
  for (const MeasuredSpeed* speed : seen.BestFirst()) {
    if (auto work = converter.Of(*speed)) return work;
  }
  return std::nullopt;
}

std::string ScopeQuestion(const SpeedObservation& seen, api::ThroughputUnit unit) {
  std::string regex;
  for (const MeasuredSpeed* speed : seen.BestFirst()) {
    const bool is_it = regex.empty() && speed->scope != Scope::kJob && speed->scope != Scope::kGpu;
    if (is_it) regex = UserPatterns::RegexFor(speed->example.text, speed->example.at);
  }
  const bool has_tokens = unit == api::ThroughputUnit::kTokensPerSecond;
  return "its log does not say whose that is: set measure.patterns: [{name: speed, kind: " +
         std::string(has_tokens ? "TokensPerSecond" : "SamplesPerSecond") + ", scope: PerGpu, regex: '" + regex +
         "'}], or PerJob if it is of all GPUs";
}

SpeedPattern PatternOf(const api::LogPattern& pattern) {
  static constexpr Measure kMeasures[] = {Measure::kStep,  Measure::kSamplesPerSecond, Measure::kStepSeconds,
                                          Measure::kEpoch, Measure::kTokensPerSecond,  Measure::kSamplesPerStep};
  const Measure measure = kMeasures[static_cast<std::size_t>(pattern.kind)];
  const bool has_scope = measure == Measure::kSamplesPerSecond || measure == Measure::kTokensPerSecond ||
                         measure == Measure::kSamplesPerStep;
  return {pattern.name, pattern.regex, measure, has_scope ? ScopeOf(pattern.scope) : Scope::kJob};
}

std::string SpeedText(const api::Measurement& measured, api::ThroughputUnit unit) {
  const std::optional<Interval> speed = ThroughputOf(measured);
  if (!speed) return "no speed yet";
  const double half = 100 * (speed->high - speed->low) / (2 * speed->mean);
  std::string text = measured.throughput + " " + std::string(UnitText(unit));
  if (half < 100) text += " +- " + std::to_string(std::lround(std::ceil(half))) + " %";
  if (measured.is_scope_unknown) text += ", of one GPU or of all";
  return text;
}

}  // namespace grus
