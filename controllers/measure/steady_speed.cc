// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/steady_speed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace grus {
namespace {

constexpr std::size_t kFewest = 5;  // Samples or batches that make an interval.
constexpr std::size_t kMostBatches = 32;
constexpr double kStrongCorrelation = 0.2;  // Between neighbouring batches.
constexpr double kClearDifference = 3;      // In half widths: five standard errors.
constexpr double kMostPauses = 0.1;

double StepSeconds(const SpeedSample& sample) { return sample.seconds / sample.steps; }

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// A sample slower than this is a pause, if there are few such.
double PauseLimit(std::span<const SpeedSample> samples) {
  std::vector<double> times;
  for (const SpeedSample& sample : samples) times.push_back(StepSeconds(sample));
  const double median = Median(times);
  for (double& time : times) time = std::abs(time - median);
  const double deviation = 1.4826 * Median(std::move(times));  // Of a normal distribution.
  return median + std::max(median / 2, 5 * deviation);
}

bool IsRare(std::size_t pauses, std::size_t samples) {
  return static_cast<double>(pauses) <= std::max(1.0, kMostPauses * static_cast<double>(samples));
}

SpeedSample Sum(std::span<const SpeedSample> samples) {
  SpeedSample sum;
  for (const SpeedSample& sample : samples) {
    sum.seconds += sample.seconds;
    sum.steps += sample.steps;
  }
  return sum;
}

// Sums of `group` neighbours; an incomplete group at the front is left out.
std::vector<SpeedSample> Grouped(std::span<const SpeedSample> samples, std::size_t group) {
  std::vector<SpeedSample> groups;
  for (std::size_t at = samples.size() % group; at < samples.size(); at += group) {
    groups.push_back(Sum(samples.subspan(at, group)));
  }
  return groups;
}

// How many of the first samples MSER leaves out. Samples that cover more steps weigh more.
std::size_t MserCut(std::span<const SpeedSample> samples) {
  double weight = 0, sum = 0, squares = 0, least = std::numeric_limits<double>::infinity();
  std::size_t cut = 0;
  for (std::size_t i = samples.size(); i-- > 0;) {
    const double time = StepSeconds(samples[i]);
    weight += samples[i].steps;
    sum += samples[i].steps * time;
    squares += samples[i].steps * time * time;
    if (i > samples.size() / 2) continue;
    const double variance = std::max(0.0, squares - sum * sum / weight);
    const double mser = variance / (weight * weight);
    if (mser <= least) {
      least = mser;
      cut = i;
    }
  }
  return cut;
}

// A pause must not look like the end of a warm-up.
std::vector<SpeedSample> WithoutSpikes(std::span<const SpeedSample> samples) {
  std::vector<SpeedSample> clipped(samples.begin(), samples.end());
  if (samples.size() < kFewest) return clipped;
  const double limit = PauseLimit(samples.subspan(samples.size() / 2));
  for (std::size_t i = 1; i + 1 < clipped.size(); ++i) {
    const bool is_alone = StepSeconds(samples[i - 1]) <= limit && StepSeconds(samples[i + 1]) <= limit;
    if (is_alone && StepSeconds(samples[i]) > limit) clipped[i].seconds = limit * clipped[i].steps;
  }
  return clipped;
}

// 95 % quantile of Student's t, so that the interval holds 90 %. Cornish-Fisher expansion (Abramowitz and
// Stegun 26.7.5), within 0.5 % from four degrees of freedom on.
double StudentQuantile(double degrees) {
  constexpr double z = 1.6448536269514722, z2 = z * z;
  const double g1 = z * (z2 + 1) / 4;
  const double g2 = z * (5 * z2 * z2 + 16 * z2 + 3) / 96;
  const double g3 = z * (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / 384;
  return z + g1 / degrees + g2 / (degrees * degrees) + g3 / (degrees * degrees * degrees);
}

struct Batches {
  double half_width = 0;
  double correlation = 0;  // Between neighbours.
};

Batches IntervalOf(const std::vector<SpeedSample>& batches, double mean) {
  const std::size_t count = batches.size();
  double variance = 0, products = 0, before = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double deviation = StepSeconds(batches[i]) - mean;
    variance += deviation * deviation;
    if (i > 0) products += deviation * before;
    before = deviation;
  }
  Batches result;
  if (variance <= 0) return result;
  result.correlation = std::clamp(products / variance, -0.9, 0.9);
  const double error = std::sqrt(variance / static_cast<double>((count - 1) * count));
  result.half_width = StudentQuantile(static_cast<double>(count - 1)) * error;
  return result;
}

double HalfWidth(std::span<const SpeedSample> samples, double mean) {
  if (samples.size() < kFewest) return std::numeric_limits<double>::infinity();
  Batches best;
  for (std::size_t count = std::min(kMostBatches, samples.size()); count >= kFewest; count /= 2) {
    best = IntervalOf(Grouped(samples, samples.size() / count), mean);
    if (best.correlation <= kStrongCorrelation) return best.half_width;
  }
  return best.half_width * std::sqrt((1 + best.correlation) / (1 - best.correlation));
}

// Whether the speed before the cut differs from that after it. Noise alone can make MSER cut anywhere.
bool HasStepAt(std::span<const SpeedSample> samples, std::size_t cut, const SteadySpeed& behind) {
  const SpeedSample before = Sum(samples.subspan(cut / 2, cut - cut / 2));
  return std::abs(StepSeconds(before) - behind.mean_seconds) > kClearDifference * behind.half_width_seconds;
}

}  // namespace

std::optional<SteadySpeed> FindSteadySpeed(std::span<const SpeedSample> samples, double resolution_seconds) {
  if (samples.empty()) return std::nullopt;
  const std::size_t group = samples.size() >= 100 ? 5 : 1;
  const std::vector<SpeedSample> groups = Grouped(WithoutSpikes(samples), group);
  const std::size_t cut_group = MserCut(groups);
  const std::size_t cut = cut_group == 0 ? 0 : samples.size() % group + cut_group * group;
  const std::span<const SpeedSample> rest = samples.subspan(cut);

  std::vector<SpeedSample> used;
  const double limit = PauseLimit(rest);
  for (const SpeedSample& sample : rest) {
    if (rest.size() < kFewest || StepSeconds(sample) <= limit) used.push_back(sample);
  }
  std::size_t pauses = rest.size() - used.size();
  if (!IsRare(pauses, rest.size())) {
    used.assign(rest.begin(), rest.end());
    pauses = 0;
  }

  const SpeedSample sum = Sum(used);
  SteadySpeed speed;
  speed.mean_seconds = sum.seconds / sum.steps;
  speed.half_width_seconds = std::hypot(HalfWidth(used, speed.mean_seconds), resolution_seconds);
  speed.is_steady =
      samples.size() >= kFewest && (cut_group < groups.size() / 2 || !HasStepAt(groups, cut_group, speed));
  speed.steps = sum.steps;
  speed.seconds = sum.seconds;
  speed.samples = static_cast<int>(used.size());
  speed.warm_up_samples = static_cast<int>(cut);
  speed.pauses = static_cast<int>(pauses);
  return speed;
}

}  // namespace grus
