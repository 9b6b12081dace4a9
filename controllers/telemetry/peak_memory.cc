// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/peak_memory.h"

#include <algorithm>
#include <cmath>

namespace grus {
namespace {

constexpr double kFewestCycles = 2.8;      // Three, the edges of which may be cut.
constexpr double kLeastPresent = 0.5;      // Of the samples.
constexpr double kMargin = 1.015;          // The answer may be 5 % too high, but only 2 % too low.
constexpr double kStopped = 0.002;         // Of the peak: a last third that added less has ended the growth.
constexpr double kSteady = 0.8;            // Of the growth before: a last third that added so much goes on like that.
constexpr double kMostSteady = 0.01;       // Of the peak: such steady growth does not matter.
constexpr double kStillToCome = 2.5;       // Times what the last third added.
constexpr double kMostGrowthToCome = 0.2;  // Of the peak; more would be a guess.

}  // namespace

std::optional<double> PredictPeakMemory(const Series& memory, double from, double period_s, double limit) {
  if (!(memory.step > 0) || !(period_s > 0) || SharePresent(memory) < kLeastPresent) return std::nullopt;
  const double first = std::max(0.0, from - static_cast<double>(memory.start)) / memory.step;
  const double size = static_cast<double>(memory.values.size());
  if ((size - first) * memory.step < kFewestCycles * period_s) return std::nullopt;
  double peaks[3] = {0, 0, 0};  // At the ends of three equal parts.
  for (std::size_t at = 0; at < memory.values.size(); ++at) {
    if (!std::isfinite(memory.values[at])) continue;
    const double part = std::max(0.0, (static_cast<double>(at) - first) / (size - first));
    for (std::size_t end = static_cast<std::size_t>(3 * part); end < 3; ++end) {
      peaks[end] = std::max(peaks[end], static_cast<double>(memory.values[at]));
    }
  }
  const double peak = peaks[2];
  if (!(peak > 0)) return std::nullopt;
  const double before = peaks[1] - peaks[0], last = peaks[2] - peaks[1];
  double predicted = peak * kMargin;
  if (last > kStopped * peak) {
    if (last > kSteady * before && last > kMostSteady * peak) return std::nullopt;
    const double to_come = kStillToCome * last;
    if (to_come > kMostGrowthToCome * peak) return std::nullopt;
    predicted = std::max(predicted, peak + to_come);
  }
  return limit > 0 ? std::max(peak, std::min(predicted, limit)) : predicted;
}

}  // namespace grus
