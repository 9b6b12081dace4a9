// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/series.h"

#include <algorithm>
#include <cmath>

namespace grus {
namespace {

std::vector<float> Present(const Series& series) {
  std::vector<float> present;
  present.reserve(series.values.size());
  std::ranges::copy_if(series.values, std::back_inserter(present), [](float value) { return std::isfinite(value); });
  return present;
}

}  // namespace

std::size_t CountPresent(const Series& series) {
  const auto is_present = [](float value) { return std::isfinite(value); };
  return static_cast<std::size_t>(std::ranges::count_if(series.values, is_present));
}

double SharePresent(const Series& series) {
  if (series.values.empty()) return 0;
  return static_cast<double>(CountPresent(series)) / static_cast<double>(series.values.size());
}

double Duration(const Series& series) { return static_cast<double>(series.values.size()) * series.step; }

std::optional<double> Mean(const Series& series) {
  double sum = 0;
  std::size_t count = 0;
  for (const float value : series.values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

std::optional<double> Max(const Series& series) { return Quantile(series, 1); }

std::optional<double> Quantile(const Series& series, double share) {
  std::vector<float> present = Present(series);
  if (present.empty()) return std::nullopt;
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(present.size() - 1);
  const auto at = present.begin() + std::lround(place);
  std::ranges::nth_element(present, at);
  return *at;
}

std::vector<float> Filled(const Series& series) {
  std::vector<float> filled = series.values;
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t last = kNone;
  for (std::size_t at = 0; at < filled.size(); ++at) {
    if (!std::isfinite(filled[at])) continue;
    const std::size_t from = last == kNone ? 0 : last + 1;
    const float before = last == kNone ? filled[at] : filled[last];
    for (std::size_t missing = from; missing < at; ++missing) {
      const float part = static_cast<float>(missing - from + 1) / static_cast<float>(at - from + 1);
      filled[missing] = before + (filled[at] - before) * part;
    }
    last = at;
  }
  if (last == kNone) return {};
  std::fill(filled.begin() + static_cast<std::ptrdiff_t>(last), filled.end(), filled[last]);
  return filled;
}

std::vector<float> Coarser(std::span<const float> values, std::size_t factor) {
  std::vector<float> means;
  means.reserve(values.size() / factor);
  for (std::size_t at = 0; at + factor <= values.size(); at += factor) {
    double sum = 0;
    for (const float value : values.subspan(at, factor)) sum += value;
    means.push_back(static_cast<float>(sum / static_cast<double>(factor)));
  }
  return means;
}

}  // namespace grus
