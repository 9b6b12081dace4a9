// SPDX-License-Identifier: Apache-2.0
// Samples of one quantity of a job at equal distances in time, and robust statistics of them. A sample that is missing
// is NaN. What is computed from no samples is none, and never zero. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace grus {

struct Series {
  std::int64_t start = 0;  // Unix time in seconds, of the first sample.
  double step = 1;         // Seconds from one sample to the next.
  std::vector<float> values = {};
};

std::size_t CountPresent(const Series& series);
double SharePresent(const Series& series);  // 0 to 1; 0 without samples.
double Duration(const Series& series);      // Seconds, missing samples included.
std::optional<double> Mean(const Series& series);
std::optional<double> Max(const Series& series);
// `share` is 0 for the least, 0.5 for the median, 1 for the largest. Of the samples that are present.
std::optional<double> Quantile(const Series& series, double share);

// Without NaN: missing samples lie on a line between their neighbours, those at an end equal the neighbour. Empty if no
// sample is present. Infinities count as missing.
std::vector<float> Filled(const Series& series);

// Means of `factor` values each; a rest that is shorter is left out.
std::vector<float> Coarser(std::span<const float> values, std::size_t factor);

}  // namespace grus
