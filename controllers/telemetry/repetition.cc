// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/repetition.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

namespace grus {
namespace {

constexpr double kLeastPeak = 0.2;        // Of the autocorrelation.
constexpr double kLeastProminence = 0.2;  // Of a peak above the lowest value before it.
constexpr std::size_t kMostPeaks = 24;
constexpr double kJitter = 0.1;            // Of the period: a cycle may be so much shorter or longer than the others.
constexpr double kLeastAgreement = 0.72;   // In the median.
constexpr double kLeastOfMost = 0.35;      // Four windows of five agree at least so much.
constexpr double kAsGood = 0.75;           // A period with so much of the best agreement, and shorter, is the period.
constexpr double kManyCycles = 12;         // So many do not agree by chance.
constexpr int kRandomRows = 39;            // With the row itself 40: an error of 2.5 % at each scale.
constexpr std::size_t kMostWindows = 100;  // Bounds the time.

// A row without its trend, and the sums that make the correlation of any two parts of it cheap.
class Row {
 public:
  explicit Row(std::span<const float> values) : values_(values.begin(), values.end()) {
    RemoveTrend();
    sums_.assign(values_.size() + 1, 0);
    squares_.assign(values_.size() + 1, 0);
    for (std::size_t at = 0; at < values_.size(); ++at) {
      sums_[at + 1] = sums_[at] + values_[at];
      squares_[at + 1] = squares_[at] + static_cast<double>(values_[at]) * values_[at];
    }
    least_variance_ = size() == 0 ? 0 : 1e-3 * squares_.back() / static_cast<double>(size());
  }

  std::size_t size() const { return values_.size(); }

  // Pearson's, of the `count` values from `first` and those from `second`; 0 where one part is flat.
  double Correlation(std::size_t first, std::size_t second, std::size_t count) const {
    const double n = static_cast<double>(count);
    const double sum_first = sums_[first + count] - sums_[first], sum_second = sums_[second + count] - sums_[second];
    const double var_first = squares_[first + count] - squares_[first] - sum_first * sum_first / n;
    const double var_second = squares_[second + count] - squares_[second] - sum_second * sum_second / n;
    if (var_first <= least_variance_ * n || var_second <= least_variance_ * n) return 0;
    return (Product(first, second, count) - sum_first * sum_second / n) / std::sqrt(var_first * var_second);
  }

 private:
  // Subtracts the mean of the neighbourhood, which is longer than any cycle that is searched here.
  void RemoveTrend() {
    const std::size_t half = std::min(size() / 3, kMostLag);
    std::vector<double> sums(size() + 1, 0);
    for (std::size_t at = 0; at < size(); ++at) sums[at + 1] = sums[at] + values_[at];
    for (std::size_t at = 0; at < size(); ++at) {
      const std::size_t from = at - std::min(at, half), to = std::min(size(), at + half + 1);
      values_[at] -= static_cast<float>((sums[to] - sums[from]) / static_cast<double>(to - from));
    }
  }

  double Product(std::size_t first, std::size_t second, std::size_t count) const {
    float part[4] = {};  // Four sums, so that the processor need not wait for one.
    std::size_t at = 0;
    for (; at + 4 <= count; at += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane) {
        part[lane] += values_[first + at + lane] * values_[second + at + lane];
      }
    }
    double sum = static_cast<double>(part[0]) + part[1] + part[2] + part[3];
    for (; at < count; ++at) sum += static_cast<double>(values_[first + at]) * values_[second + at];
    return sum;
  }

  std::vector<float> values_;
  std::vector<double> sums_, squares_;
  double least_variance_ = 0;
};

std::size_t LongestLag(std::size_t size) {
  return std::min(kMostLag, static_cast<std::size_t>(static_cast<double>(size) / kFewestCycles));
}

// Lags with peaks of the autocorrelation, the highest first.
std::vector<std::size_t> Peaks(const Row& row) {
  const std::size_t longest = LongestLag(row.size());
  std::vector<double> at_lag(longest + 2, 0);
  for (std::size_t lag = 1; lag <= longest; ++lag) at_lag[lag] = row.Correlation(0, lag, row.size() - lag);
  at_lag[longest + 1] = -1;
  std::vector<std::size_t> peaks;
  double lowest = at_lag[1];
  for (std::size_t lag = 2; lag <= longest; ++lag) {
    lowest = std::min(lowest, at_lag[lag]);
    if (lag < kLeastLag || at_lag[lag] < std::max(kLeastPeak, lowest + kLeastProminence)) continue;
    const std::size_t near = std::max<std::size_t>(1, lag / 20);
    const auto from = at_lag.begin() + static_cast<std::ptrdiff_t>(lag - near);
    const auto to = at_lag.begin() + static_cast<std::ptrdiff_t>(std::min(longest, lag + near) + 1);
    if (at_lag[lag] == *std::max_element(from, to)) peaks.push_back(lag);
  }
  std::ranges::sort(peaks, [&](std::size_t a, std::size_t b) { return at_lag[a] > at_lag[b]; });
  if (peaks.size() > kMostPeaks) peaks.resize(kMostPeaks);
  return peaks;
}

double MedianOf(std::vector<double> values, double share = 0.5) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

struct Match {
  double correlation = -1;
  std::size_t distance = 0;
};

// Where the window from `start` comes again.
Match NextOf(const Row& row, std::size_t start, std::size_t period) {
  const std::size_t jitter =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(kJitter * static_cast<double>(period))));
  Match best;
  for (std::size_t distance = period - jitter; distance <= period + jitter; ++distance) {
    if (start + distance >= row.size()) break;
    const std::size_t count = std::min(period, row.size() - start - distance);
    if (static_cast<double>(count) < 0.7 * static_cast<double>(period)) break;
    const double correlation = row.Correlation(start, start + distance, count);
    if (correlation > best.correlation) best = {correlation, distance};
  }
  return best;
}

