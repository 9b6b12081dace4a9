// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/cycle_search.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "controllers/telemetry/repetition.h"

namespace grus {
namespace {

constexpr double kLeastPresent = 0.6;  // Of the samples.
constexpr double kLoading =
    0.3;  // Of what is reached in a tenth of the time: below it at the begin, the job is loading.
constexpr std::size_t kFewest = 24;        // Samples.
constexpr double kExactLag = 40;           // Values of a cycle, from which on its length is exact enough.
constexpr double kLeastCoarsePart = 0.35;  // Of the spread; noise has less when it is averaged.
constexpr double kLeastOfHalf = 0.8;       // Agreement: a second try has to be better.
constexpr double kManyBursts = 10;         // Cycles.
constexpr double kAlikeBursts = 5;         // Cycles, of which each is like the next.
constexpr double kAlike = 0.85;            // Agreement.
constexpr float kNothing = 0.05F;          // Of the largest value.
constexpr double kMostPauses = 0.4;        // Of the time.
constexpr double kLeastWithin = 3.5;       // Cycles in an outer one; fewer are parts of one cycle that look alike.
constexpr double kLeastOuterPart = 0.2;    // Of the spread, that is left without the inner cycles.

double Spread(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  const double n = static_cast<double>(values.size());
  return n == 0 ? 0 : std::sqrt(std::max(0.0, squares / n - sum * sum / n / n));
}

std::size_t EndOfLoading(std::span<const float> values) {
  std::vector<float> sorted(values.begin(), values.end());
  const auto high = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() * 9 / 10);
  std::ranges::nth_element(sorted, high);
  const double level = kLoading * *high;
  // Two in a row: the first call of a driver is a blip.
  for (std::size_t at = 0; at + 1 < values.size() / 2; ++at) {
    if (values[at] >= level && values[at + 1] >= level) return at;
  }
  return values.size() / 2;  // So much is left for cycles.
}

// In values. Finer rows are asked for the exact length of what a coarse one shows.
Repetition Exact(std::span<const float> values, Repetition found, std::size_t factor) {
  found.period *= static_cast<double>(factor);
  for (std::size_t finer = factor / 2; finer > 0 && found.period / static_cast<double>(finer * 2) < kExactLag;
       finer /= 2) {
    const auto checked = CheckRepetition(Coarser(values, finer), found.period / static_cast<double>(finer));
    if (!checked) break;
    found.period = checked->period * static_cast<double>(finer);
  }
  found.count = static_cast<double>(values.size()) / found.period;
  return found;
}

// Where cycles became longer, two of the new ones may be as long as three of the old: then the latter half alone shows
// shorter ones.
Repetition Divided(std::span<const float> values, Repetition found) {
  for (const double parts : {3.0, 2.0}) {
    const double period = found.period / parts;
    const auto factor = std::max<std::size_t>(1, static_cast<std::size_t>(period / kExactLag));
    const auto checked =
        CheckRepetition(Coarser(values.subspan(values.size() / 2), factor), period / static_cast<double>(factor));
    if (!checked) continue;
    found.period = checked->period * static_cast<double>(factor);
    found.count = static_cast<double>(values.size()) / found.period;
    break;
  }
  return found;
}

std::optional<Repetition> FindAtAnyScale(std::span<const float> values, std::size_t factor, double least_spread) {
  least_spread = std::max(least_spread, kLeastCoarsePart * Spread(values));
  for (; values.size() / factor >= kFewest; factor *= 2) {
    const std::vector<float> coarse = Coarser(values, factor);
    if (Spread(coarse) < least_spread) break;
    if (const auto found = FindRepetition(coarse)) return Divided(values, Exact(values, *found, factor));
  }
  return std::nullopt;
}

// The mean of each window of `width` values: what repeats itself with that period is gone.
std::vector<float> Smoothed(std::span<const float> values, std::size_t width) {
  std::vector<float> smooth;
  double sum = 0;
  for (std::size_t at = 0; at < values.size(); ++at) {
    sum += values[at];
    if (at >= width) sum -= values[at - width];
    if (at + 1 >= width) smooth.push_back(static_cast<float>(sum / static_cast<double>(width)));
  }
  return smooth;
}

Cycle CycleOf(const Repetition& found, double step) {
  return {.period_s = found.period * step, .agreement = found.agreement, .count = found.count};
}

// Bursts with long pauses between them: a few may well come at equal distances by chance.
bool AreFewBursts(std::span<const float> values, const Cycles& cycles) {
  if (!cycles.outer || cycles.outer->count >= kManyBursts) return false;
  if (cycles.outer->count >= kAlikeBursts && cycles.outer->agreement >= kAlike) return false;
  const float nothing = kNothing * *std::ranges::max_element(values);
  const auto pauses = std::ranges::count_if(values, [nothing](float value) { return value <= nothing; });
  return static_cast<double>(pauses) > kMostPauses * static_cast<double>(values.size());
}

Cycles FindIn(std::span<const float> values, double step, double least_spread) {
  const double spread = Spread(values);
  if (values.size() < kFewest || spread < least_spread) return {};
  const auto inner = FindAtAnyScale(values, 1, least_spread);
  if (!inner) return {};
  Cycles cycles;
  cycles.outer = CycleOf(*inner, step);
  const auto width = static_cast<std::size_t>(std::lround(inner->period));
  const std::vector<float> smooth = Smoothed(values, width);
  if (Spread(smooth) < std::max(least_spread / 2, kLeastOuterPart * spread)) return cycles;
  const auto outer = FindAtAnyScale(smooth, std::max<std::size_t>(1, width / 4), least_spread / 2);
  if (!outer || outer->period < 1.5 * inner->period) return cycles;
  cycles.outer = CycleOf(*outer, step);
  cycles.outer->count = static_cast<double>(values.size()) / outer->period;
  if (outer->period >= kLeastWithin * inner->period) cycles.inner = CycleOf(*inner, step);
  return cycles;
}

}  // namespace

Cycles FindCycles(const Series& series, double least_spread) {
  if (series.values.size() < kFewest || !(series.step > 0) || SharePresent(series) < kLeastPresent) return {};
  const std::vector<float> filled = Filled(series);
  const std::size_t loaded = EndOfLoading(filled), middle = loaded + (filled.size() - loaded) / 2;
  const std::span<const float> values(filled);
  const auto find_from = [&](std::size_t from) {
    Cycles cycles = FindIn(values.subspan(from), series.step, least_spread);
    if (AreFewBursts(values.subspan(from), cycles)) cycles = {};
    cycles.from = static_cast<double>(series.start) + static_cast<double>(from) * series.step;
    return cycles;
  };
  const Cycles cycles = find_from(loaded);
  if (cycles.outer) return cycles;
  const Cycles latter = find_from(middle);
  return latter.outer && latter.outer->agreement >= kLeastOfHalf ? latter : cycles;
}

}  // namespace grus
