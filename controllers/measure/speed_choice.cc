// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/speed_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace grus {
namespace {

constexpr std::size_t kEnoughSamples = 3;
constexpr double kCoarse = 0.04;  // Half the last place over the value: "13ms/step" is not coarse, "1s/step" is.
constexpr double kAgreement = 0.25;
constexpr std::size_t kEnoughToContradict = 8;  // Samples of the clock.
constexpr double kWeightWhenDone = 0.2;         // Weight of the time of a finished bar, relative to a moving one.

// The quantity that a series of this measure gives.
Measure ToldBy(Measure measure) {
  if (measure == Measure::kStep) return Measure::kStepSeconds;
  if (measure == Measure::kSampleCount) return Measure::kSamplesPerSecond;
  return measure;
}

int PlaceOf(const SeriesKey& key) {
  const bool is_counted = IsCounter(key.measure);
  switch (key.trust) {
    case Trust::kPattern: return is_counted ? 1 : 0;
    case Trust::kStated: return is_counted ? 5 : 2;
    case Trust::kUnclear: return 3;
    case Trust::kAverage: return 4;
    case Trust::kWeak: return 6;
    case Trust::kMixed: return is_counted ? 8 : 7;
  }
  return 9;
}

struct Candidate {
  const SpeedSeries* series = nullptr;
  SteadySpeed steady;

  // Smaller is better.
  auto Order() const {
    const bool is_short = series->samples().size() < kEnoughSamples;
    const bool has_no_interval = !std::isfinite(steady.half_width_seconds);
    const bool is_coarse = series->resolution_seconds() > kCoarse * steady.mean_seconds;
    const double weight = series->is_done() ? kWeightWhenDone : 1;
    return std::tuple(is_short, is_coarse, has_no_interval, PlaceOf(series->key()), -weight * series->seconds());
  }
};

std::optional<Candidate> CandidateOf(const SpeedSeries& series) {
  const std::optional<SteadySpeed> steady = FindSteadySpeed(series.samples(), series.resolution_seconds());
  if (!steady) return std::nullopt;
  return Candidate{&series, *steady};
}

const Candidate* BestOf(const std::vector<Candidate>& candidates) {
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [](const Candidate& a, const Candidate& b) { return a.Order() < b.Order(); });
  return best == candidates.end() ? nullptr : &*best;
}

// Within kAgreement, either way.
bool DoAgree(const SteadySpeed& a, const SteadySpeed& b) {
  return std::abs(std::log(a.mean_seconds / b.mean_seconds)) < std::log(1 + kAgreement);
}

// Steps counted against the clock agree with the running average and are more precise: Keras rounds the remaining time
// of the epoch to seconds.
bool IsFiner(const Candidate& clock, const Candidate& average) {
  const SteadySpeed &counted = clock.steady, &averaged = average.steady;
  return clock.series->key().trust != Trust::kMixed && clock.series->samples().size() >= kEnoughSamples &&
         counted.is_steady && counted.relative_half_width() < averaged.relative_half_width() &&
         DoAgree(counted, averaged);
}

// The steps on the same lines, counted against the clock, are clearly not what is printed: the time of a part of a
// step, an average since the epoch began, or one that was divided by the GPUs.
bool Contradicts(const Candidate& clock, const Candidate& printed) {
  const SeriesKey &counted = clock.series->key(), &said = printed.series->key();
  if (IsCounter(said.measure) || said.trust == Trust::kPattern || counted.trust == Trust::kMixed) return false;
  if (counted.total != said.total || clock.series->samples().size() < kEnoughToContradict) return false;
  return clock.steady.is_steady && clock.steady.relative_half_width() < kAgreement / 2 &&
         !DoAgree(clock.steady, printed.steady);
}

void Scale(SteadySpeed& steady, double factor) {
  steady.mean_seconds *= factor;
  steady.half_width_seconds *= factor;
  steady.seconds *= factor;
}

// A time that only grows is that since the start.
bool IsSinceTheStart(const std::vector<SpeedSample>& samples) {
  if (samples.size() < kEnoughSamples) return false;
  const auto seconds = [](const SpeedSample& sample) { return sample.seconds / sample.steps; };
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (seconds(samples[i]) <= seconds(samples[i - 1])) return false;
  }
  return true;
}

// The meaning of the unclear time, according to the clock; none: the clock confirms no meaning.
std::optional<Candidate> Cleared(const Candidate& unclear, const Candidate* clock) {
  if (IsSinceTheStart(unclear.series->samples())) return std::nullopt;
  if (!clock || clock->series->samples().size() < kEnoughSamples) return unclear;
  const double clock_seconds = clock->steady.mean_seconds;
  Candidate interval = unclear;  // The time of all steps since the line before.
  std::vector<SpeedSample> samples;
  for (const SpeedSample& sample : unclear.series->samples()) {
    samples.push_back({sample.seconds / sample.steps, sample.steps});
  }
  interval.steady = *FindSteadySpeed(samples, unclear.series->resolution_seconds());
  Candidate millis = unclear;
  Scale(millis.steady, 1e-3);
  Candidate interval_millis = interval;
  Scale(interval_millis.steady, 1e-3);

  std::optional<Candidate> best;
  double least = std::log(1 + kAgreement);
  const std::array all = {unclear, interval, millis, interval_millis};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= 2 && unclear.series->has_unit()) break;
    const double distance = std::abs(std::log(all[i].steady.mean_seconds / clock_seconds));
    if (distance >= least) continue;
    least = distance;
    best = all[i];
  }
  return best;
}

}  // namespace

std::optional<MeasuredSpeed> ChooseSpeed(const std::vector<SpeedSeries>& series, Measure measure, Scope scope) {
  std::vector<Candidate> candidates, counted, unclear;
  for (const SpeedSeries& one : series) {
    if (ToldBy(one.key().measure) != measure || one.key().scope != scope) continue;
    const std::optional<Candidate> candidate = CandidateOf(one);
    if (!candidate) continue;
    if (IsCounter(one.key().measure)) counted.push_back(*candidate);
    (one.key().trust == Trust::kUnclear ? unclear : candidates).push_back(*candidate);
  }
  const Candidate* clock = BestOf(counted);
  for (const Candidate& one : unclear) {
    if (const std::optional<Candidate> cleared = Cleared(one, clock)) candidates.push_back(*cleared);
  }
  const Candidate* best = BestOf(candidates);
  if (!best) return std::nullopt;
  if (clock && Contradicts(*clock, *best)) best = clock;
  if (best->series->key().trust == Trust::kAverage && clock && IsFiner(*clock, *best)) best = clock;
  const SeriesKey& key = best->series->key();
  return MeasuredSpeed{.measure = measure,
                       .scope = key.scope,
                       .trust = key.trust,
                       .is_counted = IsCounter(key.measure),
                       .steady = best->steady,
                       .example = best->series->example()};
}

}  // namespace grus