struct Checked {
  Repetition repetition = {};
  double low = 0;  // The agreement of the window that is worse than four of five.
};

// None: there are not two windows to compare.
std::optional<Checked> Check(const Row& row, std::size_t period) {
  std::vector<double> correlations, distances;
  const std::size_t windows = std::max<std::size_t>(1, 2 * row.size() / period);
  const std::size_t stride = std::max<std::size_t>(1, period / 2) * (1 + windows / kMostWindows);
  for (std::size_t start = 0; start < row.size(); start += stride) {
    const Match next = NextOf(row, start, period);
    if (next.distance == 0) break;
    correlations.push_back(next.correlation);
    distances.push_back(static_cast<double>(next.distance));
  }
  if (correlations.size() < 2) return std::nullopt;
  Checked checked;
  checked.repetition.agreement = MedianOf(correlations);
  checked.low = MedianOf(correlations, 0.2);
  // The mean of those that agree: finer than one value.
  double sum = 0, count = 0;
  for (std::size_t at = 0; at < distances.size(); ++at) {
    if (correlations[at] < checked.repetition.agreement) continue;
    sum += distances[at];
    ++count;
  }
  checked.repetition.period = sum / count;
  checked.repetition.count = static_cast<double>(row.size()) / checked.repetition.period;
  return checked;
}

bool IsGood(const Checked& checked) {
  return checked.repetition.agreement >= kLeastAgreement && checked.low >= kLeastOfMost &&
         checked.repetition.count >= kFewestCycles;
}

// The good candidates; none is left of most random rows.
std::vector<Checked> GoodOnes(const Row& row) {
  std::vector<Checked> good;
  for (const std::size_t lag : Peaks(row)) {
    const auto checked = Check(row, lag);
    if (checked && IsGood(*checked)) good.push_back(*checked);
  }
  return good;
}

// Random rows have single windows that agree, and others that do not.
double Evenness(const Checked& checked) { return checked.repetition.agreement + checked.low; }

// Random, and the same everywhere: SplitMix64.
class Noise {
 public:
  double Normal() {  // Box and Muller.
    const double radius = std::sqrt(-2 * std::log(Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  double Uniform() {
    std::uint64_t bits = state_ += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return (static_cast<double>((bits ^ (bits >> 31)) >> 11) + 1) * 0x1p-53;
  }
  std::uint64_t state_ = 1;
};

double Inertia(std::span<const float> values) {  // The autocorrelation of the raw values at lag 1.
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  double product = 0, square = 0;
  for (std::size_t at = 0; at < values.size(); ++at) {
    square += (values[at] - mean) * (values[at] - mean);
    if (at > 0) product += (values[at] - mean) * (values[at - 1] - mean);
  }
  return square <= 0 ? 0 : std::clamp(product / square, 0.0, 0.98);
}

// Do cycles agree better than chance makes them? The random rows follow an autoregression of the first order, and then
// take the row's own values by rank, so that bursts stay bursts.
bool IsBetterThanChance(std::span<const float> values, const Checked& found) {
  std::vector<float> sorted(values.begin(), values.end()), random(values.size());
  std::ranges::sort(sorted);
  std::vector<double> process(values.size());
  std::vector<std::size_t> order(values.size());
  const double inertia = Inertia(values), fresh = std::sqrt(1 - inertia * inertia);
  Noise noise;
  for (int row = 0; row < kRandomRows; ++row) {
    double state = noise.Normal();
    for (double& value : process) value = state = inertia * state + fresh * noise.Normal();
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t at) { return process[at]; });
    for (std::size_t rank = 0; rank < order.size(); ++rank) random[order[rank]] = sorted[rank];
    const std::vector<Checked> chance = GoodOnes(Row(random));
    if (std::ranges::any_of(chance, [&](const Checked& one) { return Evenness(one) >= Evenness(found); })) return false;
  }
  return true;
}

}  // namespace

std::optional<Repetition> FindRepetition(std::span<const float> values) {
  const Row row(values);
  if (row.size() < 3 * kLeastLag) return std::nullopt;
  const std::vector<Checked> good = GoodOnes(row);
  if (good.empty()) return std::nullopt;
  double best = 0;
  for (const Checked& one : good) best = std::max(best, one.repetition.agreement);
  const Checked* shortest = nullptr;
  for (const Checked& one : good) {
    if (one.repetition.agreement < kAsGood * best) continue;
    if (shortest == nullptr || one.repetition.period < shortest->repetition.period) shortest = &one;
  }
  if (shortest->repetition.count <= kManyCycles && !IsBetterThanChance(values, *shortest)) return std::nullopt;
  return shortest->repetition;
}

std::optional<Repetition> CheckRepetition(std::span<const float> values, double period) {
  const Row row(values);
  const auto lag = static_cast<std::size_t>(std::lround(period));
  if (lag < kLeastLag || lag > LongestLag(row.size())) return std::nullopt;
  const auto checked = Check(row, lag);
  if (!checked || !IsGood(*checked)) return std::nullopt;
  return checked->repetition;
}

}  // namespace grus
